//! One node of the pure world: the shipped parts, and what must lie between them.
//!
//! The parts are those of the program: store, motion, sources, breaker, rings, pause watch, known denials,
//! fallback. What lies between is in the order of the protocol: [`entry`] asks for clients, [`owner`] answers
//! other nodes, [`copies`] moves slots and counts, [`amends`] gives back, [`members`] keeps the view. A node
//! reads its own clock, takes inputs and gives outputs; it knows nothing of queue, network and faults.

mod amends;
mod copies;
mod entry;
mod members;
mod owner;
mod ports;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use tollgate_cluster::{
    AmendWindow, Breaker, DecidedRing, Denials, HEARTBEAT, LastAnswers, Motion, PauseWatch,
    SlotStates, Source,
};
use tollgate_limit::{Ask, KeyHash, Nanos, NodeId, SlotSet, Store, StoreConfig};
use tollgate_wire::identity::{BootId, Phase};

pub(super) use self::ports::{
    ClientAmend, ClientCheck, ClientLimit, Input, LimitSaid, Output, Start, Timer,
};
use self::{
    amends::Amending,
    copies::Copies,
    entry::{Asked, Entry},
    members::View,
    owner::{Parked, PassedOn},
};
use super::{
    frames::{Frame, Origin, Reply},
    network::{Heading, LinkId},
    oracle::News,
    placements::name_of,
};

/// Within which a check is answered.
pub(super) const CHECK_DEADLINE: Nanos = Nanos::from_millis(50);
/// How long an owner is waited for.
const FORWARD_TIMEOUT: Nanos = Nanos::from_millis(20);
/// How long a standby is waited for.
const STANDBY_TIMEOUT: Nanos = Nanos::from_millis(20);

/// A peer, as both ends of a link see it.
#[derive(Debug)]
struct Peer {
    name: NodeId,
    /// The boot that this node's link to it is connected to.
    boot: Option<BootId>,
    breaker: Breaker,
    last_heard: Nanos,
    next_number: u64,
    /// The boot that follows this node, and what it is told.
    follower: Option<(BootId, Source)>,
    next_report: u64,
}

/// A node.
#[derive(Debug)]
pub(super) struct Node {
    me: usize,
    name: NodeId,
    boot: BootId,
    /// What its clock shows at the world's origin.
    offset: Nanos,
    store: Store,
    shares: Store,
    last_answers: LastAnswers,
    denials: Denials,
    motion: Motion,
    states: Arc<SlotStates>,
    watch: PauseWatch,
    last_beat: Nanos,
    peers: Vec<Peer>,
    view: View,
    rings: BTreeMap<Origin, DecidedRing>,
    passed_on: PassedOn,
    windows: BTreeMap<Origin, AmendWindow>,
    entries: BTreeMap<u64, Entry>,
    /// By peer and number.
    asked: BTreeMap<(usize, u64), Asked>,
    parked: BTreeMap<u64, Parked>,
    next_parked: u64,
    waiting: BTreeMap<KeyHash, Vec<u64>>,
    /// Charges that were told: boot, peer and number.
    told: VecDeque<(BootId, (usize, u64))>,
    amending: Amending,
    copies: Copies,
    out: Vec<Output>,
}

