//! The way into the cluster: when a node that starts may own slots.
//!
//! Knows nothing of gossip or streams: it is told that somebody was found and that a member's state
//! was copied. Handing over counts will add a condition beside the copy.

use tollgate_limit::Nanos;

/// How long nobody must be found before a node goes on alone.
pub const JOIN_TIMEOUT: Nanos = Nanos::from_millis(3_000);

/// Whether the node was told of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seeds {
    /// It is the first, or alone.
    None,
    /// It shall join these.
    Some,
}

/// The joining of one node: done when a member's state was copied, or when nobody was found for the
/// join timeout; at once without seeds. Once done it stays so.
///
/// Events: [`handle_found`](Self::handle_found), [`handle_copied`](Self::handle_copied),
/// [`handle_timeout`](Self::handle_timeout). Timer: [`poll_timeout`](Self::poll_timeout).
#[derive(Clone, Debug)]
pub struct Joining {
    join_timeout: Nanos,
    /// When to go on alone; `None` when done.
    alone_at: Option<Nanos>,
}

impl Joining {
    /// Starts joining; `join_timeout` is [`JOIN_TIMEOUT`] unless configured.
    #[must_use]
    pub fn new(now: Nanos, seeds: Seeds, join_timeout: Nanos) -> Self {
        let alone_at = match seeds {
            Seeds::None => None,
            Seeds::Some => Some(now.saturating_add(join_timeout)),
        };
        Self {
            join_timeout,
            alone_at,
        }
    }

    /// A sign of life came from a member: as long as they come the node waits for the copy.
    pub fn handle_found(&mut self, now: Nanos) {
        if let Some(alone_at) = &mut self.alone_at {
            *alone_at = now.saturating_add(self.join_timeout).max(*alone_at);
        }
    }

    /// A member's state was copied.
    pub const fn handle_copied(&mut self, _now: Nanos) {
        self.alone_at = None;
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Nanos) {
        self.alone_at = self.alone_at.filter(|alone_at| now < *alone_at);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next.
    #[must_use]
    pub const fn poll_timeout(&self) -> Option<Nanos> {
        self.alone_at
    }

    /// Whether the node may become active.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.alone_at.is_none()
    }
}

#[cfg(test)]
mod tests {
    use tollgate_limit::Nanos;

    use super::{JOIN_TIMEOUT, Joining, Seeds};

    const fn at(millis: u64) -> Nanos {
        Nanos::from_millis(millis)
    }

    #[test]
    fn without_seeds_it_is_done_at_once() {
        let joining = Joining::new(at(5), Seeds::None, JOIN_TIMEOUT);
        assert!(joining.is_done());
        assert_eq!(joining.poll_timeout(), None);
    }

    #[test]
    fn a_copy_ends_it() {
        let mut joining = Joining::new(at(0), Seeds::Some, JOIN_TIMEOUT);
        assert!(!joining.is_done());
        joining.handle_copied(at(10));
        assert!(joining.is_done());
        joining.handle_found(at(20));
        assert!(joining.is_done(), "done stays done");
    }

    #[test]
    fn alone_for_the_timeout_it_goes_on() {
        let mut joining = Joining::new(at(0), Seeds::Some, JOIN_TIMEOUT);
        assert_eq!(joining.poll_timeout(), Some(at(3_000)));
        joining.handle_timeout(at(2_999));
        assert!(!joining.is_done());
        joining.handle_timeout(at(3_000));
        assert!(joining.is_done());
    }

    #[test]
    fn while_somebody_is_there_it_waits_for_the_copy() {
        let mut joining = Joining::new(at(0), Seeds::Some, JOIN_TIMEOUT);
        joining.handle_found(at(2_900));
        joining.handle_found(at(2_800));
        joining.handle_timeout(at(3_000));
        assert!(!joining.is_done());
        assert_eq!(joining.poll_timeout(), Some(at(5_900)));
        joining.handle_timeout(at(5_900));
        assert!(joining.is_done(), "they fell silent");
    }
}
