//! What an entry node does when an owner gave no verdicts.
//!
//! A pure function of what happened. A check is never answered later than its deadline (P3), and the
//! same request number is never counted twice by one owner, so asking again is safe only under the
//! same number, or where the owner said that it counted nothing, or at who stands in for the owner: that
//! one is told the number, and what the owner counted late is given back.

use tollgate_limit::Nanos;

/// The least time left that is worth a question: below it the answer would come too late.
pub const LEAST_TIME_TO_ASK: Nanos = Nanos::from_millis(1);

/// Why there are no verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The peer goes by another placement. It counted nothing.
    NotOwner,
    /// The peer was paused. It counted nothing.
    TooLate,
    /// No reply in time. Whether it was counted is unknown.
    Timeout,
    /// The connection broke. Whether it was counted is unknown.
    ConnectionLost,
    /// The peer's breaker is open: it was not asked.
    BreakerOpen,
}

/// What was tried already for this check at this group of limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a set: each step is independent of the others and taken at most once"
)]
pub struct Attempts {
    /// Whether it was sent again under its number.
    pub repeated: bool,
    /// Whether it was sent to another owner.
    pub redirected: bool,
    /// Whether the members were pulled from the peer that is not the owner.
    pub pulled: bool,
    /// Whether who stands in for the owner was asked, or there is nobody who could be.
    pub standby: bool,
}

/// What the newest placement says of the slot, against the peer that was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewestOwner {
    /// The peer that was asked.
    Same,
    /// Another member, maybe this node.
    Other,
    /// Nobody.
    None,
}

/// What to do next. Each step but the last marks itself in [`Attempts`] by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// The same number again, on the peer's new connection.
    AskAgain,
    /// The newest placement's owner.
    AskNewOwner,
    /// Take over the members that the peer knows, then look again.
    PullMembers,
    /// Who stands in for the owner: [`stand_in`]. Nobody is asked after it.
    AskStandby,
    /// The limit's fallback.
    FallBack,
}

/// The next step; each is taken at most once for a check, so a chain has at most four.
#[must_use]
pub fn next_step(
    failure: Failure,
    attempts: Attempts,
    time_left: Nanos,
    newest: NewestOwner,
) -> NextStep {
    if time_left < LEAST_TIME_TO_ASK || attempts.standby {
        return NextStep::FallBack;
    }
    match failure {
        Failure::NotOwner if attempts.redirected => NextStep::AskStandby,
        Failure::NotOwner => match newest {
            NewestOwner::Other => NextStep::AskNewOwner,
            NewestOwner::Same if !attempts.pulled => NextStep::PullMembers,
            NewestOwner::Same | NewestOwner::None => NextStep::AskStandby,
        },
        Failure::ConnectionLost if !attempts.repeated => NextStep::AskAgain,
        Failure::ConnectionLost | Failure::TooLate | Failure::Timeout | Failure::BreakerOpen => {
            NextStep::AskStandby
        }
    }
}

/// Who stands in for an owner that gave no verdicts, by the newest placement: its owner, if that is
/// another by now, since the slot was that one's to take over, else its standby. Either is asked as a
/// standby, with the number under which the other was asked. `None`: there is nobody but the one that
/// failed.
#[must_use]
pub fn stand_in<M: PartialEq>(failed: &M, owner: Option<M>, standby: Option<M>) -> Option<M> {
    let mut ranked = [owner, standby].into_iter().flatten();
    ranked.find(|member| member != failed)
}

#[cfg(test)]
mod tests {
    use tollgate_limit::Nanos;

    use super::{Attempts, Failure, LEAST_TIME_TO_ASK, NewestOwner, NextStep, next_step, stand_in};

    const FAILURES: [Failure; 5] = [
        Failure::NotOwner,
        Failure::TooLate,
        Failure::Timeout,
        Failure::ConnectionLost,
        Failure::BreakerOpen,
    ];
    const OWNERS: [NewestOwner; 3] = [NewestOwner::Same, NewestOwner::Other, NewestOwner::None];
    const NONE: Attempts = Attempts {
        repeated: false,
        redirected: false,
        pulled: false,
        standby: false,
    };

