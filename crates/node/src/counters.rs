//! What the data plane counts for its metrics: atomics that the check path raises.
//!
//! Relaxed: each number is exact, two read together may be one event apart.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_limit::Nanos;

/// Upper bounds of the buckets of forward latencies, in microseconds; above the last is one more.
pub const LATENCY_BOUNDS_MICROS: [u64; 14] = [
    50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
    1_000_000,
];

/// A counter that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn raise(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A histogram of latencies.
#[derive(Debug, Default)]
pub(crate) struct Latencies {
    buckets: [AtomicU64; LATENCY_BOUNDS_MICROS.len() + 1],
    sum_nanos: AtomicU64,
}

/// A reading of a histogram of latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyReading {
    /// Latencies in each bucket of [`LATENCY_BOUNDS_MICROS`], and above the last; not cumulative.
    pub buckets: [u64; LATENCY_BOUNDS_MICROS.len() + 1],
    /// The sum of all, in nanoseconds.
    pub sum_nanos: u64,
}

impl Latencies {
    pub(crate) fn record(&self, latency: Nanos) {
        let micros = latency.as_nanos() / 1000;
        let bucket = LATENCY_BOUNDS_MICROS.partition_point(|bound| *bound < micros);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_nanos
            .fetch_add(latency.as_nanos(), Ordering::Relaxed);
    }

    pub(crate) fn reading(&self) -> LatencyReading {
        let buckets = std::array::from_fn(|at| self.buckets[at].load(Ordering::Relaxed));
        LatencyReading {
            buckets,
            sum_nanos: self.sum_nanos.load(Ordering::Relaxed),
        }
    }
}

/// What one node counts on its data plane.
#[derive(Debug, Default)]
pub(crate) struct NodeCounters {
    /// Checks of peers that this node decided.
    pub(crate) decided_for_peers: Counter,
    /// Checks of peers that were answered from what was decided before.
    pub(crate) repeated: Counter,
    /// Checks of peers whose key is not this node's.
    pub(crate) not_owner: Counter,
    /// Checks that were relayed to who decides, as a standby or after a slot was handed over.
    pub(crate) relayed: Counter,
    /// Checks that were decided on a copy.
    pub(crate) stood_by: Counter,
    /// Checks that waited while this node was paused.
    pub(crate) too_late: Counter,
    /// Pauses noticed.
    pub(crate) pauses: Counter,
    /// Verdicts that admitted although counts may have been missing.
    pub(crate) degraded_admissions: Counter,
    /// Charges given back at their owner.
    pub(crate) given_back: Counter,
}
