//! Wall time, which `X-RateLimit-Reset` alone needs. The one file of the layer that reads it.

use std::{
    fmt,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use tollgate_limit::Nanos;

/// Where the layer takes wall time from; the system's unless told otherwise.
#[derive(Clone)]
pub struct WallClock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl WallClock {
    /// A clock that is read once for each answer that tells it.
    pub fn from_fn(read: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// Time since the epoch; zero before it.
    pub(super) fn since_epoch(&self) -> Nanos {
        (self.0)()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .into()
    }
}

impl Default for WallClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the layer's one reading of wall time, which a caller may replace"
    )]
    fn default() -> Self {
        Self::from_fn(SystemTime::now)
    }
}

impl fmt::Debug for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WallClock").finish_non_exhaustive()
    }
}
