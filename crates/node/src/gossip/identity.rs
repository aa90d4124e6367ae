//! This node's identity, and identities as the gossip library sees them.
//!
//! Invariant: of two identities with one address the one with the larger generation wins, and every
//! new identity of a node has a larger generation than all it is known to have had.

use std::net::SocketAddr;

use tollgate_wire::{
    OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION,
    identity::{BootId, Identity, Phase},
};

use crate::{
    clock::{Clock as _, TokioClock},
    config::NodeConfig,
};

/// How far a renewed generation lies above the last: more than any number of changes of phase.
const GENERATION_STEP: u64 = 1 << 20;

/// The identity that a node starts with: joining.
#[must_use]
pub fn first_identity(config: &NodeConfig, boot: BootId, clock: &TokioClock) -> Identity {
    Identity {
        node: config.node.clone(),
        boot,
        generation: generation_after(config.last_generation, clock),
        peer: config.peer_address,
        api: config.api_address,
        weight: config.weight.max(1),
        newest_version: PROTOCOL_VERSION,
        oldest_version: OLDEST_PROTOCOL_VERSION,
        phase: Phase::Joining,
        tail: Vec::new(),
    }
}

/// A generation that wins against `last` and against any that a clock gave before.
pub(super) fn generation_after(last: u64, clock: &TokioClock) -> u64 {
    let now = clock.now().as_nanos() / 1_000_000;
    let unix_millis = clock.unix_millis_at_origin().saturating_add(now);
    unix_millis.max(last.saturating_add(GENERATION_STEP))
}

/// An identity as the gossip library sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gossiped(pub(super) Identity);

impl foca::Identity for Gossiped {
    type Addr = SocketAddr;

    /// Never by itself: the driver renews, because a renewed node must join again.
    fn renew(&self) -> Option<Self> {
        None
    }

    fn addr(&self) -> SocketAddr {
        self.0.peer
    }

    fn win_addr_conflict(&self, adversary: &Self) -> bool {
        self.0.generation > adversary.0.generation
    }
}

#[cfg(test)]
mod tests {
    use foca::Identity as _;

    use super::{GENERATION_STEP, Gossiped, generation_after};
    use crate::{clock::TokioClock, gossip::tests::identity};

    #[test]
    fn a_new_generation_wins_whatever_the_clock_says() {
        let ahead = 1_800_000_000_000;
        let clock = TokioClock::new(ahead / 2);
        assert!(generation_after(0, &clock) >= ahead / 2);
        assert_eq!(generation_after(ahead, &clock), ahead + GENERATION_STEP);
        let clock = TokioClock::new(ahead + 2 * GENERATION_STEP);
        assert!(generation_after(ahead, &clock) >= ahead + 2 * GENERATION_STEP);
    }

    #[test]
    fn of_two_with_one_address_the_later_stays_and_nobody_renews_by_itself() {
        let (older, newer) = (Gossiped(identity("n1", 1)), Gossiped(identity("n1", 2)));
        assert!(newer.win_addr_conflict(&older));
        assert!(!older.win_addr_conflict(&newer));
        assert!(!older.win_addr_conflict(&older));
        assert_eq!(older.renew(), None);
    }
}
