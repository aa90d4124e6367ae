//! The clock: monotonic nanoseconds since its origin, and wall time carried forward by them.
//!
//! The only file that asks what time it is. Tokio's clock is the system's in production and the
//! paused one in the simulator.

use tokio::time::Instant;
use tollgate_limit::Nanos;

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
    origin: Instant,
    unix_millis_at_origin: u64,
}

impl TokioClock {
    /// A clock whose origin is now, at that Unix time.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn new(unix_millis: u64) -> Self {
        Self {
            origin: Instant::now(),
            unix_millis_at_origin: unix_millis,
        }
    }

    /// A clock whose origin is now, by the system's wall time.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn system() -> Self {
        let unix = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let millis = unix.map_or(0, |span| span.as_millis());
        Self::new(u64::try_from(millis).unwrap_or(u64::MAX))
    }

    /// The instant of tokio's clock that `at` is, for its timers.
    #[must_use]
    pub fn instant(&self, at: Nanos) -> Instant {
        self.origin.checked_add(at.into()).unwrap_or(self.origin)
    }
}

impl Clock for TokioClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn now(&self) -> Nanos {
        Instant::now().saturating_duration_since(self.origin).into()
    }

    fn unix_millis_at_origin(&self) -> u64 {
        self.unix_millis_at_origin
    }
}
