//! Links between nodes: streams that keep their order, and what breaks them.
//!
//! As with QUIC: what is sent into a cut waits and is sent again, until the end that hears nothing gives the
//! connection up after [`IDLE`]; a broken connection loses what is under way in it, and both ends hear of it.

use std::collections::VecDeque;

use rand::{RngExt, rngs::StdRng};
use tollgate_limit::Nanos;

use super::frames::Frame;

/// After so long without a sign of life a connection is given up.
pub(super) const IDLE: Nanos = Nanos::from_millis(3_000);

/// One of two ways of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heading {
    /// From the dialler.
    Up,
    /// To it.
    Down,
}

/// A link that `dialler` made to `acceptor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LinkId {
    pub(super) dialler: usize,
    pub(super) acceptor: usize,
}

impl LinkId {
    /// Sender and receiver of what goes by it.
    pub(super) const fn ends(self, heading: Heading) -> (usize, usize) {
        match heading {
            Heading::Up => (self.dialler, self.acceptor),
            Heading::Down => (self.acceptor, self.dialler),
        }
    }
}

/// The state of a link.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// `None` while it is broken; else which of its connections it is.
    pub(super) up: Option<u64>,
    /// Connections so far.
    pub(super) connections: u64,
    /// When the last frame of each way and stream arrives.
    last: [[Nanos; 2]; 2],
    /// What waits for the end of a cut.
    pub(super) stalled: VecDeque<(Heading, Frame)>,
}

impl Link {
    /// A new connection.
    pub(super) fn connect(&mut self) -> u64 {
        self.connections = self.connections.saturating_add(1);
        self.up = Some(self.connections);
        self.last = Default::default();
        self.stalled.clear();
        self.connections
    }

    /// It is broken, if it is still that connection.
    pub(super) fn break_off(&mut self, connection: u64) -> bool {
        let is_it = self.up == Some(connection);
        if is_it {
            self.up = None;
            self.stalled.clear();
        }
        is_it
    }

    /// When a frame that is sent now and takes so long arrives: behind all before it.
    pub(super) fn arrival(&mut self, heading: Heading, stream: usize, at: Nanos) -> Nanos {
        let way = match heading {
            Heading::Up => 0,
            Heading::Down => 1,
        };
        let Some(last) = self.last.get_mut(way).and_then(|ways| ways.get_mut(stream)) else {
            return at;
        };
        *last = (*last).max(at);
        *last
    }
}

/// How long messages take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delays {
    pub(super) least: Nanos,
    pub(super) most: Nanos,
}

impl Delays {
    pub(super) fn draw(&self, rng: &mut StdRng) -> Nanos {
        Nanos::new(rng.random_range(self.least.as_nanos()..=self.most.as_nanos()))
    }
}

/// All links of a cluster of so many nodes, and the cuts between them.
#[derive(Debug)]
pub(super) struct Network {
    nodes: usize,
    links: Vec<Link>,
    /// By sender and receiver, how many cuts there are.
    cuts: Vec<u32>,
}

impl Network {
    pub(super) fn new(nodes: usize) -> Self {
        let pairs = nodes.saturating_mul(nodes);
        Self {
            nodes,
            links: (0..pairs).map(|_| Link::default()).collect(),
            cuts: vec![0; pairs],
        }
    }

    pub(super) fn link(&mut self, id: LinkId) -> &mut Link {
        let at = self.place(id.dialler, id.acceptor);
        &mut self.links[at]
    }

    pub(super) fn is_cut(&self, from: usize, to: usize) -> bool {
        self.cuts[self.place(from, to)] > 0
    }

    pub(super) fn cut(&mut self, from: usize, to: usize) {
        let at = self.place(from, to);
        self.cuts[at] = self.cuts[at].saturating_add(1);
    }

    pub(super) fn mend(&mut self, from: usize, to: usize) {
        let at = self.place(from, to);
        self.cuts[at] = self.cuts[at].saturating_sub(1);
    }

    const fn place(&self, from: usize, to: usize) -> usize {
        from.saturating_mul(self.nodes).saturating_add(to)
    }
}
