//! What an entry node does when an owner gave no verdicts.
//!
//! A pure function of what happened. A check is never answered later than its deadline (P3), and the
//! same request number is never counted twice by one owner, so asking again is safe only under the
//! same number or where the owner said that it counted nothing.

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
    /// The limit's fallback.
    FallBack,
}

/// The next step; each is taken at most once for a check, so a chain has at most three.
#[must_use]
pub fn next_step(
    failure: Failure,
    attempts: Attempts,
    time_left: Nanos,
    newest: NewestOwner,
) -> NextStep {
    if time_left < LEAST_TIME_TO_ASK {
        return NextStep::FallBack;
    }
    match failure {
        Failure::NotOwner if attempts.redirected => NextStep::FallBack,
        Failure::NotOwner => match newest {
            NewestOwner::Other => NextStep::AskNewOwner,
            NewestOwner::Same if !attempts.pulled => NextStep::PullMembers,
            NewestOwner::Same | NewestOwner::None => NextStep::FallBack,
        },
        Failure::ConnectionLost if !attempts.repeated => NextStep::AskAgain,
        Failure::ConnectionLost | Failure::TooLate | Failure::Timeout | Failure::BreakerOpen => {
            NextStep::FallBack
        }
    }
}

#[cfg(test)]
mod tests {
    use tollgate_limit::Nanos;

    use super::{Attempts, Failure, LEAST_TIME_TO_ASK, NewestOwner, NextStep, next_step};

    const FAILURES: [Failure; 5] = [
        Failure::NotOwner,
        Failure::TooLate,
        Failure::Timeout,
        Failure::ConnectionLost,
        Failure::BreakerOpen,
    ];
    const OWNERS: [NewestOwner; 3] = [NewestOwner::Same, NewestOwner::Other, NewestOwner::None];

    fn first(failure: Failure, newest: NewestOwner) -> NextStep {
        next_step(failure, Attempts::default(), LEAST_TIME_TO_ASK, newest)
    }

    #[test]
    fn not_owner_leads_to_the_new_owner_or_to_newer_members() {
        assert_eq!(
            first(Failure::NotOwner, NewestOwner::Other),
            NextStep::AskNewOwner
        );
        assert_eq!(
            first(Failure::NotOwner, NewestOwner::Same),
            NextStep::PullMembers
        );
        assert_eq!(
            first(Failure::NotOwner, NewestOwner::None),
            NextStep::FallBack
        );
    }

    #[test]
    fn a_lost_connection_is_asked_again_and_nothing_unknown_elsewhere() {
        for newest in OWNERS {
            assert_eq!(first(Failure::ConnectionLost, newest), NextStep::AskAgain);
            for failure in [Failure::TooLate, Failure::Timeout, Failure::BreakerOpen] {
                assert_eq!(first(failure, newest), NextStep::FallBack);
            }
        }
    }

    #[test]
    fn without_time_there_is_only_the_fallback() {
        let too_little = LEAST_TIME_TO_ASK.saturating_sub(Nanos::new(1));
        for failure in FAILURES {
            for newest in OWNERS {
                let step = next_step(failure, Attempts::default(), too_little, newest);
                assert_eq!(step, NextStep::FallBack);
            }
        }
    }

    /// Whatever goes wrong and in whatever order, a chain ends after three steps.
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
                        NextStep::FallBack => continue,
                    }
                    assert_ne!(after, attempts, "no step is taken twice");
                    most = most.max(1 + longest(after));
                }
            }
            most
        }
        assert_eq!(longest(Attempts::default()), 3);
    }
}
