//! What is done to hosts and links: starts, crashes, cuts, pauses, accusations.

use super::{
    Act, BEFORE, Event, Fault, IDLE, Input, LinkId, MAX_OFFSET, Nanos, Node, Phase, Profile,
    RngExt, Start, UNIX_ORIGIN, World,
};

/// What is open in [`World::open`].
const CUT: u8 = 0;
const ACCUSED: u8 = 1;

impl World {
    pub(super) fn act(&mut self, act: Act) {
        match act {
            Act::Crash(host) => self.crash(host),
            Act::Start(host) => {
                if self.hosts[host].node.is_none() {
                    self.start(host);
                }
            }
            Act::Leave(host) => {
                let active = self.hosts.iter().filter(|host| {
                    let node = host.node.as_ref();
                    node.is_some_and(|node| node.phase() == Phase::Active)
                });
                if active.count() > 2 {
                    self.records.history.changes.push(self.now);
                    self.give(host, Input::Leave);
                }
            }
            Act::Cut(from, to) => {
                self.network.cut(from, to);
                let now = self.now;
                self.open.entry((CUT, from, to)).or_insert(now);
                let at = now.saturating_add(IDLE);
                self.queue.plan(at, Event::GiveUp(from, to, now));
            }
            Act::Mend(from, to) => self.mend(from, to),
            Act::Break(one, other) => self.break_pair(one, other),
            Act::Suspend(host) => self.suspend(host),
            Act::Resume(host) => self.resume(host),
            Act::Slow(host) => {
                let now = self.now;
                self.hosts[host].slow.get_or_insert(now);
            }
            Act::Quick(host) => {
                if let Some(since) = self.hosts[host].slow.take() {
                    self.paused(host, since);
                }
            }
            Act::Accuse(host, by) => self.accuse(host, Some(by)),
            Act::AccuseByAll(host) => self.accuse(host, None),
            Act::Acquit(host) => self.acquit(host),
        }
    }

    /// A node starts with nothing and joins.
    pub(super) fn start(&mut self, host: usize) {
        self.hosts[host].life = self.hosts[host].life.saturating_add(1);
        self.records.history.changes.push(self.now);
        // Peers that still held connections to the life before hear that it is over.
        self.break_all(host);
        let boot = self.boot_of(host);
        let news = self.oracle.change(host, Some((boot, Phase::Joining)));
        self.spread(news);
        self.start_node(host, Phase::Joining);
    }

    pub(super) fn start_node(&mut self, host: usize, phase: Phase) {
        let offset =
            Nanos::new(self.rng.random_range(1_000_000_000..MAX_OFFSET)).saturating_add(BEFORE);
        let clock = self.now.saturating_add(offset);
        let start = Start {
            me: host,
            nodes: self.hosts.len(),
            boot: self.boot_of(host),
            offset,
            unix_origin: UNIX_ORIGIN.saturating_sub(offset),
            phase,
            known: self.oracle.all().to_vec(),
        };
        let mut node = Node::new(clock, start);
        let outputs = node.take_outputs();
        let place = &mut self.hosts[host];
        place.node = Some(node);
        place.suspended = None;
        place.backlog.clear();
        self.carry_out(host, outputs);
        self.note_holds(host);
        for link in self.links_of(host) {
            let life = self.hosts[link.dialler].life;
            let at = self.now.saturating_add(self.delay());
            self.queue.plan(at, Event::Dial(link, life));
        }
    }

    fn crash(&mut self, host: usize) {
        if self.hosts[host].node.is_none() {
            return;
        }
        let boot = self.boot_of(host);
        let node = self.hosts[host].name.clone();
        let at = self.now;
        self.records
            .history
            .faults
            .push(Fault::Crash { node, boot, at });
        self.stop(host);
        let after = Nanos::from_millis(self.rng.random_range(3_000..4_500));
        let life = self.hosts[host].life;
        self.queue
            .plan(at.saturating_add(after), Event::Notice(host, life));
    }

    /// A node is no more; peers notice by the silence.
    fn stop(&mut self, host: usize) {
        if let Some(since) = self.hosts[host].suspended.take() {
            self.paused(host, since);
        }
        let place = &mut self.hosts[host];
        place.node = None;
        place.life = place.life.saturating_add(1);
        place.backlog.clear();
        self.note_holds(host);
        for link in self.links_of(host) {
            if let Some(connection) = self.network.link(link).up {
                let at = self.now.saturating_add(IDLE);
                self.queue.plan(at, Event::Break(link, connection));
            }
        }
    }

