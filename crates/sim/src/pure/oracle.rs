//! The oracle: who is a member, and when each node learns of it.
//!
//! In the place of gossip: it knows what is true and tells each node each change with a lag of its own. News of
//! one member reach a node in their order, news of different members in any. It also lies, when it is told to.

use tollgate_wire::identity::{BootId, Phase};

/// What is known of one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct News {
    pub(super) member: usize,
    /// News of one member that are older than what is known change nothing.
    pub(super) version: u64,
    /// `None`: it is gone.
    pub(super) state: Option<(BootId, Phase)>,
}

/// What is true.
#[derive(Debug)]
pub(super) struct Oracle {
    known: Vec<News>,
    versions: u64,
}

impl Oracle {
    pub(super) fn new(nodes: usize) -> Self {
        let unknown = |member| News {
            member,
            version: 0,
            state: None,
        };
        Self {
            known: (0..nodes).map(unknown).collect(),
            versions: 0,
        }
    }

    /// A member changes: the news to spread.
    pub(super) fn change(&mut self, member: usize, state: Option<(BootId, Phase)>) -> News {
        let news = self.claim(member, state);
        if let Some(known) = self.known.get_mut(member) {
            *known = news;
        }
        news
    }

    /// News that are newer than all and not true.
    pub(super) const fn claim(&mut self, member: usize, state: Option<(BootId, Phase)>) -> News {
        self.versions = self.versions.saturating_add(1);
        News {
            member,
            version: self.versions,
            state,
        }
    }

    /// What is true of a member, as news that are newer than all.
    pub(super) fn again(&mut self, member: usize) -> News {
        let state = self.state_of(member);
        self.change(member, state)
    }

    pub(super) fn state_of(&self, member: usize) -> Option<(BootId, Phase)> {
        self.known.get(member).and_then(|known| known.state)
    }

    /// All that is true, for a node that starts.
    pub(super) fn all(&self) -> &[News] {
        &self.known
    }
}
