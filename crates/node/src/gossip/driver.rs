//! The one task of control: takes events, runs the gossip library, the membership and the joining,
//! and publishes.
//!
//! Waits in one place only. Invariants: after each wake-up the events that are there come before the timers
//! that are due, so that an answer that arrived is not counted as missing; what the library wants sent,
//! timed or told is done before the next wait; if the process slept longer than others wait for a
//! suspect, it renews itself before it looks at anything else.

mod life;
mod news;
mod packets;

use std::{collections::BTreeSet, sync::Arc};

use foca::{AccumulatingRuntime, Foca, NoCustomBroadcast};
use rand::{SeedableRng as _, rngs::StdRng};
use tokio::{sync::mpsc, time::sleep_until};
use tollgate_cluster::{Membership, cluster_fingerprint};
use tollgate_limit::{Nanos, NodeId};
use tollgate_wire::identity::{Identity, Phase};

use self::life::Life;
use super::{
    ControlStart, LastHeard,
    codec::GossipCodec,
    events::{Command, Event, Warm},
    identity::Gossiped,
    joiner::{Joiner, JoinerStart},
    once_a_minute::OnceAMinute,
    pool::Pool,
    publisher::{Published, Publisher},
    timers::Timers,
    timing,
};
use crate::{
    clock::{Clock as _, TokioClock},
    transport::NodeConnection,
};

/// Events that wait for the driver; above it the connections read slower.
const EVENTS: usize = 1_024;
/// Events that are handled before timers have their turn.
const BATCH: usize = 256;

type Library = Foca<Gossiped, GossipCodec, StdRng, NoCustomBroadcast>;

/// Control at work.
pub(super) struct Driver {
    clock: TokioClock,
    fingerprint: u64,
    last_heard: Arc<dyn LastHeard>,
    commands: mpsc::Receiver<Command>,
    accepted: mpsc::Receiver<NodeConnection>,
    events: mpsc::Receiver<Event>,
    events_in: mpsc::Sender<Event>,
    random: StdRng,
    foca: Library,
    outbox: AccumulatingRuntime<Gossiped>,
    timers: Timers,
    /// For how many members the library is set.
    sized_for: usize,
    membership: Membership,
    joiner: Joiner,
    pool: Pool,
    transport: Arc<crate::transport::Transport>,
    publisher: Publisher,
    /// Whether the view is older than what is known.
    unpublished: bool,
    /// Whose state is being copied.
    copying: BTreeSet<NodeId>,
    /// Nodes with other cluster settings that the log names already.
    told_settings: BTreeSet<NodeId>,
    told_twin: OnceAMinute,
    /// By what view the data plane was warm last.
    warm: Option<Warm>,
    life: Life,
}

/// Why the driver woke up.
enum Wake {
    Event(Event),
    Command(Command),
    /// No handle is left.
    Abandoned,
    Accepted(NodeConnection),
    Time,
}

impl Driver {
    /// A driver that has not run, and where it will publish.
    pub(super) fn new(start: ControlStart, commands: mpsc::Receiver<Command>) -> (Self, Published) {
        let now = start.clock.now();
        let (events_in, events) = mpsc::channel(EVENTS);
        let fingerprint = cluster_fingerprint(&start.config.cluster, &start.config.hash_key);
        let joiner = Joiner::new(
            now,
            JoinerStart {
                seeds: start.config.seeds.clone(),
                join_timeout: start.config.timeouts.join.into(),
                transport: start.transport.clone(),
                resolver: start.resolver,
                fingerprint,
                events: events_in.clone(),
            },
        );
        let mut own = start.identity;
        if joiner.is_done() {
            own.phase = Phase::Active;
        }
        let mut random = StdRng::seed_from_u64(start.seed);
        let membership = Membership::new(own.clone());
        let (publisher, published) = Publisher::new(&membership);
        let driver = Self {
            foca: library(own, &mut random),
            clock: start.clock,
            fingerprint,
            last_heard: start.last_heard,
            commands,
            accepted: start.accepted,
            events,
            pool: Pool::new(start.transport.clone(), events_in.clone()),
            transport: start.transport,
            events_in,
            random,
            outbox: AccumulatingRuntime::new(),
            timers: Timers::default(),
            sized_for: 1,
            membership,
            joiner,
            publisher,
            unpublished: false,
            copying: BTreeSet::new(),
            told_settings: BTreeSet::new(),
            told_twin: OnceAMinute::default(),
            warm: None,
            life: Life::Member,
        };
        (driver, published)
    }