    fn all_attempts() -> impl Iterator<Item = Attempts> {
        (0_u8..16).map(|bits| Attempts {
            repeated: bits & 1 != 0,
            redirected: bits & 2 != 0,
            pulled: bits & 4 != 0,
            standby: bits & 8 != 0,
        })
    }

    #[test]
    fn each_failure_has_its_next_step() {
        use Failure::{BreakerOpen, ConnectionLost, NotOwner, Timeout, TooLate};
        use NextStep::{AskAgain, AskNewOwner, AskStandby, PullMembers};
        let repeated = Attempts {
            repeated: true,
            ..NONE
        };
        let redirected = Attempts {
            redirected: true,
            ..NONE
        };
        let pulled = Attempts {
            pulled: true,
            ..NONE
        };
        // By the newest owner: the same, another, none.
        for (failure, attempts, steps) in [
            (NotOwner, NONE, [PullMembers, AskNewOwner, AskStandby]),
            (NotOwner, repeated, [PullMembers, AskNewOwner, AskStandby]),
            (NotOwner, pulled, [AskStandby, AskNewOwner, AskStandby]),
            (NotOwner, redirected, [AskStandby; 3]),
            (ConnectionLost, NONE, [AskAgain; 3]),
            (ConnectionLost, redirected, [AskAgain; 3]),
            (ConnectionLost, repeated, [AskStandby; 3]),
            (Timeout, NONE, [AskStandby; 3]),
            (Timeout, redirected, [AskStandby; 3]),
            (TooLate, NONE, [AskStandby; 3]),
            (BreakerOpen, NONE, [AskStandby; 3]),
        ] {
            for (newest, step) in OWNERS.into_iter().zip(steps) {
                let next = next_step(failure, attempts, LEAST_TIME_TO_ASK, newest);
                assert_eq!(next, step, "{failure:?} {attempts:?} {newest:?}");
            }
        }
    }

    #[test]
    fn without_time_or_after_the_standby_there_is_only_the_fallback() {
        let too_little = LEAST_TIME_TO_ASK.saturating_sub(Nanos::new(1));
        for failure in FAILURES {
            for newest in OWNERS {
                for attempts in all_attempts() {
                    let step = next_step(failure, attempts, too_little, newest);
                    assert_eq!(step, NextStep::FallBack);
                    let step = next_step(failure, attempts, Nanos::MAX, newest);
                    assert_eq!(step == NextStep::FallBack, attempts.standby);
                }
            }
        }
    }

    /// Whatever goes wrong and in whatever order, a chain ends after four steps, the standby's last.
    #[test]
    fn every_chain_ends() {
        fn longest(attempts: Attempts) -> u32 {
            let mut most = 0;
            for failure in FAILURES {
                for newest in OWNERS {
                    let mut after = attempts;
                    match next_step(failure, attempts, Nanos::MAX, newest) {
                        NextStep::AskAgain => after.repeated = true,
                        NextStep::AskNewOwner => after.redirected = true,
                        NextStep::PullMembers => after.pulled = true,
                        NextStep::AskStandby => after.standby = true,
                        NextStep::FallBack => {
                            assert!(attempts.standby, "the standby is asked before");
                            continue;
                        }
                    }
                    assert_ne!(after, attempts, "no step is taken twice");
                    most = most.max(1 + longest(after));
                }
            }
            most
        }
        assert_eq!(longest(Attempts::default()), 4);
    }

    #[test]
    fn who_has_taken_over_stands_in_before_the_standby() {
        let (old, new, third) = (1, 2, 3);
        assert_eq!(stand_in(&old, Some(old), Some(new)), Some(new));
        assert_eq!(stand_in(&old, Some(new), Some(third)), Some(new));
        assert_eq!(stand_in(&old, Some(new), Some(old)), Some(new));
        assert_eq!(stand_in(&old, Some(old), None), None);
        assert_eq!(stand_in(&old, None, None), None);
    }
}
