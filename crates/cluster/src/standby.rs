//! What a node does with a check that it is asked, by how it holds the slots.
//!
//! At most entry -> standby -> owner: who is asked as owner decides, or passes the check on to whom it
//! gave the slots, or says that it is not the owner; who is asked as standby passes it on to the owner if
//! it can, since the copy is behind, and else decides on its copy; what was passed on is never passed on
//! again. Knows nothing of links and stores.

use tollgate_limit::{Nanos, NodeId};

use crate::{
    motion::Hold,
    retry::LEAST_TIME_TO_ASK,
    sabotage::{self, Sabotage},
};

/// As what a node is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AskedAs {
    /// As the owner, by an entry node.
    Owner,
    /// As the standby, by an entry node that had no answer of the owner.
    Standby,
    /// As the owner, by a node that passes a check of another on.
    Relayed,
}

/// The owner of the slots by this node's view, as this node reaches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behind {
    /// The owner.
    pub owner: NodeId,
    /// Whether it can be asked: the connection is up and the breaker closed.
    pub is_usable: bool,
    /// Whether the copy of all slots of the check is complete since this start of the owner.
    pub has_copy: bool,
}

/// What to do with a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Course {
    /// Decide as the owner, where the store lets it.
    Decide {
        /// Whether counts may be missing: they have not come in time.
        degraded: bool,
    },
    /// Wait until the counts have come, [`HOLD`](crate::HOLD) at most, and look again.
    Hold,
    /// Pass it on, and wait for the answer until then; without one do [`Course::after_relay`].
    Relay(NodeId, Nanos),
    /// Decide as the standby, on the copy; what is counted is owed to the owner.
    DecideOnCopy {
        /// Whether the copy may lack counts.
        degraded: bool,
    },
    /// Count nothing and say so.
    NotOwner,
}

impl Course {
    /// The course of a check that is asked at `now` and worth an answer until `until`. `hold` is that of
    /// all its slots: [`Hold::of_all`]. `behind` is `None` if the slots have no owner but this node, or
    /// not one owner.
    #[must_use]
    pub fn of(
        asked_as: AskedAs,
        hold: &Hold,
        (now, until): (Nanos, Nanos),
        behind: Option<&Behind>,
    ) -> Self {
        match (asked_as, hold) {
            (_, Hold::Yes) => Self::Decide { degraded: false },
            (_, Hold::Overdue) => Self::Decide { degraded: true },
            (_, Hold::Awaiting) => Self::Hold,
            (AskedAs::Owner, Hold::Given(to)) => Self::Relay(to.clone(), until),
            (AskedAs::Standby, Hold::Given(to)) => Self::Relay(to.clone(), half(now, until)),
            // The caller may know of a change that this node has not heard of: who owned it then still decides.
            (AskedAs::Owner, Hold::No) => match behind {
                Some(behind) if behind.is_usable => Self::Relay(behind.owner.clone(), until),
                Some(_) | None => Self::NotOwner,
            },
            (AskedAs::Relayed, Hold::No | Hold::Given(_)) => Self::NotOwner,
            (AskedAs::Standby, Hold::No) => match behind {
                Some(behind) if may_relay(behind, (now, until)) => {
                    Self::Relay(behind.owner.clone(), half(now, until))
                }
                Some(_) | None => Self::after_relay(AskedAs::Standby, behind),
            },
        }
    }

    /// What to do when nobody has answered what was passed on.
    #[must_use]
    pub fn after_relay(asked_as: AskedAs, behind: Option<&Behind>) -> Self {
        match asked_as {
            AskedAs::Standby => Self::DecideOnCopy {
                degraded: behind.is_none_or(|behind| !behind.has_copy),
            },
            AskedAs::Owner | AskedAs::Relayed => Self::NotOwner,
        }
    }
}

impl Hold {
    /// How a node holds all slots of one check, which it decides in one step: the least that it holds one
    /// of them. Of what it holds in part and gave away in part it is not the owner.
    #[must_use]
    pub fn of_all(holds: impl IntoIterator<Item = Self>) -> Self {
        let mut holds = holds.into_iter();
        let Some(first) = holds.next() else {
            return Self::No;
        };
        holds.fold(first, |all, one| match (all, one) {
            (Self::Yes, Self::Yes) => Self::Yes,
            (Self::Given(to), Self::Given(other)) if to == other => Self::Given(to),
            (Self::Given(_) | Self::No, _) | (_, Self::Given(_) | Self::No) => Self::No,
            (Self::Awaiting, _) | (_, Self::Awaiting) => Self::Awaiting,
            (Self::Overdue, _) | (_, Self::Overdue) => Self::Overdue,
        })
    }
}

fn may_relay(behind: &Behind, (now, until): (Nanos, Nanos)) -> bool {
    let is_worth_it = half(now, until).saturating_sub(now) >= LEAST_TIME_TO_ASK;
    behind.is_usable && is_worth_it && !sabotage::is(Sabotage::StandbyNeverRelays)
}

