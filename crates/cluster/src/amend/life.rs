//! How long an amendment is of use: as long as what it changes may stay in the counter.
//!
//! Knows nothing of owners. Invariant: never shorter than the limit's window.

use tollgate_limit::{Change, Nanos};

use super::Amendment;

impl Amendment {
    /// How long it is of use: as long as what is charged now stays in the counter, which of a bucket is
    /// the time that a full one takes to drain; of a reset the longest ban too.
    #[must_use]
    pub fn life(&self) -> Nanos {
        let rule = &self.ask.rule;
        let window = rule.window().span();
        let charge = rule.algorithm.refill().max(window);
        let ban = match self.change {
            Change::Reset => rule.ban.map_or(Nanos::ZERO, |ban| ban.longest),
            Change::GiveBack { .. } | Change::Refund | Change::Charge | Change::Failure => {
                Nanos::ZERO
            }
        };
        charge.max(ban)
    }

    /// How long it is of use still, of a charge that was made so long ago. What is charged now, and a
    /// failure, are new.
    #[must_use]
    pub fn life_left(&self, age: Nanos) -> Nanos {
        match self.change {
            Change::GiveBack { .. } | Change::Refund => self.life().saturating_sub(age),
            Change::Charge | Change::Failure | Change::Reset => self.life(),
        }
    }
}

#[cfg(test)]
mod tests {
    use tollgate_limit::{
        Algorithm, Ask, Ban, Change, Concurrency, Cost, KeyHash, LeakyBucket, Nanos, OldestSlice,
        Rule, SlidingLog, SlidingWindow, TokenBucket, Window,
    };
    use tollgate_wire::identity::BootId;

    use crate::amend::{AmendQueue, Amendment};

    const fn at(millis: u64) -> Nanos {
        Nanos::from_millis(millis)
    }

    fn window() -> Window {
        Window::new(at(1_000)).unwrap()
    }

    fn amendment(algorithm: Algorithm, change: Change) -> Amendment {
        let ask = Ask {
            key: KeyHash::from_halves(1, 2),
            rule: Rule::new(algorithm),
            cost: Cost::ONE,
        };
        Amendment { ask, change }
    }

    fn sliding_window() -> Algorithm {
        Algorithm::SlidingWindow(SlidingWindow {
            limit: 5,
            window: window(),
            slices: 1,
            oldest: OldestSlice::Weighted,
        })
    }

    /// A charge stays in a bucket until it has drained, which may take many windows.
    #[test]
    fn it_lives_as_long_as_what_it_changes() {
        let (limit, window) = (10, window());
        let bucket = |limit, burst| {
            Algorithm::TokenBucket(TokenBucket {
                limit,
                window,
                burst,
            })
        };
        let queue = |limit, queue| {
            Algorithm::LeakyBucket(LeakyBucket {
                limit,
                window,
                queue,
            })
        };
        for (algorithm, life) in [
            (sliding_window(), at(1_000)),
            (
                Algorithm::SlidingLog(SlidingLog { limit, window }),
                at(1_000),
            ),
            (
                Algorithm::Concurrency(Concurrency { limit, ttl: window }),
                at(1_000),
            ),
            (bucket(10, 10), at(1_000)),
            (bucket(10, 3), at(1_000)),
            (bucket(10, 1_000), at(100_000)),
            (bucket(3, 10), Nanos::new(3_333_333_334)),
            (bucket(0, 0), at(1_000)),
            (bucket(1, 1 << 53), Nanos::MAX),
            (queue(10, 99), at(10_000)),
            (queue(0, 99), at(1_000)),
        ] {
            for change in [
                Change::GiveBack { slice: 0 },
                Change::Refund,
                Change::Charge,
                Change::Failure,
                Change::Reset,
            ] {
                assert_eq!(amendment(algorithm, change).life(), life, "{algorithm:?}");
            }
        }
    }

    /// A give-back that comes when its charge has left would take what another has charged.
    #[test]
    fn of_a_charge_that_was_made_before_less_is_left() {
        let left = |change, age| amendment(sliding_window(), change).life_left(at(age));
        for change in [Change::GiveBack { slice: 0 }, Change::Refund] {
            assert_eq!(left(change, 0), at(1_000));
            assert_eq!(left(change, 400), at(600));
            assert_eq!(left(change, 1_400), Nanos::ZERO);
        }
        for change in [Change::Charge, Change::Failure, Change::Reset] {
            assert_eq!(left(change, 400), at(1_000));
        }
    }

    /// A ban outlives the window: so must what lifts it, and a charge need not.
    #[test]
    fn a_reset_lives_as_long_as_a_ban() {
        let with_ban = |change| {
            let mut amendment = amendment(sliding_window(), change);
            amendment.ask.rule.ban = Some(Ban {
                length: at(5_000),
                escalation: 2_000,
                longest: at(60_000),
            });
            amendment
        };
        assert_eq!(with_ban(Change::Reset).life(), at(60_000));
        assert_eq!(with_ban(Change::Refund).life(), at(1_000));
        let mut queue = AmendQueue::new(BootId(1));
        queue.push(at(0), with_ban(Change::Reset)).unwrap();
        queue.expire(at(59_999));
        assert_eq!(queue.len(), 1);
        queue.expire(at(60_000));
        assert!(queue.is_empty());
    }
}