impl Node {
    /// A node that starts at `now` of its clock.
    pub(super) fn new(now: Nanos, start: Start) -> Self {
        let config = StoreConfig {
            unix_origin: start.unix_origin,
            writer: start.boot.0,
            first_permit: start.boot.0,
            // What a node has unless told otherwise: logs of many entries are not to push each other out.
            max_bytes: 256 * 1024 * 1024,
        };
        let peer = |peer| Peer {
            name: name_of(peer),
            boot: None,
            breaker: Breaker::new(),
            last_heard: Nanos::ZERO,
            next_number: 1,
            follower: None,
            next_report: 1,
        };
        let motion = Motion::new();
        let mut node = Self {
            me: start.me,
            name: name_of(start.me),
            boot: start.boot,
            offset: start.offset,
            store: Store::new(&config),
            shares: Store::new(&StoreConfig {
                // A boot is far below this, and so are its epochs.
                writer: config.writer | 1 << 63,
                ..config
            }),
            last_answers: LastAnswers::new(),
            denials: Denials::new(),
            states: motion.states(),
            motion,
            watch: PauseWatch::new(now, CHECK_DEADLINE),
            last_beat: now,
            peers: (0..start.nodes).map(peer).collect(),
            view: View::new(start.nodes, start.phase),
            rings: BTreeMap::new(),
            passed_on: PassedOn::new(),
            windows: BTreeMap::new(),
            entries: BTreeMap::new(),
            asked: BTreeMap::new(),
            parked: BTreeMap::new(),
            next_parked: 0,
            waiting: BTreeMap::new(),
            told: VecDeque::new(),
            amending: Amending::new(start.nodes),
            copies: Copies::default(),
            out: Vec::new(),
        };
        // Until the motion opens what this node is to decide.
        node.store.close(&SlotSet::all());
        node.start(now, &start.known);
        node
    }

    pub(super) const fn boot(&self) -> BootId {
        self.boot
    }

    /// What its clock shows at an instant of the world's.
    pub(super) const fn clock(&self, world: Nanos) -> Nanos {
        world.saturating_add(self.offset)
    }

    /// The world's instant of one of its clock.
    pub(super) const fn world(&self, now: Nanos) -> Nanos {
        now.saturating_sub(self.offset)
    }

    /// Whether it decides for a key.
    pub(super) fn holds(&self, key: KeyHash) -> bool {
        self.states.holds(key.slot())
    }

    /// What it counts of a key.
    pub(super) fn counted(&self, now: Nanos, ask: &Ask) -> u64 {
        let read = self.store.read(now, ask.key, &ask.rule);
        read.map_or(0, |verdict| verdict.used)
    }

    pub(super) fn fingerprint(&self) -> u64 {
        self.view.placement().fingerprint()
    }

    pub(super) fn phase(&self) -> Phase {
        self.view.phase()
    }

    pub(super) fn known(&self) -> Vec<News> {
        self.view.known()
    }

    /// Whether slots are on their way, or counts still to be told.
    pub(super) fn is_moving(&self) -> bool {
        self.motion.moving() != (0, 0) || self.copies.owes()
    }

    /// What it has on its way, in words.
    pub(super) fn describe(&self) -> String {
        let (phase, moving) = (self.view.phase(), self.motion.moving());
        format!("{} {phase:?} {moving:?} {:?}", self.name, self.copies)
    }

