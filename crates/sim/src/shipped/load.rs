//! What a run is asked: some twenty keys over most algorithms, one of them hot.

use tollgate_limit::{AlgorithmSpec, LimitSpec, Nanos};

use crate::{
    load::LoadSpec,
    rig::ask::{limit, window},
};

/// A window of which nothing expires within a run.
const HOUR: Nanos = Nanos::from_millis(3_600_000);
/// The limit of that window.
pub(super) const LASTING: &str = "lasting";
/// Clients of one run.
const CLIENTS: u64 = 10;
/// How long a client waits, in milliseconds.
const PAUSE_MS: std::ops::Range<u64> = 1..60;
/// Shares of the hot key among some twenty.
const HOT: usize = 6;
/// So many of a thousand checks are given back.
const REFUNDS: u32 = 15;

/// The limits of a run.
pub(super) fn limits() -> Vec<LimitSpec> {
    let seconds = |seconds: u64| Nanos::from_millis(seconds * 1_000);
    let soft = AlgorithmSpec::SlidingWindow {
        window: seconds(5),
        slices: 10,
        hard: false,
    };
    let (log, fixed) = (seconds(6), seconds(5));
    vec![
        limit(LASTING, 400, window(HOUR)),
        limit("quick", 20, window(seconds(1))),
        limit("hard", 60, window(seconds(4))),
        limit("soft", 60, soft),
        limit("log", 50, AlgorithmSpec::SlidingLog { window: log }),
        limit("fixed", 60, AlgorithmSpec::FixedWindow { window: fixed }),
        limit(
            "token",
            100,
            AlgorithmSpec::TokenBucket {
                window: seconds(10),
                burst: Some(40),
            },
        ),
        limit(
            "leaky",
            80,
            AlgorithmSpec::LeakyBucket {
                window: seconds(8),
                queue: Some(30),
            },
        ),
    ]
}

/// All counters of a run: (limit, value).
pub(super) fn counters() -> Vec<(String, String)> {
    let mut counters = Vec::new();
    for limit in limits() {
        let values = if limit.name == LASTING { 6 } else { 2 };
        counters.extend((0..values).map(|value| (limit.name.clone(), format!("v{value}"))));
    }
    counters
}

/// What is asked.
pub(super) fn spec() -> LoadSpec {
    let mut topics: Vec<Vec<(String, String)>> = counters()
        .into_iter()
        .map(|counter| vec![counter])
        .collect();
    let hot = vec![(LASTING.to_owned(), "v0".to_owned())];
    topics.extend(std::iter::repeat_n(hot, HOT));
    let both = |one: &str, other: &str| {
        [one, other]
            .map(|limit| (limit.to_owned(), "v1".to_owned()))
            .to_vec()
    };
    topics.push(both(LASTING, "hard"));
    topics.push(both("token", "fixed"));
    LoadSpec {
        topics,
        clients: CLIENTS,
        pause_ms: PAUSE_MS,
        cost: 1..4,
        refunds_per_mille: REFUNDS,
        entries: Vec::new(),
    }
}
