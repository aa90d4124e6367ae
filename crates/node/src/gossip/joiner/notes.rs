//! What the operator is told of the way in: who refuses this node and why, and who does not answer.
//!
//! Invariants: [`MAX_TARGETS`] addresses and names each; of each kind one line a minute.

use std::{collections::BTreeMap, fmt::Write as _, net::SocketAddr};

use tollgate_limit::Nanos;

use super::round::MAX_TARGETS;
use crate::{
    gossip::{copy::CopyError, once_a_minute::OnceAMinute},
    transport::DialError,
};

/// How many seeds one line names; the others are counted.
const NAMED: usize = 4;

/// What came of asking, by seed.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Who refused this node, and has not taken it in since.
    refusals: BTreeMap<SocketAddr, CopyError>,
    /// Who did not answer last time; by address, or by name if it has none.
    failures: BTreeMap<String, String>,
    refused: OnceAMinute,
    alone: OnceAMinute,
}

impl Notes {
    /// Forgets who said what, but not what was told.
    pub(super) fn clear(&mut self) {
        self.refusals.clear();
        self.failures.clear();
    }

    /// Somebody took this node in.
    pub(super) fn answered(&mut self) {
        self.failures.clear();
    }

    /// Somebody refused this node. `true` if that is news.
    pub(super) fn refused(&mut self, address: SocketAddr, error: CopyError) -> bool {
        if self.refusals.len() >= MAX_TARGETS && !self.refusals.contains_key(&address) {
            self.refusals.clear();
        }
        self.failed(address.to_string(), &error);
        self.refusals.insert(address, error).is_none()
    }

    /// Somebody did not answer. `true` if it was the last that refused this node: only a process that has
    /// this node's name stops refusing by ending.
    pub(super) fn unanswered(&mut self, address: SocketAddr, error: &CopyError) -> bool {
        self.failed(address.to_string(), error);
        if !matches!(
            self.refusals.get(&address),
            Some(CopyError::Dial(DialError::SameName))
        ) {
            return false;
        }
        self.refusals.remove(&address);
        self.refusals.is_empty()
    }

    /// A seed, by address or name, came to nothing.
    pub(super) fn failed(&mut self, seed: String, error: &impl std::fmt::Display) {
        if self.failures.len() >= MAX_TARGETS && !self.failures.contains_key(&seed) {
            self.failures.clear();
        }
        self.failures.insert(seed, error.to_string());
    }

    /// This node stays out, as everybody who answered refused it.
    pub(super) fn tell_refused(&mut self, now: Nanos) {
        let Some((address, error)) = self.refusals.first_key_value() else {
            return;
        };
        if self.refused.is_due(now) {
            tracing::error!(
                %address,
                reason = %error,
                refusing = self.refusals.len(),
                compare = error.to_compare(),
                "this node is refused by its seeds and stays out of the cluster"
            );
        }
    }

    /// This node goes on alone.
    pub(super) fn tell_alone(&mut self, now: Nanos, seeds: &str) {
        if self.alone.is_due(now) {
            tracing::warn!(
                seeds,
                errors = self.errors(),
                "no seed answered within the join timeout: this node goes on alone"
            );
        }
    }

    /// This node is alone, and not at its own wish.
    pub(super) fn tell_still_alone(&mut self, now: Nanos, seeds: &str) {
        if !self.failures.is_empty() && self.alone.is_due(now) {
            tracing::warn!(
                seeds,
                errors = self.errors(),
                "this node is alone: it finds none of its seeds"
            );
        }
    }

    fn errors(&self) -> String {
        named(
            self.failures
                .iter()
                .map(|(seed, error)| format!("{seed}: {error}")),
        )
    }
}

/// The first few, and how many there are beside them.
pub(super) fn named(all: impl ExactSizeIterator<Item = String>) -> String {
    let others = all.len().saturating_sub(NAMED);
    let mut line = all.take(NAMED).collect::<Vec<_>>().join(", ");
    if others > 0 && write!(line, " and {others} more").is_err() {
        tracing::trace!("a string takes whatever is written");
    }
    line
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use super::{MAX_TARGETS, Notes, named};
    use crate::{gossip::copy::CopyError, transport::DialError};

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    }

    #[test]
    fn a_refusal_is_news_once_and_outlasts_silence() {
        let mut notes = Notes::default();
        assert!(notes.refused(at(1), CopyError::OtherCluster));
        assert!(!notes.refused(at(1), CopyError::OtherCluster));
        assert!(!notes.unanswered(at(1), &CopyError::TimedOut));
        assert!(!notes.refused(at(1), CopyError::OtherCluster));
    }

    #[test]
    fn a_process_with_the_same_name_refuses_until_it_ends() {
        let mut notes = Notes::default();
        let same_name = || CopyError::Dial(DialError::SameName);
        notes.refused(at(1), same_name());
        notes.refused(at(2), same_name());
        assert!(!notes.unanswered(at(1), &CopyError::TimedOut));
        assert!(notes.unanswered(at(2), &CopyError::TimedOut));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut notes = Notes::default();
        for port in 1..1_000 {
            notes.refused(at(port), CopyError::OtherCluster);
            assert!(notes.refusals.len() <= MAX_TARGETS);
            assert!(notes.failures.len() <= MAX_TARGETS);
        }
    }

    #[test]
    fn a_long_list_is_cut() {
        let all = (1..7_u16).map(|number| format!("n{number}"));
        assert_eq!(named(all), "n1, n2, n3, n4 and 2 more");
        assert_eq!(named(std::iter::empty()), "");
    }
}
