//! What a layer needs to know, its defaults and its bounds.

use std::time::Duration;

use thiserror::Error;

use super::{HeaderFamilies, Question, WallClock};

/// The shortest and the longest [`LayerConfig::deadline`].
const DEADLINES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(60));

/// What a layer asks, how long it waits, and what it tells.
#[derive(Clone, Debug)]
pub struct LayerConfig {
    /// What is asked of a request; by default the policy `default` with method, path and host.
    pub question: Question,
    /// The longest time that a request waits for the node: 1 ms to 60 s, default 50 ms. The
    /// client's own deadline holds as well, so the shorter one counts.
    pub deadline: Duration,
    /// Which rate limit headers responses get; by default all. `Retry-After` is none of them.
    pub headers: HeaderFamilies,
    /// Where the wall time of `X-RateLimit-Reset` comes from; the system's by default.
    pub wall_clock: WallClock,
}

impl Default for LayerConfig {
    fn default() -> Self {
        Self {
            question: Question::default(),
            deadline: Duration::from_millis(50),
            headers: HeaderFamilies::default(),
            wall_clock: WallClock::default(),
        }
    }
}

impl LayerConfig {
    pub(super) fn validate(&self) -> Result<(), LayerError> {
        let (shortest, longest) = DEADLINES;
        if !(shortest..=longest).contains(&self.deadline) {
            return Err(LayerError::Deadline);
        }
        Ok(())
    }
}

/// A layer that cannot be made. The caller's fault.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum LayerError {
    /// The deadline is out of range.
    #[error("deadline: give 1 ms to 60 s")]
    Deadline,
}
