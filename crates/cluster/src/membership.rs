//! Membership: who is in the cluster, and who of them owns slots.
//!
//! Fed by gossip's news, by the evidence of our own connections and by time. Gossip alone never moves
//! slots: a member that is said to be down keeps them for [`GRACE`], since one that was accused wrongly
//! is back within a round trip, and as long as datagrams come from it ([`VETO`]), since one node with a
//! broken receive path can declare everybody down. Knows nothing of the gossip library and of clocks.
//!
//! INV-ONE-SELF: of a node there is one identity, the newest; of an address there is one node. The
//! placement in force is that of the members in phase active, this node included.

mod change;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use tollgate_limit::{Nanos, NodeId};
use tollgate_wire::identity::{BootId, Identity, Phase};

pub use self::change::{Change, Gone};
use crate::placement::{MAX_MEMBERS, Member, Placement};

/// How long a member that gossip calls down keeps its slots at least.
pub const GRACE: Nanos = Nanos::from_millis(300);

/// A member of which something was heard so lately keeps its slots, whatever gossip says.
pub const VETO: Nanos = Nanos::from_millis(1_000);

/// Whether a member is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// It is there.
    Up,
    /// Gossip says down; grace or veto is not over.
    DownPending,
}

/// A member as it is known.
#[derive(Clone, Copy, Debug)]
pub struct MemberView<'a> {
    /// Who it is.
    pub identity: &'a Identity,
    /// Whether it is there.
    pub state: MemberState,
}

/// The members of the cluster as one node sees them.
///
/// Events: [`handle_up`](Self::handle_up), [`handle_down`](Self::handle_down),
/// [`handle_heard`](Self::handle_heard), [`handle_own`](Self::handle_own),
/// [`handle_timeout`](Self::handle_timeout). After each event but `handle_heard`, call
/// [`poll_change`](Self::poll_change) until `None`, then look at
/// [`poll_timeout`](Self::poll_timeout).
#[derive(Debug)]
pub struct Membership {
    own: Identity,
    peers: BTreeMap<NodeId, Peer>,
    placement: Arc<Placement>,
    /// Whether the placement may be another since it was built.
    stale: bool,
    /// Whether [`Change::MembersFull`] was told.
    full_told: bool,
    changes: VecDeque<Change>,
}

#[derive(Debug)]
struct Peer {
    identity: Identity,
    last_heard: Option<Nanos>,
    doubt: Option<Doubt>,
}

/// Gossip says down.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    /// When to look whether it is over.
    decide_at: Nanos,
    /// Whether [`Change::MemberVetoed`] was told.
    vetoed: bool,
}

impl Membership {
    /// This node alone. Its placement is in force at once.
    #[must_use]
    pub fn new(own: Identity) -> Self {
        let mut membership = Self {
            own,
            peers: BTreeMap::new(),
            placement: Arc::new(Placement::new(&[])),
            stale: true,
            full_told: false,
            changes: VecDeque::new(),
        };
        membership.rebuild();
        membership
    }

    /// Gossip says that a member is there, maybe as another identity than before: the newer one, by
    /// generation, boot and phase, stays. Only gossip's word may come here; a copied member list goes
    /// through gossip first, which remembers who is down.
    pub fn handle_up(&mut self, _now: Nanos, identity: Identity) {
        if identity.node == self.own.node || identity.peer == self.own.peer {
            return;
        }
        if let Some(known) = self.peers.get(&identity.node)
            && age(&identity) < age(&known.identity)
        {
            return;
        }
        if !self.win_address(&identity) {
            return;
        }
        match self.peers.get_mut(&identity.node) {
            Some(known) if age(&identity) == age(&known.identity) => {
                if known.doubt.take().is_some() {
                    self.tell(Change::MemberBack(identity.node));
                }
            }
            Some(known) => {
                let was = std::mem::replace(&mut known.identity, identity.clone());
                known.doubt = None;
                self.stale = true;
                self.tell(Change::MemberChanged { was, is: identity });
            }
            None => self.add(identity),
        }
    }

