//! What the links between addresses are like: delay, jitter, loss, blocks.

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
}

impl Default for LinkConditions {
    /// A quiet local network: 1 ms, up to 1 ms of jitter, no loss.
    fn default() -> Self {
        Self {
            delay: Duration::from_millis(1),
            jitter: Duration::from_millis(1),
            loss_per_mille: 0,
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

    /// How long a datagram takes; `None`: it is lost. Takes two random numbers, whatever the conditions.
    pub(super) fn travel_time(self, random: &mut StdRng) -> Option<Duration> {
        let lost = random.random_range(0..1000) < self.loss_per_mille;
        let share: f64 = random.random();
        let travel_time = self.delay.saturating_add(self.jitter.mul_f64(share));
        (!lost).then_some(travel_time)
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
