//! Waiting for conditions.

use std::{
    thread,
    time::{Duration, Instant},
};

/// How often a condition is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What time it is.
#[expect(
    clippy::disallowed_methods,
    reason = "tests of real processes measure real time"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Waits until `look` finds something, and tells it.
///
/// # Panics
/// After `within`, naming what was waited for.
#[expect(
    clippy::disallowed_methods,
    reason = "between two looks at a condition"
)]
pub(crate) fn until<T>(what: &str, within: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let start = now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(
            start.elapsed() < within,
            "waited {within:?} in vain: {what}"
        );
        thread::sleep(POLL_INTERVAL);
    }
}