    /// A node has left, and says so.
    pub(super) fn left(&mut self, host: usize, told: bool) {
        if self.hosts[host].node.is_none() {
            return;
        }
        self.records.history.changes.push(self.now);
        if !told && !matches!(self.profile, Profile::Calm | Profile::Planned) {
            // It gave up: what it counted is gone with it.
            let (node, boot) = (self.hosts[host].name.clone(), self.boot_of(host));
            let at = self.now;
            self.records
                .history
                .faults
                .push(Fault::Crash { node, boot, at });
        }
        let news = self.oracle.change(host, None);
        self.stop(host);
        self.break_all(host);
        self.spread(news);
    }

    fn mend(&mut self, from: usize, to: usize) {
        self.network.mend(from, to);
        if self.network.is_cut(from, to) {
            return;
        }
        if let Some(since) = self.open.remove(&(CUT, from, to)) {
            self.wrong(CUT, (from, to), since, self.now);
        }
        for (dialler, acceptor) in [(from, to), (to, from)] {
            let link = LinkId { dialler, acceptor };
            let stalled = std::mem::take(&mut self.network.link(link).stalled);
            for (heading, frame) in stalled {
                // What waits for a cut of the other way waits on.
                self.send(link, heading, frame);
            }
        }
    }

    fn break_pair(&mut self, one: usize, other: usize) {
        let until = self.now.saturating_add(Nanos::from_millis(50));
        self.wrong(CUT, (one, other), self.now, until);
        for (dialler, acceptor) in [(one, other), (other, one)] {
            let link = LinkId { dialler, acceptor };
            if let Some(connection) = self.network.link(link).up {
                self.break_link(link, connection);
            }
        }
    }

    fn suspend(&mut self, host: usize) {
        let now = self.now;
        if self.hosts[host].node.is_some() && self.hosts[host].suspended.is_none() {
            self.hosts[host].suspended = Some(now);
            let at = now.saturating_add(IDLE);
            self.queue.plan(at, Event::GiveUpOn(host, now));
        }
    }

    fn resume(&mut self, host: usize) {
        let Some(since) = self.hosts[host].suspended.take() else {
            return;
        };
        self.paused(host, since);
        let now = self.now;
        let place = &mut self.hosts[host];
        let backlog = std::mem::take(&mut place.backlog);
        if let Some(node) = &mut place.node {
            let clock = node.clock(now);
            node.wake(clock);
        }
        for input in backlog {
            self.give(host, input);
        }
        for link in self.links_of(host) {
            let life = self.hosts[link.dialler].life;
            let at = self.now.saturating_add(self.delay());
            self.queue.plan(at, Event::Dial(link, life));
        }
    }

    pub(super) fn paused(&mut self, host: usize, since: Nanos) {
        self.records.history.faults.push(Fault::Pause {
            node: self.hosts[host].name.clone(),
            since,
            until: self.now,
        });
    }

    fn accuse(&mut self, host: usize, by: Option<usize>) {
        let Some(node) = &self.hosts[host].node else {
            return;
        };
        if node.phase() != Phase::Active || self.oracle.state_of(host).is_none() {
            return;
        }
        let now = self.now;
        self.open.entry((ACCUSED, host, host)).or_insert(now);
        let news = self.oracle.claim(host, None);
        match by {
            Some(by) if self.hosts[by].node.is_some() => self.tell(by, news),
            Some(_) => {}
            None => {
                self.spread(news);
                let lag = Nanos::from_millis(self.rng.random_range(100..1_500));
                let event = Event::Input(host, self.hosts[host].life, Input::Renew);
                self.queue.plan(now.saturating_add(lag), event);
            }
        }
    }

    fn acquit(&mut self, host: usize) {
        if let Some(since) = self.open.remove(&(ACCUSED, host, host)) {
            let until = self.now.saturating_add(Nanos::from_millis(700));
            self.wrong(ACCUSED, (host, host), since, until);
        }
        if self.hosts[host].node.is_some() {
            let news = self.oracle.again(host);
            self.spread(news);
        }
    }

    /// Writes down what was wrong.
    pub(super) fn wrong(&mut self, kind: u8, who: (usize, usize), since: Nanos, until: Nanos) {
        let name = |host: usize| self.hosts[host].name.clone();
        let fault = if kind == CUT {
            Fault::Cut {
                from: name(who.0),
                to: name(who.1),
                since,
                until,
            }
        } else {
            Fault::Accused {
                node: name(who.0),
                since,
                until,
            }
        };
        self.records.history.faults.push(fault);
    }
}
