//! Slots in motion: in which slots this node decides, and how they come and go.
//!
//! TODO(cluster-motion): see the contract of the motion.

mod states;

use std::sync::Arc;

use tollgate_limit::{Nanos, NodeId, SlotSet};
use tollgate_wire::identity::{BootId, Phase};

pub use self::states::{Hold, SlotStates};
use crate::placement::{MemberIndex, Placement};

/// How long a check waits for the counts of a slot that has just come to this node.
pub const HOLD: Nanos = Nanos::from_millis(5);

/// The cluster as this node sees it.
#[derive(Clone, Debug)]
pub struct MotionView {
    /// Who owns what: the active members.
    pub placement: Arc<Placement>,
    /// This node in it; `None` while it is not active.
    pub own: Option<MemberIndex>,
    /// This node's phase.
    pub phase: Phase,
    /// While joining: the placement with this node in it.
    pub prospective: Option<Arc<Placement>>,
    /// The other members, whatever their phase, in the order of their names.
    pub members: Vec<(NodeId, BootId, Phase)>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MotionAction {
    /// Let the store decide in these slots.
    Open(SlotSet),
    /// Do not let it any more; what it counted is kept.
    Close(SlotSet),
    /// Forget the counters of these slots.
    Forget(SlotSet),
    /// Order from a source to be kept up to date on just these slots.
    Subscribe(NodeId, SlotSet),
    /// Order a source to hand these slots over.
    Take(NodeId, SlotSet),
    /// Tell a source that its last word was taken in.
    Acked(NodeId, SlotSet),
    /// Offer a member slots that it owns and this node decides in.
    Offer(NodeId, SlotSet),
    /// Hand slots over to a follower: [`Source::give`](crate::Source::give), then `SlotStates` says so.
    Give(NodeId, SlotSet),
}

/// Where each slot is in its way to or from this node.
#[derive(Debug)]
pub struct Motion {
    states: Arc<SlotStates>,
}

impl Motion {
    /// A node that holds nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            states: Arc::default(),
        }
    }

    /// Where readers see how each slot is held.
    #[must_use]
    pub fn states(&self) -> Arc<SlotStates> {
        Arc::clone(&self.states)
    }

    /// The view has changed.
    pub fn handle_view(&mut self, now: Nanos, view: &MotionView) {
        let _ = (now, view);
    }

    /// The replica stream to a member is up: orders can be sent.
    pub fn handle_connected(&mut self, now: Nanos, source: &NodeId, boot: BootId) {
        let _ = (now, source, boot);
    }

    /// It is gone; what was ordered is forgotten by the source.
    pub fn handle_disconnected(&mut self, now: Nanos, source: &NodeId) {
        let _ = (now, source);
    }

    /// A source has copied slots.
    pub fn handle_copied(&mut self, now: Nanos, source: &NodeId, slots: &SlotSet) {
        let _ = (now, source, slots);
    }

    /// A source has said its last word on slots.
    pub fn handle_final(&mut self, now: Nanos, source: &NodeId, slots: &SlotSet) {
        let _ = (now, source, slots);
    }

    /// A follower orders slots to be handed over.
    pub fn handle_take(&mut self, now: Nanos, follower: &NodeId, slots: &SlotSet) {
        let _ = (now, follower, slots);
    }

    /// A follower has taken in the last word on slots.
    pub fn handle_acked(&mut self, now: Nanos, follower: &NodeId, slots: &SlotSet) {
        let _ = (now, follower, slots);
    }

    /// A member decides in slots that are this node's.
    pub fn handle_offer(&mut self, now: Nanos, member: &NodeId, slots: &SlotSet) {
        let _ = (now, member, slots);
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Nanos) {
        let _ = now;
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Nanos> {
        None
    }

    /// What is to be done next, in this order.
    pub fn poll_action(&mut self) -> Option<MotionAction> {
        None
    }

    /// While joining: whether the counts of all slots to come have been copied.
    #[must_use]
    pub fn is_warm(&self) -> bool {
        true
    }

    /// While leaving: whether all slots have been handed over.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        true
    }

    /// Slots on their way to this node, and away from it.
    #[must_use]
    pub fn moving(&self) -> (usize, usize) {
        (0, 0)
    }
}

impl Default for Motion {
    fn default() -> Self {
        Self::new()
    }
}
