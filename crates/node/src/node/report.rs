//! What a node tells of itself: plain numbers for metrics and for the members' list.

use std::sync::atomic::Ordering;

use tollgate_limit::{Nanos, NodeId, StoreStats};
use tollgate_wire::identity::Identity;

use super::Node;
use crate::{counters::LatencyReading, link::Fingerprints};

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
    /// Counts on their way between nodes.
    pub replicas: ReplicaReport,
    /// Keys whose denial it knows.
    pub known_denials: usize,
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
    /// Verdicts that admitted although counts may have been missing.
    pub degraded_admissions: u64,
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

/// Counts on their way between this node and others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicaReport {
    /// Slots that are to be its own and whose counts have not all come.
    pub incoming_slots: usize,
    /// Slots that it decides in and that another is to own.
    pub outgoing_slots: usize,
    /// While it joins: whether the counts of all slots to come are here.
    pub is_warm: bool,
    /// Series sent.
    pub sent: u64,
    /// Slots on which the last word was sent to their next owner.
    pub handed_over_slots: u64,
    /// Series taken in that were new here.
    pub taken_in: u64,
    /// Of these, those that others reported as counted without holding the slot.
    pub reconciled: u64,
    /// Series that came and could not be kept.
    pub lost: u64,
    /// Slots in which it counted what their owner has not confirmed.
    pub owed_slots: usize,
}

/// What one follower is still to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowerReport {
    /// For how long the oldest change has waited.
    pub lag: Nanos,
    /// Series that wait.
    pub waiting_series: usize,
    /// Slots that are to be copied as a whole.
    pub slots_to_copy: usize,
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
            replicas: self.owner.mover.report(),
            known_denials: self.known.denials.len(),
            store: self.owner.store.stats(),
            local_shares: self.shares.keys(),
            decided_for_peers: counters.decided_for_peers.value(),
            repeated: counters.repeated.value(),
            not_owner: counters.not_owner.value(),
            too_late: counters.too_late.value(),
            pauses: counters.pauses.value(),
            given_back: counters.given_back.value(),
            degraded_admissions: counters.degraded_admissions.value(),
        }
    }

    fn peer_report(&self, link: &crate::link::Link) -> PeerReport {
        PeerReport {
            node: link.peer().clone(),
            is_usable: link.is_usable(),
            latencies: link.counters.latencies.reading(),
            timeouts: link.counters.timeouts.value(),
            openings: link.counters.openings.value(),
            connects: link.counters.connects.value(),
            follower: self.owner.mover.behind(self.now(), link.peer()),
        }
    }
}
