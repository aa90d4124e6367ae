//! What decides, as the edges see it.
//!
//! Knows nothing of how a check is decided, or where.

use std::{fmt, pin::Pin, sync::Arc};

use http::StatusCode;
use tollgate_limit::{
    Action, ActionError, AmendedLimit, CheckError, Decision, HashKey, Limit, LimitSpec, Nanos,
    Policies, Question, Receipt,
};

use crate::families::HeaderFamilies;

/// A check that was taken.
pub enum Checked {
    /// Decided already, which is the usual case.
    Now(Decision),
    /// Decided when a peer has answered or the check's deadline has passed; never fails.
    Later(Pin<Box<dyn Future<Output = Decision> + Send>>),
}

impl fmt::Debug for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(decision) => f.debug_tuple("Now").field(decision).finish(),
            Self::Later(_) => f.write_str("Later"),
        }
    }
}

/// What becomes of an action.
pub type Acted = Pin<Box<dyn Future<Output = Result<Vec<AmendedLimit>, ActionError>> + Send>>;

/// Decides checks.
pub trait Checker: Send + Sync + 'static {
    /// One reading of the node's monotonic clock. The edges take one for each batch and pass it back.
    fn now(&self) -> Nanos;

    /// Unix time at `now`, in whole seconds.
    fn wall_seconds(&self, now: Nanos) -> u64;

    /// Takes a check.
    ///
    /// # Errors
    /// [`CheckError`]: the caller's fault, nothing was counted.
    fn check(&self, now: Nanos, question: &Question<'_>) -> Result<Checked, CheckError>;

    /// Compiles a limit that came with a check.
    ///
    /// # Errors
    /// [`CheckError::InlineOff`] or [`CheckError::Spec`]: the caller's fault.
    fn inline_limit(&self, spec: LimitSpec) -> Result<Arc<Limit>, CheckError>;

    /// The key that the ids of checks are sealed with.
    fn receipt_key(&self) -> &HashKey;

    /// Does something with what a check charged. Ends within the check deadline.
    fn act(&self, now: Nanos, receipt: Receipt, action: Action) -> Acted;

    /// Gives back what such a check would cost, the oldest first, on every limit that it meets but those
    /// on concurrency; bans stay. Ends within the check deadline.
    ///
    /// # Errors
    /// [`CheckError`]: the caller's fault, nothing was changed.
    fn refund(&self, now: Nanos, question: &Question<'_>) -> Result<Acted, CheckError>;

    /// The policies in force.
    fn policies(&self) -> Arc<Policies>;

    /// The status that a proxy is answered with for a refused request of a policy, 400 to 599.
    fn deny_status(&self, policy: &str) -> StatusCode;

    /// The header families that answers of a policy carry; of the empty name, those of inline limits.
    fn headers(&self, policy: &str) -> HeaderFamilies;
}
