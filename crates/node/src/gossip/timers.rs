//! The gossip library's timers.
//!
//! Invariant: every timer that was set is delivered, in the order of its deadline; of equal
//! deadlines in the library's own order, then in the order of setting.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};

use foca::Timer;
use tollgate_limit::Nanos;

use super::identity::Gossiped;

/// Timers that have not fired. As many as the library sets: a handful, and one for each member
/// that is suspected or remembered as down.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<Due>>,
    set: u64,
}

#[derive(Debug, PartialEq, Eq)]
struct Due {
    at: Nanos,
    timer: Timer<Gossiped>,
    number: u64,
}

impl Timers {
    pub(super) fn set(&mut self, at: Nanos, timer: Timer<Gossiped>) {
        self.set = self.set.wrapping_add(1);
        self.heap.push(Reverse(Due {
            at,
            timer,
            number: self.set,
        }));
    }

    pub(super) fn next_deadline(&self) -> Option<Nanos> {
        self.heap.peek().map(|due| due.0.at)
    }

    /// The next timer that is due at `now`.
    pub(super) fn pop_due(&mut self, now: Nanos) -> Option<Timer<Gossiped>> {
        if self.next_deadline()? > now {
            return None;
        }
        self.heap.pop().map(|due| due.0.timer)
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_time = self.at.cmp(&other.at);
        by_time
            .then_with(|| self.timer.cmp(&other.timer))
            .then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use foca::Timer;
    use tollgate_limit::Nanos;

    use super::Timers;
    use crate::gossip::{identity::Gossiped, tests::identity};

    const fn at(millis: u64) -> Nanos {
        Nanos::from_millis(millis)
    }

    #[test]
    fn timers_come_by_deadline_then_kind_then_turn() {
        let down = |name| Timer::RemoveDown(Gossiped(identity(name, 1)));
        let indirect = Timer::SendIndirectProbe {
            probed_id: Gossiped(identity("a", 1)),
            token: 0,
        };
        let mut timers = Timers::default();
        timers.set(at(20), Timer::ProbeRandomMember(0));
        timers.set(at(10), down("b"));
        timers.set(at(10), down("a"));
        timers.set(at(20), indirect.clone());
        timers.set(at(10), Timer::PeriodicGossip(0));
        assert_eq!(timers.next_deadline(), Some(at(10)));
        let mut due = |now| std::iter::from_fn(|| timers.pop_due(now)).collect::<Vec<_>>();
        assert_eq!(due(at(9)), []);
        assert_eq!(
            due(at(19)),
            [Timer::PeriodicGossip(0), down("b"), down("a")]
        );
        assert_eq!(due(at(20)), [indirect, Timer::ProbeRandomMember(0)]);
    }
}