    /// Gossip says that this identity is down. What it says of an older one than is known, or of this
    /// node, means nothing here.
    pub fn handle_down(&mut self, now: Nanos, identity: &Identity) {
        let Some(peer) = self.peers.get_mut(&identity.node) else {
            return;
        };
        if age(identity) < age_in_any_phase(&peer.identity) || peer.doubt.is_some() {
            return;
        }
        peer.doubt = Some(Doubt {
            decide_at: now.saturating_add(GRACE),
            vetoed: false,
        });
        if peer.identity.phase == Phase::Leaving {
            return;
        }
        self.tell(Change::MemberDoubted(identity.node.clone()));
    }

    /// A datagram came from a peer: evidence of our own that it lives.
    pub fn handle_heard(&mut self, now: Nanos, node: &NodeId) {
        if let Some(peer) = self.peers.get_mut(node) {
            peer.last_heard = peer.last_heard.max(Some(now));
        }
    }

    /// This node has another identity: another phase or generation.
    pub fn handle_own(&mut self, own: Identity) {
        debug_assert_eq!(own.node, self.own.node, "a node keeps its name");
        self.own = own;
        self.stale = true;
    }

    /// Time has passed: decides on the doubts that are due.
    pub fn handle_timeout(&mut self, now: Nanos) {
        let mut gone = Vec::new();
        let mut vetoed = Vec::new();
        for (node, peer) in &mut self.peers {
            let Some(doubt) = peer.doubt.as_mut().filter(|doubt| doubt.decide_at <= now) else {
                continue;
            };
            let veto_ends = peer.last_heard.map(|heard| heard.saturating_add(VETO));
            match veto_ends.filter(|veto_ends| now < *veto_ends) {
                None if peer.identity.phase == Phase::Leaving => {
                    gone.push((node.clone(), Gone::Left));
                }
                None => gone.push((node.clone(), Gone::Down)),
                Some(veto_ends) => {
                    doubt.decide_at = veto_ends;
                    let told = std::mem::replace(&mut doubt.vetoed, true);
                    if !told && peer.identity.phase != Phase::Leaving {
                        vetoed.push(node.clone());
                    }
                }
            }
        }
        for node in vetoed {
            self.tell(Change::MemberVetoed(node));
        }
        for (node, why) in gone {
            self.remove(&node, why);
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let doubts = self.peers.values().filter_map(|peer| peer.doubt);
        doubts.map(|doubt| doubt.decide_at).min()
    }

    /// The next change of state. The placement is rebuilt here, once for all events before, when the
    /// changes of members have been told.
    pub fn poll_change(&mut self) -> Option<Change> {
        if let Some(change) = self.changes.pop_front() {
            return Some(change);
        }
        if !self.stale {
            return None;
        }
        let before = self.placement.fingerprint();
        self.rebuild();
        let fingerprint = self.placement.fingerprint();
        (fingerprint != before).then_some(Change::PlacementChanged { fingerprint })
    }

    /// The placement in force: as of the last [`poll_change`](Self::poll_change) that gave `None` or a
    /// changed placement.
    #[must_use]
    pub fn placement(&self) -> Arc<Placement> {
        Arc::clone(&self.placement)
    }

    /// This node.
    #[must_use]
    pub const fn own(&self) -> &Identity {
        &self.own
    }

    /// All members: this node first, then its peers.
    pub fn members(&self) -> impl Iterator<Item = MemberView<'_>> {
        let own = MemberView {
            identity: &self.own,
            state: MemberState::Up,
        };
        std::iter::once(own).chain(self.peers())
    }

