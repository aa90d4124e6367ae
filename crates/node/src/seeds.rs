//! Looking up the names of seeds.
//!
//! Handed in, so that the simulator has its own. Invariants: a look-up takes at most
//! [`LOOK_UP_TIMEOUT`], and at most [`MAX_ADDRESSES`] of what it finds are used.

use std::{future::Future, io, net::SocketAddr, pin::Pin, time::Duration};

/// How long one look-up may take.
pub const LOOK_UP_TIMEOUT: Duration = Duration::from_secs(1);
/// The most addresses of one name that are tried.
pub const MAX_ADDRESSES: usize = 16;

/// A look-up under way.
pub type LookUp<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>>;

/// Finds the addresses of a name.
pub trait Resolve: Send + Sync + std::fmt::Debug + 'static {
    /// The addresses of `host`, with `port`.
    fn look_up<'a>(&'a self, host: &'a str, port: u16) -> LookUp<'a>;
}

/// The system's resolver.
#[derive(Clone, Copy, Debug)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn look_up<'a>(&'a self, host: &'a str, port: u16) -> LookUp<'a> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}
