//! The pure world: hosts, links and events, and what happens next.

mod acts;
mod clients;
mod links;

use std::collections::{BTreeMap, VecDeque};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use tollgate_limit::{Change, DecidedBy, Mode as CheckMode, Nanos, NodeId};
use tollgate_wire::identity::{BootId, Phase};

use super::{
    Mode, Profile, SETTLE,
    end::End,
    faults::{Act, plan},
    frames::Frame,
    network::{Delays, Heading, IDLE, LinkId, Network},
    node::{CHECK_DEADLINE, ClientAmend, Input, LimitSaid, Node, Output, Start, Timer},
    oracle::{News, Oracle},
    placements::name_of,
    queue::Queue,
    records::{Records, Waiting},
    workload::Workload,
};
use crate::history::{Amend, Amended, Fault, Held, History, Terms};

/// When clients start to ask, and when things start to go wrong.
const FIRST_CHECK: Nanos = Nanos::from_millis(300);
const FIRST_FAULT: Nanos = Nanos::from_millis(2_000);
/// When the last fault ends.
const LAST_FAULT: Nanos = Nanos::from_millis(14_000);
/// How long before the end clients stop.
const LAST_CHECK: Nanos = Nanos::from_millis(1_000);
/// How often a node without a connection dials.
const DIAL: Nanos = Nanos::from_millis(100);
/// How long copies may miss something after a fault.
const RECOVERY: Nanos = Nanos::from_millis(6_000);
/// Unix time of the world's origin: an hour and a minute that no fixed window ends in.
const UNIX_ORIGIN: Nanos = Nanos::from_millis(472_222 * 3_600_000 + 60_000);
/// What a node's clock shows at least when it starts: eleven years, as in the program.
const BEFORE: Nanos = Nanos::from_millis(11 * 366 * 24 * 3_600_000);
/// The farthest that the clock of a node is from there.
const MAX_OFFSET: u64 = 3_000_000_000_000;

/// What happens.
#[derive(Clone, Debug)]
enum Event {
    /// To the life of a host.
    Input(usize, u64, Input),
    Arrive(LinkId, u64, Heading, Frame),
    /// A connection has come up at one of its ends.
    Up(LinkId, u64, usize),
    Dial(LinkId, u64),
    Break(LinkId, u64),
    /// A pair that was cut at that instant gives up, if it still is.
    GiveUp(usize, usize, Nanos),
    /// So do all peers of a host that stopped then.
    GiveUpOn(usize, Nanos),
    Act(Act),
    Work,
    Pulled(usize, u64, usize, Timer),
    /// A crashed host is noticed.
    Notice(usize, u64),
    Refund(ClientAmend, String, Amended),
}

/// Where a node may run.
#[derive(Debug)]
struct Host {
    name: NodeId,
    node: Option<Node>,
    life: u64,
    suspended: Option<Nanos>,
    slow: Option<Nanos>,
    backlog: VecDeque<Input>,
}

/// A cluster, its clients, and what is wrong with it.
#[derive(Debug)]
pub(super) struct World {
    now: Nanos,
    end: Nanos,
    mode: Mode,
    profile: Profile,
    queue: Queue<Event>,
    hosts: Vec<Host>,
    network: Network,
    delays: Delays,
    oracle: Oracle,
    workload: Workload,
    records: Records,
    /// Cuts and accusations in force: since when.
    open: BTreeMap<(u8, usize, usize), Nanos>,
    amends: BTreeMap<u64, usize>,
    rng: StdRng,
    clients: StdRng,
}

