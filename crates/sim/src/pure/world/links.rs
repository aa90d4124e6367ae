//! What goes from host to host: frames on links, and news of members.

use super::{
    DIAL, Event, Frame, Heading, Host, Input, LinkId, Nanos, News, Node, Profile, RngExt, Timer,
    World,
};

impl World {
    pub(super) fn send(&mut self, link: LinkId, heading: Heading, frame: Frame) {
        let (from, to) = link.ends(heading);
        if self.network.is_cut(from, to) {
            let state = self.network.link(link);
            if state.up.is_some() {
                state.stalled.push_back((heading, frame));
            }
            return;
        }
        let mut delay = self.delay();
        for end in [from, to] {
            if self.hosts[end].slow.is_some() {
                let more = Nanos::new(self.rng.random_range(0..15_000_000));
                delay = delay.saturating_add(more);
            }
        }
        // A repeated frame: what a caller does that is not sure whether it was heard.
        let twice = matches!(frame, Frame::Check(_))
            && self.profile != Profile::Calm
            && self.rng.random_range(0..50) == 0;
        let at = self.now.saturating_add(delay);
        let state = self.network.link(link);
        let Some(connection) = state.up else { return };
        let at = state.arrival(heading, frame.stream(), at);
        if twice {
            let again = Event::Arrive(link, connection, heading, frame.clone());
            self.queue.plan(at, again);
        }
        self.queue
            .plan(at, Event::Arrive(link, connection, heading, frame));
    }

    pub(super) fn dial(&mut self, link: LinkId, life: u64) {
        let (dialler, acceptor) = (&self.hosts[link.dialler], &self.hosts[link.acceptor]);
        if dialler.life != life || dialler.node.is_none() || self.network.link(link).up.is_some() {
            return;
        }
        let runs = |host: &Host| host.node.is_some() && host.suspended.is_none();
        let reached = runs(dialler)
            && runs(acceptor)
            && !self.network.is_cut(link.dialler, link.acceptor)
            && !self.network.is_cut(link.acceptor, link.dialler);
        if !reached {
            let at = self.now.saturating_add(DIAL);
            self.queue.plan(at, Event::Dial(link, life));
            return;
        }
        let connection = self.network.link(link).connect();
        let there = self.now.saturating_add(self.delay());
        let back = there.saturating_add(self.delay());
        self.queue
            .plan(there, Event::Up(link, connection, link.acceptor));
        self.queue
            .plan(back, Event::Up(link, connection, link.dialler));
    }

    pub(super) fn break_link(&mut self, link: LinkId, connection: u64) {
        if !self.network.link(link).break_off(connection) {
            return;
        }
        self.give(link.acceptor, Input::Lost(link));
        self.give(link.dialler, Input::Lost(link));
        let life = self.hosts[link.dialler].life;
        let at = self.now.saturating_add(self.delay());
        self.queue.plan(at, Event::Dial(link, life));
    }

    pub(super) fn links_of(&self, host: usize) -> Vec<LinkId> {
        let others = (0..self.hosts.len()).filter(|other| *other != host);
        others
            .flat_map(|other| {
                let (up, down) = ((host, other), (other, host));
                [up, down].map(|(dialler, acceptor)| LinkId { dialler, acceptor })
            })
            .collect()
    }

    pub(super) fn break_all(&mut self, host: usize) {
        for link in self.links_of(host) {
            if let Some(connection) = self.network.link(link).up {
                self.break_link(link, connection);
            }
        }
    }

    pub(super) fn give_up(&mut self, from: usize, to: usize, since: Nanos) {
        if self.open.get(&(0, from, to)) != Some(&since) {
            return;
        }
        for (dialler, acceptor) in [(from, to), (to, from)] {
            let link = LinkId { dialler, acceptor };
            if let Some(connection) = self.network.link(link).up {
                self.break_link(link, connection);
            }
        }
    }

    /// All learn of a change, each in its time.
    pub(super) fn spread(&mut self, news: News) {
        for host in 0..self.hosts.len() {
            if host != news.member && self.hosts[host].node.is_some() {
                self.tell(host, news);
            }
        }
    }

    pub(super) fn tell(&mut self, host: usize, news: News) {
        let lag = Nanos::from_millis(self.rng.random_range(20..700));
        let event = Event::Input(host, self.hosts[host].life, Input::News(news));
        self.queue.plan(self.now.saturating_add(lag), event);
    }

    pub(super) fn pulled(&mut self, host: usize, life: u64, peer: usize, timer: Timer) {
        let known = self.hosts[peer].node.as_ref().map(Node::known);
        if self.hosts[host].life != life {
            return;
        }
        for news in known.unwrap_or_default() {
            self.give(host, Input::News(news));
        }
        // And the peer itself, of which it knows best.
        if let Some(news) = self.oracle.all().get(peer).copied() {
            self.give(host, Input::News(news));
        }
        self.give(host, Input::Timer(timer));
    }
}
