//! What a load counts while it runs, shared by its connections.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::{Latencies, Volume, clock};

/// What a load found.
#[derive(Clone, Debug)]
pub struct Report {
    /// Requests answered.
    pub answered: u64,
    /// Answers that were looked at: all over HTTP, one of each read over QUIC.
    pub inspected: u64,
    /// Inspected answers that refused.
    pub refused: u64,
    /// Inspected answers that were degraded.
    pub degraded: u64,
    /// From the first request to the last answer.
    pub elapsed: Duration,
    /// From sending a request to reading its answer.
    pub latencies: Latencies,
}

impl Report {
    /// Answers per second.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52 answers")]
    pub fn per_second(&self) -> f64 {
        self.answered as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// What an inspected answer said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Inspected {
    pub(super) refused: bool,
    pub(super) degraded: bool,
}

/// The running count of one load. Clones count together.
#[derive(Clone)]
pub(super) struct Tally {
    volume: Volume,
    started: Instant,
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    sent: u64,
    report: Report,
}

impl Tally {
    /// Starts now.
    pub(super) fn start(volume: Volume, latencies: Latencies) -> Self {
        let report = Report {
            answered: 0,
            inspected: 0,
            refused: 0,
            degraded: 0,
            elapsed: Duration::ZERO,
            latencies,
        };
        Self {
            volume,
            started: clock::now(),
            inner: Arc::new(Mutex::new(Inner { sent: 0, report })),
        }
    }

    /// How many of `wanted` more requests may be sent.
    pub(super) fn take(&self, wanted: u64, now: Instant) -> u64 {
        let mut inner = self.inner.lock();
        let taken = match self.volume {
            Volume::Requests(requests) => wanted.min(requests.saturating_sub(inner.sent)),
            Volume::For(span) if now.saturating_duration_since(self.started) < span => wanted,
            Volume::For(_) => 0,
        };
        inner.sent += taken;
        taken
    }

    /// Counts the answers that came in one read, and what one of them said.
    pub(super) fn record(
        &self,
        now: Instant,
        sent_at: impl IntoIterator<Item = Instant>,
        inspected: Option<Inspected>,
    ) {
        let mut inner = self.inner.lock();
        let report = &mut inner.report;
        for sent_at in sent_at {
            report.answered += 1;
            report
                .latencies
                .record(now.saturating_duration_since(sent_at));
        }
        if let Some(Inspected { refused, degraded }) = inspected {
            report.inspected += 1;
            report.refused += u64::from(refused);
            report.degraded += u64::from(degraded);
        }
        report.elapsed = now.saturating_duration_since(self.started);
    }

    pub(super) fn report(&self) -> Report {
        self.inner.lock().report.clone()
    }
}
