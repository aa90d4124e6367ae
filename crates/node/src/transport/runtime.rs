//! Where QUIC's own tasks run: on the runtime that the transport was started on, whoever dials.
//!
//! Control dials from its own thread; a connection must not end with that thread.

use std::{future::Future, io, net::UdpSocket, pin::Pin, sync::Arc, time::Instant};

use quinn::{AsyncTimer, AsyncUdpSocket, Runtime};
use tokio::runtime::Handle;

/// A runtime that spawns where it was made.
#[derive(Debug)]
pub(super) struct Pinned {
    inner: Arc<dyn Runtime>,
    home: Handle,
}

impl Pinned {
    /// Spawns on the current runtime from now on.
    pub(super) fn new(inner: Arc<dyn Runtime>) -> Self {
        Self {
            inner,
            home: Handle::current(),
        }
    }
}

impl Runtime for Pinned {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        self.inner.new_timer(at)
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        let _home = self.home.enter();
        self.inner.spawn(future);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        self.inner.wrap_udp_socket(socket)
    }

    fn now(&self) -> Instant {
        self.inner.now()
    }
}