    /// Runs until it has departed or no handle is left.
    pub(super) async fn run(mut self) {
        let own = self.membership.own();
        tracing::info!(
            node_id = %own.node,
            generation = own.generation,
            phase = own.phase.as_str(),
            peer = %own.peer,
            "control has started"
        );
        while !self.life.is_over() {
            let deadline = self.next_deadline(self.clock.now());
            let wake = self.wait(deadline).await;
            let now = self.clock.now();
            self.notice_sleep(now, deadline);
            if matches!(wake, Wake::Abandoned) {
                break;
            }
            self.handle(now, wake);
            for _ in 0..BATCH {
                let Ok(event) = self.events.try_recv() else {
                    break;
                };
                self.handle(now, Wake::Event(event));
            }
            self.handle_time(now);
            self.settle(now);
        }
        tracing::info!(node_id = %self.membership.own().node, "control has ended");
    }

    async fn wait(&mut self, deadline: Nanos) -> Wake {
        tokio::select! {
            biased;
            Some(event) = self.events.recv() => Wake::Event(event),
            command = self.commands.recv() => command.map_or(Wake::Abandoned, Wake::Command),
            Some(accepted) = self.accepted.recv() => Wake::Accepted(accepted),
            () = sleep_until(self.clock.instant(deadline)) => Wake::Time,
        }
    }

    fn next_deadline(&self, now: Nanos) -> Nanos {
        let deadlines = [
            self.timers.next_deadline(),
            self.membership.poll_timeout(),
            self.pool.poll_timeout(),
            self.joiner.poll_timeout(self.is_seeking()),
            self.life.next_goodbye(),
        ];
        let heartbeat = now.saturating_add(timing::HEARTBEAT);
        deadlines.into_iter().flatten().fold(heartbeat, Nanos::min)
    }

    fn handle(&mut self, now: Nanos, wake: Wake) {
        match wake {
            Wake::Event(event) => self.handle_event(now, event),
            Wake::Command(command) => self.handle_command(now, command),
            Wake::Accepted(accepted) => self.pool.add(now, accepted),
            Wake::Abandoned | Wake::Time => {}
        }
        self.drain(now);
    }

    fn handle_event(&mut self, now: Nanos, event: Event) {
        match event {
            Event::Dialled { node, result } => self.pool.handle_dialled(now, &node, result),
            Event::Packet { line, packet } => self.handle_packet(now, &line, &packet),
            Event::StateAsked(asked) => self.answer_state(asked),
            Event::Closed { line, error } => self.handle_closed(now, &line, &error),
            Event::Copied { node, result } => self.handle_copied(now, &node, result),
            Event::Sought(sought) => self.handle_sought(now, sought),
        }
    }

    fn handle_command(&mut self, now: Nanos, command: Command) {
        match command {
            Command::Pull(node) => self.pull(&node),
            Command::Renew => self.renew(now, "asked to"),
            Command::Warm(warm) => self.warm = Some(warm),
            Command::Leave(done) => self.leave(now, done),
            Command::Depart(done) => self.depart(now, done),
            #[cfg(test)]
            Command::Stall(span) => super::tests::stall(span),
        }
    }

    /// Everything that is due.
    fn handle_time(&mut self, now: Nanos) {
        while let Some(timer) = self.timers.pop_due(now) {
            if let Err(error) = self.foca.handle_timer(timer, &mut self.outbox) {
                tracing::debug!(%error, "a gossip timer went wrong");
            }
            self.drain(now);
        }
        self.say_goodbye(now);
        self.joiner.handle_timeout(now);
        if self.is_seeking() {
            let known = self.known_addresses();
            self.joiner.seek(now, self.membership.own().peer, known);
            if self.joiner.is_done() {
                self.joiner.handle_alone(now);
            }
        }
        self.pool.handle_timeout(now);
        self.pool.forget_unused(now);
    }

    /// Whether others are looked for: while joining, and while there is nobody.
    fn is_seeking(&self) -> bool {
        matches!(self.life, Life::Member)
            && (!self.joiner.is_done() || self.foca.num_members() == 0)
    }
}

/// The gossip library with nothing known, for this identity.
fn library(own: Identity, random: &mut StdRng) -> Library {
    Foca::new(
        Gossiped(own),
        timing::config(1),
        StdRng::from_rng(random),
        GossipCodec,
    )
}
