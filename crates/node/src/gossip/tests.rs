//! Tests of control over real sockets on loopback.

mod life;
mod refusals;
mod rig;

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use tollgate_limit::NodeId;
use tollgate_wire::identity::{BootId, Identity, Phase};

/// Some identity of this generation.
pub(super) fn identity(node: &str, generation: u64) -> Identity {
    Identity {
        node: NodeId::new(node).unwrap(),
        boot: BootId(1),
        generation,
        peer: SocketAddr::from((Ipv4Addr::LOCALHOST, 7601)),
        api: SocketAddr::from((Ipv4Addr::LOCALHOST, 7600)),
        weight: 1,
        newest_version: 1,
        oldest_version: 1,
        phase: Phase::Active,
        tail: vec![1, 2, 3],
    }
}

/// Stands still, as a stopped process does.
#[expect(
    clippy::disallowed_methods,
    reason = "a process that is stopped does just that"
)]
pub(super) fn stall(span: Duration) {
    std::thread::sleep(span);
}
