//! The clock: monotonic nanoseconds since its origin, and wall time carried forward by them.
//!
//! It does not start at its origin but [`BEFORE`] after it: counts that come from other nodes may be older than
//! this process, and must have an instant of this clock.
//!
//! The only file that asks what time it is. Tokio's clock is the system's in production and the
//! paused one in the simulator.

use std::time::Duration;

use tokio::time::Instant;
use tollgate_limit::Nanos;

/// How long before its start a clock has its origin: longer than the longest window.
pub(crate) const BEFORE: Duration = Duration::from_secs(11 * 366 * 24 * 3600);

/// What time it is.
pub trait Clock: Send + Sync + std::fmt::Debug + 'static {
    /// Monotonic time since the clock's origin; never goes back.
    fn now(&self) -> Nanos;

    /// Milliseconds of Unix time at the clock's origin; read once.
    fn unix_millis_at_origin(&self) -> u64;

    /// Whole seconds of Unix time at an instant of this clock.
    fn unix_seconds(&self, now: Nanos) -> u64 {
        let millis = now.as_nanos() / 1_000_000;
        self.unix_millis_at_origin().saturating_add(millis) / 1000
    }
}

/// Tokio's clock.
#[derive(Clone, Debug)]
pub struct TokioClock {
    /// What [`BEFORE`] after the origin is on tokio's clock.
    start: Instant,
    unix_millis_at_origin: u64,
}

impl TokioClock {
    /// A clock that starts now, at that Unix time.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn new(unix_millis: u64) -> Self {
        Self {
            start: Instant::now(),
            unix_millis_at_origin: unix_millis.saturating_sub(millis(BEFORE)),
        }
    }

    /// A clock that starts now, by the system's wall time.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn system() -> Self {
        let unix = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self::new(unix.map_or(0, millis))
    }

    /// Unix time by the system, in seconds.
    #[must_use]
    pub fn system_unix_seconds() -> u64 {
        let clock = Self::system();
        clock.unix_seconds(clock.now())
    }

    /// The instant of tokio's clock that `at` is, for its timers.
    #[must_use]
    pub fn instant(&self, at: Nanos) -> Instant {
        let since = Duration::from(at).saturating_sub(BEFORE);
        self.start.checked_add(since).unwrap_or(self.start)
    }
}

impl Clock for TokioClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn now(&self) -> Nanos {
        let since = Instant::now().saturating_duration_since(self.start);
        since.saturating_add(BEFORE).into()
    }

    fn unix_millis_at_origin(&self) -> u64 {
        self.unix_millis_at_origin
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
