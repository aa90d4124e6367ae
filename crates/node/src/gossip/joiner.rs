//! The way in: asking seeds, and others that were known, for the member state.
//!
//! A round asks all of them at once. Invariants: one round at a time, [`MAX_TARGETS`] addresses in
//! each; joining is done when an active member is known by a copied state, when all that could be asked
//! answered and none is active (a cold start), or when nobody answered for the join timeout; a node
//! that everybody who answers refuses keeps asking.

mod notes;
mod round;

use std::{collections::BTreeSet, net::SocketAddr, sync::Arc};

use tokio::sync::mpsc;
use tollgate_cluster::{JoinNews, Joining, Seeds};
use tollgate_limit::{Nanos, NodeId};

pub(super) use self::round::Sought;
use self::{
    notes::{Notes, named},
    round::{MAX_TARGETS, Round},
};
use super::{copy::CopyError, events::Event, timing::SEEK_PERIOD};
use crate::{config::Seed, seeds::Resolve, transport::Transport};

/// Asks for the way in.
#[derive(Debug)]
pub(super) struct Joiner {
    seeds: Vec<Seed>,
    join_timeout: Nanos,
    joining: Joining,
    /// Nodes found since joining began.
    found: BTreeSet<NodeId>,
    notes: Notes,
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
            notes: Notes::default(),
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
        self.notes.clear();
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
        self.notes.answered();
        if self.found.insert(node.clone()) {
            self.joining.handle_found(now);
        }
        if knows_active {
            self.joining.handle_copied(now);
        }
    }

    /// The counts of the slots to come are here.
    pub(super) fn handle_warm(&mut self) {
        self.joining.handle_warm();
    }

    /// Somebody at this address did not take this node in.
    pub(super) fn handle_failure(&mut self, now: Nanos, address: SocketAddr, error: CopyError) {
        if error.may_heal() {
            tracing::debug!(%address, %error, "a seed was not reached");
            if self.notes.unanswered(address, &error) {
                self.joining.handle_refusals_over(now);
            }
            return;
        }
        self.joining.handle_refused();
        let shown = error.to_string();
        if self.notes.refused(address, error) {
            tracing::warn!(%address, error = shown, "a seed does not take this node in");
        } else {
            tracing::debug!(%address, error = shown, "a seed was not reached");
        }
    }

    /// The name of a seed leads nowhere.
    pub(super) fn handle_unknown_name(&mut self, host: String, error: &str) {
        tracing::debug!(host, error, "a seed's name was not found");
        self.notes.failed(host, &error);
    }

    /// A round is over; `complete` says whether everybody who was asked answered.
    pub(super) fn handle_round_over(&mut self, now: Nanos, complete: bool) {
        self.under_way = false;
        if complete {
            self.joining.handle_copied(now);
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Nanos) {
        match self.joining.handle_timeout(now) {
            Some(JoinNews::Refused) => self.notes.tell_refused(now),
            Some(JoinNews::Alone) if !self.seeds.is_empty() => {
                let seeds = self.seeds_named();
                self.notes.tell_alone(now, &seeds);
            }
            Some(JoinNews::Cold) => {
                tracing::warn!(
                    "the counts of this node's slots have not come in time: it goes on without"
                );
            }
            Some(JoinNews::Alone) | None => {}
        }
    }

    /// This node is active and knows nobody.
    pub(super) fn handle_alone(&mut self, now: Nanos) {
        if !self.seeds.is_empty() {
            let seeds = self.seeds_named();
            self.notes.tell_still_alone(now, &seeds);
        }
    }

    fn seeds_named(&self) -> String {
        named(self.seeds.iter().map(|seed| match seed {
            Seed::Address(address) => address.to_string(),
            Seed::Name { host, port } => format!("{host}:{port}"),
        }))
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
