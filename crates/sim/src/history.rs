//! What happened in a run, as its outside sees it: what was asked and answered, and what went wrong.
//!
//! Plain data. Written by the simulators and by tests of real clusters, read by the [checker](crate::check).
//! Instants are of one clock that all of a run share. Knows nothing of how nodes work. What is not known is
//! left out, and the checker then takes the side of the cluster.

use std::collections::BTreeMap;

use tollgate_limit::{DecidedBy, Nanos, NodeId, Reason, Rule};
use tollgate_wire::identity::BootId;

/// All that is known of one run.
#[derive(Clone, Debug)]
pub struct History {
    /// The counters that were asked, by name.
    pub rules: BTreeMap<String, Rule>,
    /// What was asked of each, and answered.
    pub answers: Vec<Answer>,
    /// Refunds and resets.
    pub amends: Vec<Amend>,
    /// What went wrong, and when.
    pub faults: Vec<Fault>,
    /// When members came and went as planned; the start too.
    pub changes: Vec<Nanos>,
    /// Who decided for a key as its owner, and when.
    pub holds: Vec<Held>,
    /// What was counted at the end, once all was quiet.
    pub ends: Vec<End>,
    /// What the run promises of time.
    pub terms: Terms,
}

impl History {
    /// Nothing has happened.
    #[must_use]
    pub const fn new(terms: Terms) -> Self {
        Self {
            rules: BTreeMap::new(),
            answers: Vec::new(),
            amends: Vec::new(),
            faults: Vec::new(),
            changes: Vec::new(),
            holds: Vec::new(),
            ends: Vec::new(),
            terms,
        }
    }
}

/// What a run says of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Within which every check is to be answered.
    pub deadline: Nanos,
    /// By how much the measuring itself may be late.
    pub slack: Nanos,
    /// The longest that a message took that was not lost.
    pub longest_delay: Nanos,
    /// How long after a fault or a change copies may still be incomplete.
    pub recovery: Nanos,
    /// Unix time of the clock's origin: fixed windows are aligned by it.
    pub unix_origin: Nanos,
}

/// What one limit said to one check. A check of several limits has one for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The check, the same for all its limits.
    pub check: u64,
    /// The counter, as in [`History::rules`].
    pub key: String,
    /// Units that were asked for.
    pub cost: u64,
    /// The node that the client asked.
    pub entry: NodeId,
    /// When it was asked.
    pub asked: Nanos,
    /// When the client had its answer; `None` if it never came.
    pub answered: Option<Nanos>,
    /// When it was decided, where that is known: between the two.
    pub decided: Option<Nanos>,
    /// What was said.
    pub said: Said,
    /// Who decided.
    pub by: DecidedBy,
    /// The node that decided.
    pub node: NodeId,
    /// Its boot.
    pub boot: BootId,
    /// Whether the answer says that it may miss counts.
    pub degraded: bool,
}

impl Answer {
    /// The earliest instant at which it may have been decided.
    #[must_use]
    pub fn earliest(&self) -> Nanos {
        self.decided.unwrap_or(self.asked)
    }

    /// The latest.
    #[must_use]
    pub fn latest(&self) -> Nanos {
        self.decided.or(self.answered).unwrap_or(Nanos::MAX)
    }

    /// What the client may use of it: nothing, unless the check was admitted and the units are counted.
    #[must_use]
    pub fn admitted(&self) -> u64 {
        match (self.said, self.by) {
            (Said::Admitted, DecidedBy::Switch) => 0,
            (Said::Admitted, _counted) => self.cost,
            (Said::Peeked | Said::Given | Said::Refused(_) | Said::Nothing, _any) => 0,
        }
    }
}

/// What a client heard of one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// The check is admitted, and this limit counts it.
    Admitted,
    /// It was only asked, or costs nothing here.
    Peeked,
    /// This limit admitted, another refused: what was charged is given back.
    Given,
    /// This limit refused.
    Refused(Reason),
    /// No answer.
    Nothing,
}

/// A change of one counter that is no check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amend {
    /// The counter.
    pub key: String,
    /// What was asked for.
    pub what: Amended,
    /// When.
    pub asked: Nanos,
    /// When it was acknowledged; `None` if never: it may be done at any time or not at all.
    pub answered: Option<Nanos>,
}

/// What a change of a counter asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amended {
    /// These units back.
    Refund {
        /// How many.
        units: u64,
        /// What a check was charged, if it names one.
        of: Option<u64>,
    },
    /// All of them.
    Reset,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A node lost its memory.
    Crash {
        /// The node.
        node: NodeId,
        /// The boot that ended.
        boot: BootId,
        /// When.
        at: Nanos,
    },
    /// What one node sends does not reach another, or a connection between them broke.
    Cut {
        /// The sender.
        from: NodeId,
        /// The receiver.
        to: NodeId,
        /// Since when.
        since: Nanos,
        /// Until when.
        until: Nanos,
    },
    /// A node did not run, or so slowly that it misses deadlines.
    Pause {
        /// The node.
        node: NodeId,
        /// Since when.
        since: Nanos,
        /// Until when.
        until: Nanos,
    },
    /// A node that works was taken for dead by another.
    Accused {
        /// The node.
        node: NodeId,
        /// Since when.
        since: Nanos,
        /// Until when.
        until: Nanos,
    },
}

impl Fault {
    /// Its kind, as summaries name it.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Crash { .. } => "crash",
            Self::Cut { .. } => "cut",
            Self::Pause { .. } => "pause",
            Self::Accused { .. } => "accusation",
        }
    }

    /// From when on it works.
    #[must_use]
    pub const fn since(&self) -> Nanos {
        match self {
            Self::Crash { at, .. } => *at,
            Self::Cut { since, .. } | Self::Pause { since, .. } | Self::Accused { since, .. } => {
                *since
            }
        }
    }

    /// Until when.
    #[must_use]
    pub const fn until(&self) -> Nanos {
        match self {
            Self::Crash { at, .. } => *at,
            Self::Cut { until, .. } | Self::Pause { until, .. } | Self::Accused { until, .. } => {
                *until
            }
        }
    }

    /// Whether it works at an instant or later.
    #[must_use]
    pub fn at_or_after(&self, at: Nanos) -> bool {
        self.until() >= at
    }

    /// Whether it may lose what is on its way between nodes.
    #[must_use]
    pub const fn loses_messages(&self) -> bool {
        match self {
            Self::Crash { .. } | Self::Cut { .. } => true,
            Self::Pause { .. } | Self::Accused { .. } => false,
        }
    }
}

/// A node decided for a key as its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The key.
    pub key: String,
    /// The node.
    pub node: NodeId,
    /// Its boot.
    pub boot: BootId,
    /// Since when.
    pub since: Nanos,
    /// Until when.
    pub until: Nanos,
}

/// What the cluster says of a key at the end. Of a key of which nothing has flowed out or expired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The key.
    pub key: String,
    /// The units that its owner counts.
    pub counted: u64,
}
