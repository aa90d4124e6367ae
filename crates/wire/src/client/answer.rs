//! The answer to a check, as a node sends it and a client reads it.

use serde::{Deserialize, Serialize};
use tollgate_limit::{DecidedBy, Decision, LimitDecision, Outcome, Reason};

use crate::{
    codec::{self, CodecError},
    verdict::RawVerdict,
};

/// What a client gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Names the check.
    pub id: String,
    /// Whether all limits admit it.
    pub allowed: bool,
    /// What each limit said.
    pub limits: Vec<LimitAnswer>,
}
