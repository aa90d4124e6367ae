//! The answer to one check: what each limit said, and who decided it.
//!
//! Pure merging (rule 5): which limit makes the headline. Knows nothing of HTTP, frames or peers.

use std::{fmt, sync::Arc};

use crate::{policy::Limit, verdict::Verdict};

/// The name of a node, stable over its restarts: `[A-Za-z0-9._-]{1,64}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(Arc<str>);

impl NodeId {
    /// The longest name, in bytes.
    pub const MAX_LENGTH: usize = 64;

    /// The node of this name; `None` if it is not `[A-Za-z0-9._-]{1,64}`.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let fits = (1..=Self::MAX_LENGTH).contains(&name.len());
        (fits && name.bytes().all(legal)).then(|| Self(name.into()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DecidedBy {
    /// The key's owner.
    Owner,
    /// Its standby, on its copy.
    Standby,
    /// The entry node, from a denial that the owner gave before.
    Cached,
    /// The entry node, by the limit's fallback: local share, allow or deny.
    Fallback,
    /// The kill switch.
    Switch,
}

impl DecidedBy {
    /// Its name in answers and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Standby => "standby",
            Self::Cached => "cached",
            Self::Fallback => "fallback",
            Self::Switch => "switch",
        }
    }
}

/// What one limit said, and who decided it.
#[derive(Clone, Debug)]
pub struct LimitDecision {
    /// The limit.
    pub limit: Arc<Limit>,
    /// What it said.
    pub verdict: Verdict,
    /// Who decided.
    pub decided_by: DecidedBy,
    /// The node that decided.
    pub node: NodeId,
    /// Whether the answer may miss counts that the cluster has.
    pub degraded: bool,
}

/// The id of a check: the entry node's boot and its running number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CheckId {
    /// The boot of the entry node.
    pub boot: u64,
    /// The number of the check in that boot.
    pub number: u64,
}

impl fmt::Display for CheckId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.boot, self.number)
    }
}

/// The answer to one check.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Names the check.
    pub id: CheckId,
    /// The limits that were asked; empty if none applies.
    pub limits: Vec<LimitDecision>,
}

impl Decision {
    /// Whether every limit admits the check.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.limits.iter().all(|limit| limit.verdict.is_allowed())
    }

    /// Whether any of its limits was decided without all counts.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.limits.iter().any(|limit| limit.degraded)
    }
}
