//! The node's clock as TLS and QUIC ask for it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::{pki_types::UnixTime, time_provider::TimeProvider};

use crate::clock::{Clock as _, TokioClock};

/// Wall time by the node's clock.
#[derive(Debug)]
pub(crate) struct ClockTime(TokioClock);

impl ClockTime {
    pub(crate) fn new(clock: &TokioClock) -> Self {
        Self(clock.clone())
    }

    fn since_epoch(&self) -> Duration {
        Duration::from_secs(self.0.unix_seconds(self.0.now()))
    }
}

impl TimeProvider for ClockTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(self.since_epoch()))
    }
}

impl quinn::TimeSource for ClockTime {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH
            .checked_add(self.since_epoch())
            .unwrap_or(UNIX_EPOCH)
    }
}
