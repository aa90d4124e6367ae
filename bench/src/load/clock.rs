//! The load's clock: the only file here that asks what time it is.

use std::time::Instant;

#[expect(clippy::disallowed_methods, reason = "this is the load's clock")]
pub(super) fn now() -> Instant {
    Instant::now()
}
