//! A UDP socket on the simulated network, as quinn wants one. Always writable, one datagram at a time.

use std::{
    fmt, io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use quinn::{
    AsyncUdpSocket, UdpPoller,
    udp::{RecvMeta, Transmit},
};

use super::{
    Network,
    fabric::{Outgoing, Plug},
};

/// A socket of a [`Network`]; leaves it when dropped.
pub struct SimSocket {
    network: Network,
    plug: Plug,
}

impl SimSocket {
    pub(super) const fn new(network: Network, plug: Plug) -> Self {
        Self { network, plug }
    }
}

impl AsyncUdpSocket for SimSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(AlwaysWritable)
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let whole = transmit.contents.len().max(1);
        for contents in transmit
            .contents
            .chunks(transmit.segment_size.unwrap_or(whole))
        {
            self.network.send(Outgoing {
                plug: self.plug,
                to: transmit.destination,
                ecn: transmit.ecn,
                contents,
            });
        }
        Ok(())
    }

    fn poll_recv(
        &self,
        context: &mut Context<'_>,
        buffers: &mut [io::IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut fabric = self.network.shared.fabric.lock();
        let mut received = 0;
        for (buffer, meta) in buffers.iter_mut().zip(metas) {
            let Some(arrived) = fabric.receive(self.plug, context.waker()) else {
                break;
            };
            // A datagram longer than the buffer loses its end, as on a real socket.
            let length = arrived.contents.len().min(buffer.len());
            buffer[..length].copy_from_slice(&arrived.contents[..length]);
            *meta = RecvMeta {
                addr: arrived.from,
                len: length,
                stride: length,
                ecn: arrived.ecn,
                dst_ip: Some(self.plug.address.ip()),
            };
            received += 1;
        }
        if received == 0 {
            Poll::Pending
        } else {
            Poll::Ready(Ok(received))
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.plug.address)
    }

    fn max_transmit_segments(&self) -> usize {
        1
    }

    fn max_receive_segments(&self) -> usize {
        1
    }

    /// No: quinn may then look for the path's largest datagram.
    fn may_fragment(&self) -> bool {
        false
    }
}

impl Drop for SimSocket {
    fn drop(&mut self) {
        self.network.shared.fabric.lock().remove(self.plug);
    }
}

impl fmt::Debug for SimSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimSocket")
            .field("plug", &self.plug)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct AlwaysWritable;

impl UdpPoller for AlwaysWritable {
    fn poll_writable(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
