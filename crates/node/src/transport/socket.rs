//! The production socket.
//!
//! Must run in a tokio runtime with I/O. Large buffers: a burst that arrives while this process is not
//! scheduled would be dropped by the kernel's default.

use std::{net::SocketAddr, sync::Arc};

use quinn::{AsyncUdpSocket, Runtime as _, TokioRuntime};
use socket2::{Domain, Protocol, Socket, Type};
use thiserror::Error;

/// What is asked of the kernel for each direction; it may give less.
pub const SOCKET_BUFFER_BYTES: usize = 4 << 20;

/// A socket that could not be bound: the operator's fault, or the address is taken.
#[derive(Debug, Error)]
#[error("cannot bind the UDP address {address}")]
pub struct BindError {
    /// The address.
    pub address: SocketAddr,
    /// What the system says.
    #[source]
    pub source: std::io::Error,
}

/// Binds a UDP socket with large buffers. An IPv6 wildcard takes IPv4 too.
///
/// # Errors
/// [`BindError`] if the address is taken or not this machine's.
pub fn bind(address: SocketAddr) -> Result<Arc<dyn AsyncUdpSocket>, BindError> {
    bind_socket(address)
        .and_then(|socket| TokioRuntime.wrap_udp_socket(socket.into()))
        .map_err(|source| BindError { address, source })
}

fn bind_socket(address: SocketAddr) -> std::io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_nonblocking(true)?;
    for sized in [
        socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES),
        socket.set_send_buffer_size(SOCKET_BUFFER_BYTES),
    ] {
        if let Err(error) = sized {
            tracing::debug!(%error, "the kernel gives no larger socket buffers");
        }
    }
    socket.bind(&address.into())?;
    Ok(socket)
}
