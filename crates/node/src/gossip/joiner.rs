//! The way in: asking seeds, and others that were known, for the member state.
//!
//! A round asks all of them at once. Invariants: one round at a time, [`MAX_TARGETS`] addresses in
//! each; joining is done when an active member is known by a copied state, when all that could be asked
//! answered and none is active (a cold start), or when nobody was found for the join timeout.

mod round;

use std::{collections::BTreeSet, net::SocketAddr, sync::Arc};

use tokio::sync::mpsc;
use tollgate_cluster::{Joining, Seeds};
use tollgate_limit::{Nanos, NodeId};

pub(super) use self::round::Sought;
use self::round::{MAX_TARGETS, Round};
use super::{events::Event, timing::SEEK_PERIOD};
use crate::{config::Seed, seeds::Resolve, transport::Transport};

/// Asks for the way in.
#[derive(Debug)]
pub(super) struct Joiner {
    seeds: Vec<Seed>,
    join_timeout: Nanos,
    joining: Joining,
    /// Nodes found since joining began.
    found: BTreeSet<NodeId>,
    /// Addresses whose refusal was told; as many as a round has at most.
    told: BTreeSet<SocketAddr>,
    /// No round before this.
    next_round: Nanos,
    under_way: bool,
    transport: Arc<Transport>,
    resolver: Arc<dyn Resolve>,
    fingerprint: u64,
    events: mpsc::Sender<Event>,
}

/// What a joiner works with.
#[derive(Debug)]
pub(super) struct JoinerStart {
    pub(super) seeds: Vec<Seed>,
    pub(super) join_timeout: Nanos,
    pub(super) transport: Arc<Transport>,
    pub(super) resolver: Arc<dyn Resolve>,
    pub(super) fingerprint: u64,
    pub(super) events: mpsc::Sender<Event>,
}

impl Joiner {
    pub(super) fn new(now: Nanos, start: JoinerStart) -> Self {
        let others = if start.seeds.is_empty() {
            Seeds::None
        } else {
            Seeds::Some
        };
        Self {
            seeds: start.seeds,
            join_timeout: start.join_timeout,
            joining: Joining::new(now, others, start.join_timeout),
            found: BTreeSet::new(),
            told: BTreeSet::new(),
            next_round: now,
            under_way: false,
            transport: start.transport,
            resolver: start.resolver,
            fingerprint: start.fingerprint,
            events: start.events,
        }
    }

    /// Starts joining again; `known` says whether other members were known.
    pub(super) fn restart(&mut self, now: Nanos, known: bool) {
        let others = if known || !self.seeds.is_empty() {
            Seeds::Some
        } else {
            Seeds::None
        };
        self.joining = Joining::new(now, others, self.join_timeout);
        self.found.clear();
        self.next_round = now;
    }

    /// Whether the node may be active.
    pub(super) const fn is_done(&self) -> bool {
        self.joining.is_done()
    }

    /// An active member has become known: ask at once.
    pub(super) fn handle_active_known(&mut self, now: Nanos) {
        if !self.is_done() {
            self.next_round = self.next_round.min(now);
        }
    }

    /// A node answered; `knows_active` says whether its state names an active member.
    pub(super) fn handle_answer(&mut self, now: Nanos, node: &NodeId, knows_active: bool) {
        if self.found.insert(node.clone()) {
            self.joining.handle_found(now);
        }
        if knows_active {
            self.joining.handle_copied(now);
        }
    }

    /// Somebody at this address did not take this node in. `true` if that is news.
    pub(super) fn handle_refusal(&mut self, address: SocketAddr) -> bool {
        if self.told.len() >= MAX_TARGETS {
            self.told.clear();
        }
        self.told.insert(address)
    }

    /// A round is over; `complete` says whether everybody who was asked answered.
    pub(super) fn handle_round_over(&mut self, now: Nanos, complete: bool) {
        self.under_way = false;
        if complete {
            self.joining.handle_copied(now);
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Nanos) {
        self.joining.handle_timeout(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) and [`seek`](Self::seek) next.
    pub(super) fn poll_timeout(&self, seeking: bool) -> Option<Nanos> {
        let round = (seeking && !self.under_way).then_some(self.next_round);
        round.into_iter().chain(self.joining.poll_timeout()).min()
    }

    /// Starts a round if it is time for one: seeds, and `known` addresses beside them.
    pub(super) fn seek(&mut self, now: Nanos, own: SocketAddr, known: BTreeSet<SocketAddr>) {
        if self.under_way || now < self.next_round {
            return;
        }
        self.next_round = now.saturating_add(SEEK_PERIOD);
        if self.seeds.is_empty() && known.is_empty() {
            return;
        }
        self.under_way = true;
        let round = Round {
            seeds: self.seeds.clone(),
            addresses: known.into_iter().take(MAX_TARGETS).collect(),
            own,
            transport: self.transport.clone(),
            resolver: self.resolver.clone(),
            fingerprint: self.fingerprint,
        };
        tokio::spawn(round.run(self.events.clone()));
    }
}
