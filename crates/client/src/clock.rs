//! The clock: the one file that reads it. Tokio's, so that tests may pause it.

use tokio::time::Instant;

/// This moment.
#[expect(
    clippy::disallowed_methods,
    reason = "the client's one reading of the clock"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
