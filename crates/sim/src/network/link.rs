//! What the links between addresses are like: delay, jitter, loss, copies, blocks.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    time::Duration,
};

use rand::{RngExt, rngs::StdRng};

/// What one direction between two addresses is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConditions {
    /// Every datagram takes this long.
    pub delay: Duration,
    /// And up to this much more, uniformly; datagrams overtake each other.
    pub jitter: Duration,
    /// So many of a thousand datagrams are lost; 1000 and more: all.
    pub loss_per_mille: u16,
    /// So many of a thousand datagrams arrive twice, each copy in its own time.
    pub copies_per_mille: u16,
}

/// What a link does with one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Travel {
    /// It is lost.
    Lost,
    /// It takes so long.
    Once(Duration),
    /// It arrives twice, after these times.
    Twice(Duration, Duration),
}

impl Default for LinkConditions {
    /// A quiet local network: 1 ms, up to 1 ms of jitter, no loss, no copies.
    fn default() -> Self {
        Self {
            delay: Duration::from_millis(1),
            jitter: Duration::from_millis(1),
            loss_per_mille: 0,
            copies_per_mille: 0,
        }
    }
}

impl LinkConditions {
    /// These conditions with that much loss.
    #[must_use]
    pub const fn with_loss_per_mille(self, loss_per_mille: u16) -> Self {
        Self {
            loss_per_mille,
            ..self
        }
    }

    /// These conditions with that many copies.
    #[must_use]
    pub const fn with_copies_per_mille(self, copies_per_mille: u16) -> Self {
        Self {
            copies_per_mille,
            ..self
        }
    }

    /// What becomes of a datagram. Takes four random numbers, whatever the conditions.
    pub(super) fn travel(self, random: &mut StdRng) -> Travel {
        let lost = random.random_range(0..1000) < self.loss_per_mille;
        let copied = random.random_range(0..1000) < self.copies_per_mille;
        let (first, second): (f64, f64) = (random.random(), random.random());
        let time = |share| self.delay.saturating_add(self.jitter.mul_f64(share));
        match (lost, copied) {
            (true, _) => Travel::Lost,
            (false, false) => Travel::Once(time(first)),
            (false, true) => Travel::Twice(time(first), time(second)),
        }
    }
}

/// All links.
#[derive(Debug, Default)]
pub(super) struct Links {
    pub(super) common: LinkConditions,
    pub(super) own: BTreeMap<(SocketAddr, SocketAddr), LinkConditions>,
    pub(super) blocked: BTreeSet<(SocketAddr, SocketAddr)>,
}

impl Links {
    pub(super) fn is_blocked(&self, from: SocketAddr, to: SocketAddr) -> bool {
        self.blocked.contains(&(from, to))
    }

    pub(super) fn conditions(&self, from: SocketAddr, to: SocketAddr) -> LinkConditions {
        self.own.get(&(from, to)).copied().unwrap_or(self.common)
    }
}
