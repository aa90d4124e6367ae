//! What may be done with a check after it was answered, and what comes of it.
//!
//! Plain values. Knows nothing of who does it or where the counters are.

use std::sync::Arc;

use thiserror::Error;

use crate::{decision::NodeId, rule::Rule, units::Cost, verdict::Verdict};

/// What is done with what a check charged. Each receipt is good for one of them, once; but permits may
/// be released again and again, to no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Gives back all that was charged, but for permits.
    Refund,
    /// Puts the real cost in the place of the estimate.
    Settle(Settling),
    /// Tells limits that count failures how it ended.
    Report(Ending),
    /// Gives back the permits.
    Release,
}

/// The real costs of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settling {
    /// For the limits that took the cost of the request.
    pub cost: Option<Cost>,
    /// For the limits that took the cost from an attribute of that name.
    pub attributes: Vec<(String, Cost)>,
}

/// How what was checked for ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// Well: what was charged for it provisionally goes back.
    Success,
    /// Badly: it is counted as a failure.
    Failure,
}

/// One limit after an action.
#[derive(Clone, Debug, PartialEq)]
pub struct AmendedLimit {
    /// Its name.
    pub limit: Arc<str>,
    /// Its rule.
    pub rule: Rule,
    /// What a peek for one unit says now; `None` if the counter's owner has not told in time: it is told
    /// of the change all the same as soon as it can be reached.
    pub now: Option<Verdict>,
    /// The counter's owner, where one is known.
    pub node: Option<NodeId>,
}

/// An action that cannot be done. Nothing was changed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ActionError {
    /// Something was done with the receipt before. The caller's fault.
    #[error("the id was used before: what was done with it then stands")]
    Used,
    /// The receipt's life is over, or its counters were those of a node that has restarted. The caller's
    /// fault, or nobody's.
    #[error("the id is not known, or it is older than the window of its limits or an hour")]
    Unknown,
    /// Too much waits for owners that cannot be reached. Nobody's fault: the id is good still, ask again.
    #[error("too many changes wait for nodes that cannot be reached, ask again")]
    Unreachable,
    /// The receipt does not hold what the action needs. The caller's fault.
    #[error("the id has nothing to {action}")]
    Nothing {
        /// The action.
        action: &'static str,
    },
}
