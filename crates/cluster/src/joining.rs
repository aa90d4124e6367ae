//! The way into the cluster: when a node that starts may own slots.
//!
//! Knows nothing of gossip, streams or counters: it is told that somebody was found, that somebody refused
//! this node, that a member's state was copied, and that the counts of the slots to come were. Invariants:
//! a node that was refused by everybody who answered is never done by time alone; one that has copied
//! a member's state waits for the counts (P6), for [`WARM_TIMEOUT`] at most (P3).

use tollgate_limit::Nanos;

/// How long nobody must be found before a node goes on alone.
pub const JOIN_TIMEOUT: Nanos = Nanos::from_millis(3_000);

/// How long a node that has copied a member's state waits for the counts of its slots; after that it goes
/// on without those that are missing.
pub const WARM_TIMEOUT: Nanos = Nanos::from_millis(3_000);

/// How often a node that is refused says so.
pub const REFUSED_AGAIN_AFTER: Nanos = Nanos::from_millis(60_000);

/// Whether the node was told of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seeds {
    /// It is the first, or alone.
    None,
    /// It shall join these.
    Some,
}

/// What became of waiting, for one log line each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinNews {
    /// Nobody answered for the join timeout: the node goes on alone.
    Alone,
    /// Everybody who answered refused this node: it stays out. At most once in
    /// [`REFUSED_AGAIN_AFTER`].
    Refused,
    /// The counts of its slots have not come in time: the node goes on without some.
    Cold,
}

/// The joining of one node: done when a member's state and then the counts of the slots to come were
/// copied, or when the counts take too long, or when nobody was found for the join timeout; at once without
/// seeds. Once done it stays so.
///
/// Events: [`handle_found`](Self::handle_found), [`handle_refused`](Self::handle_refused),
/// [`handle_refusals_over`](Self::handle_refusals_over), [`handle_copied`](Self::handle_copied),
/// [`handle_warm`](Self::handle_warm), [`handle_timeout`](Self::handle_timeout). Timer: [`poll_timeout`](Self::poll_timeout).
#[derive(Clone, Debug)]
pub struct Joining {
    join_timeout: Nanos,
    /// When to go on alone or cold, or to say that it is refused; `None` when done.
    deadline: Option<Nanos>,
    answers: Answers,
}

/// What those who answered said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    /// Nobody answered.
    Silence,
    /// All refused.
    Refusals,
    /// Somebody took this node in.
    Found,
    /// Somebody's state was copied.
    Copied,
}

impl Joining {
    /// Starts joining; `join_timeout` is [`JOIN_TIMEOUT`] unless configured.
    #[must_use]
    pub fn new(now: Nanos, seeds: Seeds, join_timeout: Nanos) -> Self {
        let deadline = match seeds {
            Seeds::None => None,
            Seeds::Some => Some(now.saturating_add(join_timeout)),
        };
        Self {
            join_timeout,
            deadline,
            answers: Answers::Silence,
        }
    }

    /// A sign of life came from a member: as long as they come the node waits for the copy. Whoever
    /// refuses it beside that member does not count.
    pub fn handle_found(&mut self, now: Nanos) {
        if self.answers == Answers::Copied {
            return;
        }
        let refused = self.answers == Answers::Refusals;
        self.answers = Answers::Found;
        if let Some(deadline) = &mut self.deadline {
            let later = now.saturating_add(self.join_timeout);
            *deadline = if refused { later } else { later.max(*deadline) };
        }
    }

    /// Somebody refused this node for a reason that does not go away by itself.
    pub fn handle_refused(&mut self) {
        if self.answers == Answers::Silence {
            self.answers = Answers::Refusals;
        }
    }

    /// Nobody refuses this node any more, and nobody took it in: it waits for the timeout again.
    pub fn handle_refusals_over(&mut self, now: Nanos) {
        if self.answers == Answers::Refusals {
            self.answers = Answers::Silence;
            self.deadline = self.deadline.map(|_| now.saturating_add(self.join_timeout));
        }
    }

    /// A member's state was copied: from here on the node waits for the counts.
    pub fn handle_copied(&mut self, now: Nanos) {
        if self.answers != Answers::Copied {
            self.answers = Answers::Copied;
            self.deadline = self.deadline.map(|_| now.saturating_add(WARM_TIMEOUT));
        }
    }

