//! What a node tells of itself: plain numbers for metrics and for the members' list.

use std::sync::atomic::Ordering;

use tollgate_limit::{NodeId, StoreStats};
use tollgate_wire::{identity::Identity, peer::Switches};

use super::Node;
use crate::{
    counters::LatencyReading,
    link::{Fingerprints, Link},
};

/// A node's numbers. Counters only grow; two of them may be one event apart.
#[derive(Clone, Debug)]
pub struct NodeReport {
    /// Fingerprint of its placement.
    pub placement: u64,
    /// Fingerprint of its policies.
    pub policies: u64,
    /// All members, this node first.
    pub members: Vec<MemberReport>,
    /// The peers that it asks.
    pub peers: Vec<PeerReport>,
    /// Its counters.
    pub store: StoreStats,
    /// Counters of local shares: keys that were decided without their owner.
    pub local_shares: u64,
    /// Checks of peers that it decided.
    pub decided_for_peers: u64,
    /// Checks of peers that were answered from what was decided before.
    pub repeated: u64,
    /// Checks of peers for keys that it does not own.
    pub not_owner: u64,
    /// Checks of peers that waited while it was paused.
    pub too_late: u64,
    /// Times that it was paused.
    pub pauses: u64,
    /// Charges that peers gave back.
    pub given_back: u64,
    /// Checks that it passed on to who decides.
    pub relayed: u64,
    /// Admissions that it told as degraded.
    pub degraded: u64,
    /// Keys that it refuses from memory.
    pub known_denials: u64,
    /// How the switches of the cluster stand.
    pub switches: Switches,
    /// Counts on their way.
    pub replica: ReplicaReport,
}

/// Counts on their way between a node and the others.
#[derive(Clone, Debug, Default)]
pub struct ReplicaReport {
    /// Slots that are to be its own and whose counts have not all come.
    pub incoming: u64,
    /// Slots that it decides in and that another is to own.
    pub outgoing: u64,
    /// Whether nothing is left to be copied before it can own its share.
    pub is_warm: bool,
    /// Series that were sent to others.
    pub sent: u64,
    /// Series that were taken in from others and were new.
    pub taken_in: u64,
    /// Series that others reported, which they counted while they did not hold the slot.
    pub reconciled: u64,
    /// Series that came and could not be kept.
    pub lost: u64,
    /// Slots in which it has counted what their owner has not confirmed yet.
    pub owed_slots: u64,
}

/// What one follower of a node is still to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowerReport {
    /// Series that wait.
    pub waiting_series: u64,
    /// Slots that are to be copied as a whole.
    pub slots_to_copy: u64,
}

/// A member as this node sees it.
#[derive(Clone, Debug)]
pub struct MemberReport {
    /// Its identity.
    pub identity: Identity,
    /// Whether checks can be sent to it now.
    pub is_reachable: bool,
    /// Slots that it owns.
    pub slots: usize,
    /// Fingerprint of its placement, as it told last.
    pub placement: Option<u64>,
    /// Fingerprint of its policies, as it told last.
    pub policies: Option<u64>,
}

/// The way to one peer.
#[derive(Clone, Debug)]
pub struct PeerReport {
    /// The peer.
    pub node: NodeId,
    /// Whether checks are sent to it now.
    pub is_usable: bool,
    /// From asking to hearing.
    pub latencies: LatencyReading,
    /// Asks that it did not answer in time.
    pub timeouts: u64,
    /// Times that its breaker opened.
    pub openings: u64,
    /// Connections made to it.
    pub connects: u64,
    /// What it is still to be told; `None` if it follows nothing of this node.
    pub follower: Option<FollowerReport>,
}

impl Node {
    /// Its numbers as of now.
    #[must_use]
    pub fn report(&self) -> NodeReport {
        let routes = self.routes.load();
        let placement = &routes.view.placement;
        let slots = |node: &NodeId| {
            placement
                .index_of(node)
                .map_or(0, |index| placement.slots_owned(index))
        };
        let policies = self.owner.policies_fingerprint.load(Ordering::Relaxed);
        let this = MemberReport {
            identity: routes.view.identity.clone(),
            is_reachable: true,
            slots: slots(&self.config.node),
            placement: Some(placement.fingerprint()),
            policies: Some(policies),
        };
        let others = routes.view.members.iter().map(|identity| {
            let link = routes.link_to(&identity.node);
            let told = link.and_then(|link| link.fingerprints());
            MemberReport {
                identity: identity.clone(),
                is_reachable: link.is_some_and(|link| link.is_usable()),
                slots: slots(&identity.node),
                placement: told.map(|Fingerprints { placement, .. }| placement),
                policies: told.map(|Fingerprints { policies, .. }| policies),
            }
        });
        let counters = &self.owner.counters;
        NodeReport {
            placement: placement.fingerprint(),
            policies,
            members: std::iter::once(this).chain(others).collect(),
            peers: routes.links().map(|link| self.peer_report(link)).collect(),
            store: self.owner.store.stats(),
            local_shares: self.shares.keys(),
            decided_for_peers: counters.decided_for_peers.value(),
            repeated: counters.repeated.value(),
            not_owner: counters.not_owner.value(),
            too_late: counters.too_late.value(),
            pauses: counters.pauses.value(),
            given_back: counters.given_back.value(),
            relayed: counters.relayed.value(),
            degraded: counters.degraded.value(),
            known_denials: number(self.known.denials.len()),
            switches: self.switches(),
            replica: self.replica_report(),
        }
    }
}

impl Node {
    fn replica_report(&self) -> ReplicaReport {
        let mover = &self.owner.mover;
        let (incoming, outgoing) = mover.moving();
        let counters = &mover.counters;
        ReplicaReport {
            incoming: number(incoming),
            outgoing: number(outgoing),
            is_warm: self.is_active() || mover.is_warm_for(&self.view()),
            sent: counters.sent.value(),
            taken_in: counters.taken.value(),
            reconciled: counters.reconciled.value(),
            lost: counters.refused.value(),
            owed_slots: number(mover.owed_slots()),
        }
    }

    fn peer_report(&self, link: &Link) -> PeerReport {
        PeerReport {
            node: link.peer().clone(),
            is_usable: link.is_usable(),
            latencies: link.counters.latencies.reading(),
            timeouts: link.counters.timeouts.value(),
            openings: link.counters.openings.value(),
            connects: link.counters.connects.value(),
            follower: self
                .owner
                .mover
                .behind(link.peer())
                .map(|(series, slots)| FollowerReport {
                    waiting_series: number(series),
                    slots_to_copy: number(slots),
                }),
        }
    }
}

fn number(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