    /// The other members, in the order of node ids.
    pub fn peers(&self) -> impl Iterator<Item = MemberView<'_>> {
        self.peers.values().map(Peer::view)
    }

    /// The member of this name, this node included.
    #[must_use]
    pub fn member(&self, node: &NodeId) -> Option<MemberView<'_>> {
        self.members().find(|member| member.identity.node == *node)
    }

    fn add(&mut self, identity: Identity) {
        if self.peers.len() >= MAX_PEERS {
            if !std::mem::replace(&mut self.full_told, true) {
                self.tell(Change::MembersFull(identity.node));
            }
            return;
        }
        let peer = Peer {
            identity: identity.clone(),
            last_heard: None,
            doubt: None,
        };
        self.peers.insert(identity.node.clone(), peer);
        self.stale = true;
        self.tell(Change::MemberUp(identity));
    }

    fn remove(&mut self, node: &NodeId, why: Gone) {
        if let Some(peer) = self.peers.remove(node) {
            let was = peer.identity;
            self.stale = true;
            self.full_told = false;
            self.tell(Change::MemberGone { was, why });
        }
    }

    /// Whether a newcomer may have its address. Another node there goes if it is down or older.
    fn win_address(&mut self, newcomer: &Identity) -> bool {
        let holder = self.peers.values().find(|peer| {
            peer.identity.peer == newcomer.peer && peer.identity.node != newcomer.node
        });
        let Some(holder) = holder else { return true };
        let known = &holder.identity;
        let newer = (known.generation, &known.node) < (newcomer.generation, &newcomer.node);
        if !newer && holder.doubt.is_none() {
            return false;
        }
        let node = known.node.clone();
        self.remove(&node, Gone::AddressTaken);
        true
    }

    fn tell(&mut self, change: Change) {
        if self.changes.len() >= MAX_CHANGES {
            self.changes.pop_front();
        }
        self.changes.push_back(change);
    }

    /// Brings the placement up to the set of active members, by single changes if there are few.
    fn rebuild(&mut self) {
        self.stale = false;
        let active = self.members().map(|member| member.identity);
        let active: BTreeMap<NodeId, u8> = active
            .filter(|identity| identity.phase == Phase::Active)
            .map(|identity| (identity.node.clone(), identity.weight.max(1)))
            .collect();
        let placed: BTreeMap<NodeId, u8> = self.placement.members().iter().map(pair).collect();
        let joined = active
            .iter()
            .filter(|(node, w)| placed.get(node) != Some(w));
        let joined: Vec<_> = joined.collect();
        let left: Vec<_> = placed.keys().filter(|n| !active.contains_key(n)).collect();
        if joined.is_empty() && left.is_empty() {
            return;
        }
        // A single change costs about as much as three members of a full build.
        let changes = joined.len().saturating_add(left.len());
        if changes.saturating_mul(3) > active.len() {
            let active: Vec<_> = active.into_iter().collect();
            self.placement = Arc::new(Placement::new(&active));
            return;
        }
        let mut placement = Placement::clone(&self.placement);
        for node in left {
            placement = placement.without_member(node);
        }
        for (node, weight) in joined {
            placement = placement.with_member(node, *weight);
        }
        self.placement = Arc::new(placement);
    }
}

impl Peer {
    const fn view(&self) -> MemberView<'_> {
        MemberView {
            identity: &self.identity,
            state: match self.doubt {
                None => MemberState::Up,
                Some(_) => MemberState::DownPending,
            },
        }
    }
}

fn pair(member: &Member) -> (NodeId, u8) {
    (member.node.clone(), member.weight)
}

/// Of two identities of one node the greater is the newer.
const fn age(identity: &Identity) -> (u64, BootId, Phase) {
    (identity.generation, identity.boot, identity.phase)
}

/// Down is said of a boot, in whatever phase gossip knew it.
const fn age_in_any_phase(identity: &Identity) -> (u64, BootId, Phase) {
    (identity.generation, identity.boot, Phase::Joining)
}

/// This node takes one place.
const MAX_PEERS: usize = MAX_MEMBERS - 1;

/// The most changes that wait to be polled; beyond, the oldest are not told.
const MAX_CHANGES: usize = 4 * MAX_MEMBERS;

#[cfg(test)]
mod tests;