/// A standby keeps half of its time for a decision of its own.
fn half(now: Nanos, until: Nanos) -> Nanos {
    let left = until.saturating_sub(now).as_nanos();
    now.saturating_add(Nanos::new(left / 2))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tollgate_limit::{Nanos, NodeId};

    use super::{AskedAs, Behind, Course};
    use crate::motion::Hold;

    const ALL: [AskedAs; 3] = [AskedAs::Owner, AskedAs::Standby, AskedAs::Relayed];

    const fn at(millis: u64) -> Nanos {
        Nanos::from_millis(millis)
    }

    fn node(name: &str) -> NodeId {
        NodeId::new(name).unwrap()
    }

    fn reached() -> Behind {
        Behind {
            owner: node("owner"),
            is_usable: true,
            has_copy: true,
        }
    }

    fn course(asked_as: AskedAs, hold: &Hold, behind: Option<&Behind>) -> Course {
        Course::of(asked_as, hold, (at(100), at(120)), behind)
    }

    #[test]
    fn who_holds_the_slots_decides_however_it_is_asked() {
        for asked_as in ALL {
            for behind in [None, Some(&reached())] {
                let course = |hold| course(asked_as, &hold, behind);
                assert_eq!(course(Hold::Yes), Course::Decide { degraded: false });
                assert_eq!(course(Hold::Overdue), Course::Decide { degraded: true });
                assert_eq!(course(Hold::Awaiting), Course::Hold);
            }
        }
    }

    /// Who asks may know of a change that this node has not heard of.
    #[test]
    fn who_does_not_passes_it_on_to_whom_it_takes_for_the_owner() {
        let reached = reached();
        let to_owner = Course::Relay(reached.owner.clone(), at(120));
        let lost = Behind {
            is_usable: false,
            ..reached.clone()
        };
        let course = |behind| course(AskedAs::Owner, &Hold::No, behind);
        assert_eq!(course(Some(&reached)), to_owner);
        assert_eq!(course(Some(&lost)), Course::NotOwner);
        assert_eq!(course(None), Course::NotOwner);
    }

    #[test]
    fn who_does_not_says_so_unless_it_is_asked_as_standby() {
        let reached = reached();
        assert_eq!(
            course(AskedAs::Relayed, &Hold::No, Some(&reached)),
            Course::NotOwner
        );
        for asked_as in [AskedAs::Owner, AskedAs::Relayed] {
            assert_eq!(
                Course::after_relay(asked_as, Some(&reached)),
                Course::NotOwner
            );
        }
    }

    #[test]
    fn what_was_given_away_is_passed_on_once() {
        let given = Hold::Given(node("heir"));
        let to = |until| Course::Relay(node("heir"), at(until));
        assert_eq!(course(AskedAs::Owner, &given, None), to(120));
        assert_eq!(course(AskedAs::Standby, &given, None), to(110));
        assert_eq!(course(AskedAs::Relayed, &given, None), Course::NotOwner);
    }

    #[test]
    fn a_standby_passes_it_on_for_half_of_its_time_or_decides_on_its_copy() {
        let standby = |behind: Option<&Behind>| course(AskedAs::Standby, &Hold::No, behind);
        let on_copy = |degraded| Course::DecideOnCopy { degraded };
        let relayed = Course::Relay(node("owner"), at(110));
        for has_copy in [true, false] {
            let reached = Behind {
                has_copy,
                ..reached()
            };
            assert_eq!(standby(Some(&reached)), relayed);
            let after = Course::after_relay(AskedAs::Standby, Some(&reached));
            assert_eq!(after, on_copy(!has_copy));
            let cut_off = Behind {
                is_usable: false,
                ..reached
            };
            assert_eq!(standby(Some(&cut_off)), on_copy(!has_copy));
        }
        assert_eq!(standby(None), on_copy(true));
        let reached = reached();
        let late = |until| {
            Course::of(
                AskedAs::Standby,
                &Hold::No,
                (at(100), until),
                Some(&reached),
            )
        };
        assert_eq!(late(at(102)), Course::Relay(node("owner"), at(101)));
        assert_eq!(
            late(Nanos::new(101_999_999)),
            on_copy(false),
            "no time for it"
        );
        assert_eq!(late(at(50)), on_copy(false));
    }

    fn hold() -> impl Strategy<Value = Hold> {
        let given = |name| Hold::Given(node(name));
        prop_oneof![
            3 => Just(Hold::Yes),
            1 => Just(Hold::No),
            1 => Just(Hold::Awaiting),
            1 => Just(Hold::Overdue),
            1 => Just(given("a")),
            1 => Just(given("b")),
        ]
    }

    proptest! {
        /// In whatever order, a check is decided only if each of its slots may be, and degraded if one is.
        #[test]
        fn all_slots_of_a_check_are_held_or_none(holds in prop::collection::vec(hold(), 1..6)) {
            let joined = Hold::of_all(holds.clone());
            let has = |hold: &Hold| holds.contains(hold);
            let all = |hold: &Hold| holds.iter().all(|one| one == hold);
            let gives = holds.iter().any(|hold| matches!(hold, Hold::Given(_)));
            let expected = if all(&holds[0]) {
                holds[0].clone()
            } else if has(&Hold::No) || gives {
                Hold::No
            } else if has(&Hold::Awaiting) {
                Hold::Awaiting
            } else {
                Hold::Overdue
            };
            prop_assert_eq!(joined, expected);
        }
    }

    #[cfg(feature = "sabotage")]
    #[test]
    fn it_can_be_made_never_to_pass_on() {
        use crate::sabotage::{Sabotage, set};
        set(Some(Sabotage::StandbyNeverRelays));
        let standby = course(AskedAs::Standby, &Hold::No, Some(&reached()));
        assert_eq!(standby, Course::DecideOnCopy { degraded: false });
        set(None);
    }
}
