//! Tests of control over real sockets on loopback.

mod life;
mod refusals;
mod rig;

use std::time::Duration;

/// Stands still, as a stopped process does.
#[expect(
    clippy::disallowed_methods,
    reason = "a process that is stopped does just that"
)]
pub(super) fn stall(span: Duration) {
    std::thread::sleep(span);
}