    /// The counts of all slots to come are here, as far as anybody has them. Means nothing before a member's
    /// state was copied: which slots they are is not known then.
    pub fn handle_warm(&mut self) {
        if self.answers == Answers::Copied {
            self.deadline = None;
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Nanos) -> Option<JoinNews> {
        if now < self.deadline? {
            return None;
        }
        match self.answers {
            Answers::Silence => {
                self.deadline = None;
                Some(JoinNews::Alone)
            }
            Answers::Refusals => {
                self.deadline = Some(now.saturating_add(REFUSED_AGAIN_AFTER));
                Some(JoinNews::Refused)
            }
            Answers::Found => {
                self.deadline = None;
                None
            }
            Answers::Copied => {
                self.deadline = None;
                Some(JoinNews::Cold)
            }
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next.
    #[must_use]
    pub const fn poll_timeout(&self) -> Option<Nanos> {
        self.deadline
    }

    /// Whether the node may become active.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.deadline.is_none()
    }
}

#[cfg(test)]
mod tests {
    use tollgate_limit::Nanos;

    use super::{JOIN_TIMEOUT, JoinNews, Joining, REFUSED_AGAIN_AFTER, Seeds, WARM_TIMEOUT};

    const fn at(millis: u64) -> Nanos {
        Nanos::from_millis(millis)
    }

    #[test]
    fn without_seeds_it_is_done_at_once() {
        let mut joining = Joining::new(at(5), Seeds::None, JOIN_TIMEOUT);
        assert!(joining.is_done());
        assert_eq!(joining.poll_timeout(), None);
        joining.handle_copied(at(6));
        assert!(joining.is_done(), "done stays done");
    }

    #[test]
    fn a_copy_and_then_the_counts_end_it() {
        let mut joining = Joining::new(at(0), Seeds::Some, JOIN_TIMEOUT);
        assert!(!joining.is_done());
        joining.handle_warm();
        assert!(!joining.is_done(), "of which slots?");
        joining.handle_copied(at(10));
        assert!(
            !joining.is_done(),
            "it would own slots without their counts"
        );
        joining.handle_warm();
        assert!(joining.is_done());
        joining.handle_found(at(20));
        joining.handle_copied(at(30));
        assert!(joining.is_done(), "done stays done");
        assert_eq!(joining.handle_timeout(at(9_000)), None);
    }

    #[test]
    fn without_the_counts_it_goes_on_in_a_while_and_says_so() {
        let mut joining = Joining::new(at(0), Seeds::Some, JOIN_TIMEOUT);
        joining.handle_copied(at(2_900));
        let end = at(2_900).saturating_add(WARM_TIMEOUT);
        assert_eq!(joining.handle_timeout(at(3_000)), None);
        // Nothing makes the time longer.
        joining.handle_found(at(4_000));
        joining.handle_refused();
        joining.handle_refusals_over(at(4_000));
        joining.handle_copied(at(4_000));
        assert_eq!(joining.poll_timeout(), Some(end));
        assert_eq!(joining.handle_timeout(at(5_899)), None);
        assert!(!joining.is_done());
        assert_eq!(joining.handle_timeout(end), Some(JoinNews::Cold));
        assert!(joining.is_done());
    }

    #[test]
    fn alone_for_the_timeout_it_goes_on() {
        let mut joining = Joining::new(at(0), Seeds::Some, JOIN_TIMEOUT);
        assert_eq!(joining.poll_timeout(), Some(at(3_000)));
        assert_eq!(joining.handle_timeout(at(2_999)), None);
        assert!(!joining.is_done());
        assert_eq!(joining.handle_timeout(at(3_000)), Some(JoinNews::Alone));
        assert!(joining.is_done());
        assert_eq!(joining.handle_timeout(at(9_000)), None, "told once");
    }

    #[test]
    fn while_somebody_is_there_it_waits_for_the_copy() {
        let mut joining = Joining::new(at(0), Seeds::Some, JOIN_TIMEOUT);
        joining.handle_found(at(2_900));
        joining.handle_found(at(2_800));
        assert_eq!(joining.handle_timeout(at(3_000)), None);
        assert!(!joining.is_done());
        assert_eq!(joining.poll_timeout(), Some(at(5_900)));
        assert_eq!(joining.handle_timeout(at(5_900)), None);
        assert!(joining.is_done(), "they fell silent");
    }

    #[test]
    fn refused_by_all_who_answer_it_stays_out_and_says_so_once_a_minute() {
        let mut joining = Joining::new(at(0), Seeds::Some, JOIN_TIMEOUT);
        joining.handle_refused();
        assert_eq!(joining.handle_timeout(at(2_999)), None);
        let mut told = Vec::new();
        for second in 3..=130 {
            joining.handle_refused();
            told.extend(joining.handle_timeout(at(second * 1_000)));
        }
        assert_eq!(told, [JoinNews::Refused; 3]);
        assert_eq!(REFUSED_AGAIN_AFTER, at(60_000));
        assert!(!joining.is_done());
    }

    #[test]
    fn one_that_takes_it_in_outweighs_those_that_refuse() {
        let mut joining = Joining::new(at(0), Seeds::Some, JOIN_TIMEOUT);
        joining.handle_refused();
        let told = joining.handle_timeout(at(3_000));
        assert_eq!(told, Some(JoinNews::Refused));
        joining.handle_found(at(10_000));
        joining.handle_refused();
        assert_eq!(joining.poll_timeout(), Some(at(13_000)));
        assert_eq!(joining.handle_timeout(at(13_000)), None);
        assert!(joining.is_done());
    }

    #[test]
    fn when_nobody_refuses_it_any_more_it_waits_once_more() {
        let mut joining = Joining::new(at(0), Seeds::Some, JOIN_TIMEOUT);
        joining.handle_refused();
        let told = joining.handle_timeout(at(3_000));
        assert_eq!(told, Some(JoinNews::Refused));
        joining.handle_refusals_over(at(10_000));
        assert_eq!(joining.handle_timeout(at(12_999)), None);
        assert_eq!(joining.handle_timeout(at(13_000)), Some(JoinNews::Alone));
    }

    #[test]
    fn refused_it_still_comes_in_with_a_copy() {
        let mut joining = Joining::new(at(0), Seeds::Some, JOIN_TIMEOUT);
        joining.handle_refused();
        joining.handle_copied(at(70_000));
        joining.handle_warm();
        assert!(joining.is_done());
        joining.handle_refused();
        assert_eq!(joining.handle_timeout(at(90_000)), None);
        assert!(joining.is_done());
    }
}
