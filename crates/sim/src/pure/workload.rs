//! What clients ask: some twenty keys over all algorithms that have a window, at random.

use rand::{RngExt, rngs::StdRng};
use smallvec::SmallVec;
use tollgate_limit::{
    Algorithm, Alignment, Ask, Cost, Fallback, FixedWindow, KeyHash, LeakyBucket, Mode, Nanos,
    OldestSlice, Rule, SlidingLog, SlidingWindow, TokenBucket, Window,
};

use super::node::{ClientCheck, ClientLimit};

/// A counter that clients ask for.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) key: KeyHash,
    pub(super) rule: Rule,
    fallback: Fallback,
    weight: u32,
    /// Whether nothing of it expires within a run.
    pub(super) lasts: bool,
}

impl Key {
    pub(super) fn ask(&self, cost: u64) -> Ask {
        Ask {
            key: self.key,
            rule: self.rule,
            cost: Cost::new(cost).unwrap_or(Cost::ONE),
        }
    }
}

/// What is to be asked, of which keys.
#[derive(Debug)]
pub(super) struct Workload {
    pub(super) keys: Vec<Key>,
    weights: u32,
    /// The longest pause between two checks.
    pause: Nanos,
}

const HOUR: u64 = 3_600_000;

fn window(millis: u64) -> Window {
    Window::new(Nanos::from_millis(millis)).unwrap_or(Window::SHORTEST)
}

fn slices(limit: u64, millis: u64, oldest: OldestSlice) -> Algorithm {
    Algorithm::SlidingWindow(SlidingWindow {
        limit,
        window: window(millis),
        slices: 10,
        oldest,
    })
}

fn log(limit: u64, millis: u64) -> Algorithm {
    Algorithm::SlidingLog(SlidingLog {
        limit,
        window: window(millis),
    })
}

fn fixed(limit: u64, millis: u64) -> Algorithm {
    Algorithm::FixedWindow(FixedWindow {
        limit,
        alignment: Alignment::Epoch(window(millis)),
    })
}

/// The counters: name, algorithm, how often they are asked for.
fn counters() -> [(&'static str, Algorithm, u32); 21] {
    let (hard, soft) = (OldestSlice::Full, OldestSlice::Weighted);
    let tokens = |limit, burst| {
        Algorithm::TokenBucket(TokenBucket {
            limit,
            window: window(5_000),
            burst,
        })
    };
    let leaky = |limit, queue| {
        Algorithm::LeakyBucket(LeakyBucket {
            limit,
            window: window(5_000),
            queue,
        })
    };
    [
        ("hot-hard", slices(40, 5_000, hard), 20),
        ("hot-log", log(60, 4_000), 20),
        ("hot-hour", slices(90, HOUR, hard), 12),
        ("hot-hour-log", log(64, HOUR), 12),
        ("hour-fixed", fixed(50, HOUR), 8),
        ("wide-hour", slices(100_000, HOUR, hard), 10),
        ("wide-hour-soft", slices(100_000, HOUR, soft), 8),
        ("wide-hour-log", log(10_000, HOUR), 8),
        ("wide-hour-fixed", fixed(100_000, HOUR), 8),
        ("rare-hour", slices(1_000, HOUR, hard), 2),
        ("soft", slices(20, 3_000, soft), 8),
        ("hard", slices(12, 3_000, hard), 8),
        ("hard-minute", slices(50, 60_000, hard), 8),
        ("log", log(8, 2_500), 6),
        ("log-second", log(5, 1_000), 6),
        ("fixed", fixed(15, 2_000), 6),
        ("tokens", tokens(20, 10), 8),
        ("tokens-slow", tokens(5, 30), 6),
        ("leaky", leaky(20, 10), 6),
        ("few", log(1, 3_000), 4),
        ("blocked", log(0, 3_000), 1),
    ]
}

impl Workload {
    pub(super) fn new(rng: &mut StdRng) -> Self {
        let fallbacks = [
            Fallback::LocalFull,
            Fallback::LocalFull,
            Fallback::LocalFair,
            Fallback::Allow,
            Fallback::Deny,
        ];
        let keys: Vec<_> = counters()
            .into_iter()
            .map(|(name, algorithm, weight)| Key {
                name: name.to_owned(),
                key: KeyHash::from_halves(rng.random(), rng.random()),
                rule: Rule::new(algorithm),
                fallback: fallbacks[rng.random_range(0..fallbacks.len())],
                weight,
                lasts: name.contains("hour"),
            })
            .collect();
        Self {
            weights: keys.iter().map(|key| key.weight).sum(),
            keys,
            pause: Nanos::from_millis(rng.random_range(8..40)),
        }
    }

    /// The next check or checks, the keys of each, and the time until the next.
    pub(super) fn next(&self, rng: &mut StdRng) -> (Vec<(ClientCheck, Vec<usize>)>, Nanos) {
        let pause = Nanos::new(rng.random_range(0..self.pause.as_nanos()));
        let key = self.draw(rng);
        if rng.random_range(0..100) == 0 {
            let burst = rng.random_range(5..40);
            let one = |_| (self.check(&[(key, 1)], Mode::Consume), vec![key]);
            return ((0..burst).map(one).collect(), pause);
        }
        let cost = match rng.random_range(0..10) {
            0 => rng.random_range(2..6),
            _ => 1,
        };
        let mode = match rng.random_range(0..20) {
            0 => Mode::Peek,
            _ => Mode::Consume,
        };
        let second = self.draw(rng);
        if second != key && rng.random_range(0..8) == 0 {
            let check = self.check(&[(key, cost), (second, 1)], mode);
            return (vec![(check, vec![key, second])], pause);
        }
        (vec![(self.check(&[(key, cost)], mode), vec![key])], pause)
    }

    fn check(&self, limits: &[(usize, u64)], mode: Mode) -> ClientCheck {
        let limits = limits.iter().map(|(key, cost)| ClientLimit {
            ask: self.keys[*key].ask(*cost),
            fallback: self.keys[*key].fallback,
        });
        ClientCheck {
            id: 0,
            limits: limits.collect::<SmallVec<_>>(),
            mode,
        }
    }

    fn draw(&self, rng: &mut StdRng) -> usize {
        let mut drawn = rng.random_range(0..self.weights);
        for (at, key) in self.keys.iter().enumerate() {
            if drawn < key.weight {
                return at;
            }
            drawn = drawn.saturating_sub(key.weight);
        }
        0
    }
}
