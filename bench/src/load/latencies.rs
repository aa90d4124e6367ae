//! Latencies of many requests in bounded memory: a histogram with two significant digits.

use std::{fmt, time::Duration};

use hdrhistogram::{CreationError, Histogram};
use serde::Serialize;

/// Latencies are kept in units of this many nanoseconds.
const NANOS_PER_UNIT: u64 = 100;
/// Longer ones count as this: a minute.
const MAX_UNITS: u64 = 600_000_000;
const SIGNIFICANT_DIGITS: u8 = 2;

/// Latencies of many requests.
#[derive(Clone)]
pub struct Latencies {
    histogram: Histogram<u64>,
}

/// What is told of them, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LatencySummary {
    /// Half are no longer.
    pub p50_us: f64,
    /// 90 % are no longer.
    pub p90_us: f64,
    /// 99 % are no longer.
    pub p99_us: f64,
    /// 99.9 % are no longer.
    pub p99_9_us: f64,
    /// None is longer.
    pub max_us: f64,
}

impl Latencies {
    /// None yet.
    ///
    /// # Errors
    /// Never with the constants above.
    pub fn new() -> Result<Self, CreationError> {
        let histogram = Histogram::new_with_bounds(1, MAX_UNITS, SIGNIFICANT_DIGITS)?;
        Ok(Self { histogram })
    }

    /// Adds the latency of one request; above a minute it counts as a minute.
    pub fn record(&mut self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.histogram
            .saturating_record((nanos / NANOS_PER_UNIT).max(1));
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Percentiles, each within 1 %.
    #[must_use]
    pub fn summary(&self) -> LatencySummary {
        let at = |quantile| micros(self.histogram.value_at_quantile(quantile));
        LatencySummary {
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p99_9_us: at(0.999),
            max_us: micros(self.histogram.max()),
        }
    }
}

impl fmt::Debug for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Latencies")
            .field("count", &self.count())
            .field("summary", &self.summary())
            .finish()
    }
}

#[expect(clippy::cast_precision_loss, reason = "at most 600 million units")]
fn micros(units: u64) -> f64 {
    (units * NANOS_PER_UNIT) as f64 / 1000.0
}