impl World {
    pub(super) fn new(seed: u64, mode: Mode, profile: Profile) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut clients = StdRng::seed_from_u64(seed.wrapping_add(1 << 32));
        let present = match rng.random_range(0..4) {
            0 | 1 => 3,
            2 => rng.random_range(4..6),
            _ => rng.random_range(4..8),
        };
        let spare = rng.random_range(0..3);
        let nodes = present + spare;
        let longest = rng.random_range(300_000..3_000_000);
        let delays = Delays {
            least: Nanos::new(50_000),
            most: Nanos::new(longest),
        };
        let end = match mode {
            Mode::Safety => LAST_FAULT.saturating_add(FIRST_FAULT),
            Mode::Liveness => LAST_FAULT.saturating_add(SETTLE),
        };
        let terms = Terms {
            deadline: CHECK_DEADLINE,
            slack: Nanos::from_millis(1),
            longest_delay: delays.most,
            recovery: RECOVERY,
            unix_origin: UNIX_ORIGIN,
        };
        let workload = Workload::new(&mut clients);
        let mut history = History::new(terms);
        for key in &workload.keys {
            history.rules.insert(key.name.clone(), key.rule);
        }
        history.changes.push(Nanos::ZERO);
        let host = |host| Host {
            name: name_of(host),
            node: None,
            life: 0,
            suspended: None,
            slow: None,
            backlog: VecDeque::new(),
        };
        let mut world = Self {
            now: Nanos::ZERO,
            end,
            mode,
            profile,
            queue: Queue::new(),
            hosts: (0..nodes).map(host).collect(),
            network: Network::new(nodes),
            delays,
            oracle: Oracle::new(nodes),
            workload,
            records: Records::new(history),
            open: BTreeMap::new(),
            amends: BTreeMap::new(),
            rng,
            clients,
        };
        world.found(present);
        let last = match mode {
            Mode::Safety => end,
            Mode::Liveness => LAST_FAULT,
        };
        let acts = plan(&mut world.rng, profile, (nodes, spare), (FIRST_FAULT, last));
        for (at, act) in acts {
            world.queue.plan(at, Event::Act(act));
        }
        world.queue.plan(FIRST_CHECK, Event::Work);
        world
    }

    /// The first nodes know each other.
    fn found(&mut self, present: usize) {
        for host in 0..present {
            self.hosts[host].life = 1;
            let boot = self.boot_of(host);
            self.oracle.change(host, Some((boot, Phase::Active)));
        }
        for host in 0..present {
            self.start_node(host, Phase::Active);
        }
    }

    fn boot_of(&self, host: usize) -> BootId {
        let number = u64::try_from(host).unwrap_or(0).saturating_add(1);
        BootId(
            self.hosts[host]
                .life
                .saturating_mul(16)
                .saturating_add(number)
                << 32,
        )
    }

    /// Runs to the end.
    pub(super) fn run(&mut self) {
        while let Some((at, event)) = self.queue.next(self.end) {
            self.now = at;
            self.happen(event);
        }
        self.now = self.end;
    }

    pub(super) fn trace(&self) -> (u64, u64) {
        (self.queue.trace(), self.queue.happened())
    }

    /// What its clients saw, and what is not as it should be.
    pub(super) fn finish(mut self) -> (History, Vec<String>) {
        let hosts: Vec<_> = (0..self.hosts.len()).collect();
        for ((kind, one, other), since) in std::mem::take(&mut self.open) {
            self.wrong(kind, (one, other), since, self.end);
        }
        for host in hosts {
            if let Some(since) = self.hosts[host].suspended.or(self.hosts[host].slow) {
                self.paused(host, since);
            }
        }
        let nodes = self.hosts.iter().filter_map(|host| host.node.as_ref());
        let nodes: Vec<_> = nodes.collect();
        let end = End {
            now: self.now,
            nodes,
            keys: &self.workload.keys,
        };
        let (ends, mut unsettled) = match self.mode {
            Mode::Safety => (Vec::new(), Vec::new()),
            Mode::Liveness => end.look(),
        };
        let mut history = self.records.close(self.now);
        history.ends = ends;
        if self.mode == Mode::Liveness {
            unsettled.extend(super::end::late_answers(&history, self.end));
        }
        (history, unsettled)
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Input(host, life, input) => {
                if self.hosts[host].life == life {
                    self.give(host, input);
                }
            }
            Event::Arrive(link, connection, heading, frame) => {
                if self.network.link(link).up == Some(connection) {
                    let (_, to) = link.ends(heading);
                    self.give(to, Input::Frame(link, frame));
                }
            }
            Event::Up(link, connection, host) => {
                if self.network.link(link).up == Some(connection) {
                    let other = if host == link.dialler {
                        link.acceptor
                    } else {
                        link.dialler
                    };
                    let boot = self.boot_of(other);
                    self.give(host, Input::Connected(link, boot));
                }
            }
            Event::Dial(link, life) => self.dial(link, life),
            Event::Break(link, connection) => self.break_link(link, connection),
            Event::GiveUp(from, to, since) => self.give_up(from, to, since),
            Event::GiveUpOn(host, since) => {
                if self.hosts[host].suspended == Some(since) {
                    self.break_all(host);
                }
            }
            Event::Act(act) => self.act(act),
            Event::Work => self.work(),
            Event::Pulled(host, life, peer, timer) => self.pulled(host, life, peer, timer),
            Event::Notice(host, life) => {
                if self.hosts[host].life == life {
                    let news = self.oracle.change(host, None);
                    self.spread(news);
                }
            }
            Event::Refund(amend, key, what) => self.amend(amend, key, what),
        }
    }

    /// Something happens to a host: at once, or when it runs again.
    fn give(&mut self, host: usize, input: Input) {
        let now = self.now;
        let place = &mut self.hosts[host];
        let Some(node) = &mut place.node else { return };
        if place.suspended.is_some() {
            place.backlog.push_back(input);
            return;
        }
        let clock = node.clock(now);
        node.beat(clock);
        let outputs = node.handle(clock, input);
        self.carry_out(host, outputs);
        self.note_holds(host);
    }

    fn carry_out(&mut self, host: usize, outputs: Vec<Output>) {
        let life = self.hosts[host].life;
        for output in outputs {
            match output {
                Output::Send(link, heading, frame) => self.send(link, heading, frame),
                Output::Timer(at, timer) => {
                    let Some(node) = &self.hosts[host].node else {
                        continue;
                    };
                    let at = node.world(at).max(self.now);
                    self.queue
                        .plan(at, Event::Input(host, life, Input::Timer(timer)));
                }
                Output::Answered(id, said) => self.answered(id, &said),
                Output::Amended(id) => {
                    if let Some(at) = self.amends.remove(&id)
                        && let Some(amend) = self.records.history.amends.get_mut(at)
                    {
                        amend.answered = Some(self.now);
                    }
                }
                Output::Phase(phase) => {
                    let boot = self.boot_of(host);
                    self.records.history.changes.push(self.now);
                    let news = self.oracle.change(host, Some((boot, phase)));
                    self.spread(news);
                }
                Output::Left(told) => self.left(host, told),
                Output::Pull(peer, timer) => {
                    let at = self.delay().saturating_add(self.delay());
                    let at = self.now.saturating_add(at);
                    self.queue.plan(at, Event::Pulled(host, life, peer, timer));
                }
            }
        }
    }

    fn delay(&mut self) -> Nanos {
        self.delays.draw(&mut self.rng)
    }

    fn note_holds(&mut self, host: usize) {
        let place = &self.hosts[host];
        for (at, key) in self.workload.keys.iter().enumerate() {
            let holds = place.node.as_ref().filter(|node| node.holds(key.key));
            match holds {
                Some(node) => self.records.holds((host, at), || Held {
                    key: key.name.clone(),
                    node: place.name.clone(),
                    boot: node.boot(),
                    since: self.now,
                    until: self.now,
                }),
                None => self.records.holds_no_more(self.now, (host, at)),
            }
        }
    }
}