    /// What it wants since it was made.
    pub(super) fn take_outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.out)
    }

    /// Its heart has beaten up to now, unless it was stopped.
    pub(super) fn beat(&mut self, now: Nanos) {
        while self.last_beat.saturating_add(HEARTBEAT) <= now {
            self.last_beat = self.last_beat.saturating_add(HEARTBEAT);
            let _no_pause = self.watch.beat(self.last_beat);
        }
    }

    /// It runs again: its heart beats once.
    pub(super) fn wake(&mut self, now: Nanos) {
        let _pause = self.watch.beat(now);
        self.last_beat = now;
    }

    /// Something happens.
    pub(super) fn handle(&mut self, now: Nanos, input: Input) -> Vec<Output> {
        match input {
            Input::Connected(link, boot) => self.connected(now, link, boot),
            Input::Lost(link) => self.lost(now, link),
            Input::Frame(link, frame) => self.frame(now, link, frame),
            Input::Timer(timer) => self.timer(now, timer),
            Input::News(news) => self.news(now, news),
            Input::Check(check) => self.check(now, check),
            Input::Amend(amend) => self.client_amends(now, &amend),
            Input::Leave => self.leave(now),
            Input::Renew => self.renew(now),
        }
        self.deliver(now);
        std::mem::take(&mut self.out)
    }

    fn frame(&mut self, now: Nanos, link: LinkId, frame: Frame) {
        let other = if link.dialler == self.me {
            link.acceptor
        } else {
            link.dialler
        };
        self.peers[other].last_heard = now;
        match frame {
            Frame::Check(frame) => self.asked_by(now, other, frame),
            Frame::Amend(frame) => self.amended_by(now, other, &frame),
            Frame::Ping => self.reply(other, Reply::Pong),
            Frame::Reply(reply) => self.replied(now, other, reply),
            Frame::Order(order) => self.ordered_by(now, other, order),
            Frame::Delivery(delivery) => self.delivered(now, other, delivery),
        }
    }

    fn replied(&mut self, now: Nanos, peer: usize, reply: Reply) {
        match reply {
            Reply::Amended { sequence, done } => self.amended(now, (peer, sequence), done),
            Reply::Pong => {
                let _turn = self.peers[peer].breaker.handle_pong();
            }
            Reply::Verdicts { .. } | Reply::NotOwner { .. } | Reply::TooLate { .. } => {
                self.check_replied(now, peer, reply);
            }
        }
    }

    fn timer(&mut self, now: Nanos, timer: Timer) {
        match timer {
            Timer::Timeout(peer, number) => self.timed_out(now, (peer, number)),
            Timer::Held(check) => self.held_long_enough(now, check),
            Timer::Parked(parked) => self.parked_long_enough(now, parked),
            Timer::Pulled(peer, number) => self.pulled(now, (peer, number)),
            Timer::Motion => {
                self.motion.handle_timeout(now);
                self.move_on(now);
            }
            Timer::Pump => self.pump(now),
            Timer::Ping(peer) => self.ping(now, peer),
            Timer::Amends => self.send_amends(now),
            Timer::Reports => self.report(now),
            Timer::Join => self.join_anyway(now),
        }
    }

    fn connected(&mut self, now: Nanos, link: LinkId, boot: BootId) {
        if link.dialler == self.me {
            let peer = &mut self.peers[link.acceptor];
            peer.boot = Some(boot);
            peer.last_heard = now;
            self.motion
                .handle_connected(now, &name_of(link.acceptor), boot);
            self.ask_again(now, link.acceptor);
            self.amends_connected(now, link.acceptor, boot);
        } else {
            self.followed(now, link.dialler, boot);
        }
        self.move_on(now);
    }

    fn lost(&mut self, now: Nanos, link: LinkId) {
        if link.dialler == self.me {
            let peer = &mut self.peers[link.acceptor];
            peer.boot = None;
            let _turn = peer.breaker.handle_lost();
            self.motion
                .handle_disconnected(now, &name_of(link.acceptor));
            self.reports_lost(link.acceptor);
            self.asked_lost(now, link.acceptor);
            self.ping(now, link.acceptor);
        } else if let Some((_boot, source)) = &mut self.peers[link.dialler].follower {
            *source = Source::new();
        }
        self.move_on(now);
    }

    /// Pings a peer whose breaker is open, now and until it answers.
    fn ping(&mut self, now: Nanos, peer: usize) {
        if self.peers[peer].breaker.ping_due(now) && self.peers[peer].boot.is_some() {
            self.send_to(peer, Frame::Ping);
        }
        if let Some(at) = self.peers[peer].breaker.poll_timeout() {
            let at = at.max(now.saturating_add(Nanos::from_millis(1)));
            self.out.push(Output::Timer(at, Timer::Ping(peer)));
        }
    }

    /// Whether a peer can be asked.
    fn is_usable(&self, peer: usize) -> bool {
        let peer = &self.peers[peer];
        peer.boot.is_some() && !peer.breaker.is_open()
    }

    /// By this node's link to a peer.
    fn send_to(&mut self, peer: usize, frame: Frame) {
        let link = LinkId {
            dialler: self.me,
            acceptor: peer,
        };
        self.out.push(Output::Send(link, Heading::Up, frame));
    }

    /// By a peer's link to this node.
    fn send_back(&mut self, peer: usize, frame: Frame) {
        let link = LinkId {
            dialler: peer,
            acceptor: self.me,
        };
        self.out.push(Output::Send(link, Heading::Down, frame));
    }

    fn reply(&mut self, peer: usize, reply: Reply) {
        self.send_back(peer, Frame::Reply(reply));
    }
}
