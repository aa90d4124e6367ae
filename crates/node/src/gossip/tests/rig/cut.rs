//! A socket whose cable can be cut.

use std::{
    io::{self, IoSliceMut},
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};

use quinn::{
    AsyncUdpSocket, UdpPoller,
    udp::{RecvMeta, Transmit},
};

#[derive(Debug)]
pub(super) struct Cut {
    inner: Arc<dyn AsyncUdpSocket>,
    is_cut: AtomicBool,
}

impl Cut {
    pub(super) fn new(inner: Arc<dyn AsyncUdpSocket>) -> Self {
        Self {
            inner,
            is_cut: AtomicBool::new(false),
        }
    }

    pub(super) fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
    }

    pub(super) fn mend(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
    }

    pub(super) fn port(&self) -> u16 {
        self.inner.local_addr().unwrap().port()
    }
}

impl AsyncUdpSocket for Cut {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.inner.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        if self.is_cut.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.inner.try_send(transmit)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        loop {
            let received = ready!(self.inner.poll_recv(cx, buffers, meta));
            if !self.is_cut.load(Ordering::SeqCst) {
                return Poll::Ready(received);
            }
            received?;
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}
