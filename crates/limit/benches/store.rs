//! A decision in the store, key hashing included, beside governor's keyed limiter: a million keys,
//! uniform and zipf, on one thread and on two. Then the bytes that a key takes.
//!
//! Compare within one run only: the ratios are what counts. `cargo bench -p tollgate-limit`; with
//! `-- --test` each function runs once.

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::ptr_arg,
    missing_docs,
    reason = "a bench prints its figures and may panic; governor takes its keys as `&String`"
)]

use std::{hint::black_box, num::NonZeroU32, thread, time::Duration};

use criterion::{
    BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main,
    measurement::{Measurement, WallTime},
};
use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock, FakeRelativeClock},
    middleware::NoOpMiddleware,
    state::keyed::DashMapStateStore,
};
use tollgate_limit::{
    Algorithm, Ask, Cost, HashKey, KeyHash, KeyHasher, Mode, Nanos, OldestSlice, Rule, Series,
    SlidingWindow, Store, StoreConfig, Window,
};

const KEYS: u64 = 1_000_000;
/// Checks before the order of keys repeats.
const ORDER: usize = 1 << 22;
/// High enough that every check is admitted and written.
const LIMIT: u32 = 1_000_000_000;
const MINUTE: Nanos = Nanos::from_millis(60_000);
const START: u64 = 1_000_000_000_000;
const NANOS_PER_CHECK: u64 = 300;

/// Names made ahead of each timed run: a request's own text is in the cache when it is checked.
const BATCH: u64 = 1000;

/// A key as it comes with a request.
fn name(number: u64) -> String {
    let mut state = number;
    format!("user-{:016x}", mix(&mut state))
}

/// One step of `SplitMix64`.
fn mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn uniform() -> Vec<u32> {
    let mut state = 1;
    (0..ORDER)
        .map(|_| u32::try_from(mix(&mut state) % KEYS).expect("a million"))
        .collect()
}

/// Key `k` comes in proportion to `1 / (k + 1)`.
fn zipf() -> Vec<u32> {
    let mut total = 0.0;
    let sums: Vec<f64> = (1..=u32::try_from(KEYS).expect("a million"))
        .map(|rank| {
            total += 1.0 / f64::from(rank);
            total
        })
        .collect();
    let mut state = 2;
    let mut draw = || {
        let bits = u32::try_from(mix(&mut state) >> 32).expect("half of the bits");
        let drawn = total * f64::from(bits) / f64::from(u32::MAX);
        let rank = sums.partition_point(|sum| *sum < drawn).min(sums.len() - 1);
        u32::try_from(rank).expect("a million")
    };
    (0..ORDER).map(|_| draw()).collect()
}

/// What is measured: one check of a key.
trait Checks: Sync {
    fn check(&self, name: &String, running: u64) -> bool;
}

struct Tollgate {
    store: Store,
    prefix: KeyHasher,
    rule: Rule,
}

impl Tollgate {
    fn new(slices: u8) -> Self {
        let mut prefix = KeyHasher::new(&HashKey::new([7; 16]));
        prefix.part(b"policy, limit, algorithm, window");
        prefix.part(b"api_key");
        Self {
            store: Store::new(&StoreConfig {
                max_bytes: 2 << 30,
                ..StoreConfig::default()
            }),
            prefix,
            rule: Rule::new(Algorithm::SlidingWindow(SlidingWindow {
                limit: u64::from(LIMIT),
                window: Window::new(MINUTE).expect("a window in its bounds"),
                slices,
                oldest: OldestSlice::Weighted,
            })),
        }
    }

    fn key(&self, name: &str) -> KeyHash {
        let mut hasher = self.prefix.clone();
        hasher.part(name.as_bytes());
        hasher.finish()
    }
}

impl Checks for Tollgate {
    fn check(&self, name: &String, running: u64) -> bool {
        let ask = Ask {
            key: self.key(name),
            rule: self.rule,
            cost: Cost::ONE,
        };
        let now = Nanos::new(START + running * NANOS_PER_CHECK);
        self.store.decide(now, &ask, Mode::Consume).is_allowed()
    }
}

type Governor<C> =
    RateLimiter<String, DashMapStateStore<String>, C, NoOpMiddleware<<C as Clock>::Instant>>;

fn governor<C: Clock>(clock: C) -> Governor<C> {
    let limit = NonZeroU32::new(LIMIT).expect("not zero");
    RateLimiter::dashmap_with_clock(Quota::per_minute(limit), clock)
}

impl<C: Clock + Sync> Checks for Governor<C>
where
    C::Instant: Sync,
{
    fn check(&self, name: &String, _: u64) -> bool {
        self.check_key(name).is_ok()
    }
}

fn fill(checks: &impl Checks) {
    for number in 0..KEYS {
        checks.check(&name(number), 0);
    }
}

/// Time for so many checks, shared among the threads; that of the slowest thread.
fn run(checks: &impl Checks, order: &[u32], threads: u64, iterations: u64) -> Duration {
    thread::scope(|scope| {
        let mut running = Vec::new();
        for thread in 0..threads {
            let own = iterations / threads + u64::from(thread < iterations % threads);
            running.push(scope.spawn(move || run_one(checks, order, thread, own)));
        }
        let times = running.into_iter().map(|thread| thread.join());
        times
            .map(|time| time.expect("no check panics"))
            .max()
            .unwrap_or_default()
    })
}

fn run_one(checks: &impl Checks, order: &[u32], thread: u64, checks_to_do: u64) -> Duration {
    let watch = WallTime;
    let skip = order.len() / 2 * usize::try_from(thread).expect("few threads");
    let mut numbers = order.iter().cycle().skip(skip);
    let mut total = Duration::ZERO;
    let mut running = 0;
    while running < checks_to_do {
        let length = usize::try_from(BATCH.min(checks_to_do - running)).expect("a batch");
        let names: Vec<String> = numbers
            .by_ref()
            .take(length)
            .map(|number| name(u64::from(*number)))
            .collect();
        let began = watch.start();
        for name in &names {
            running += 1;
            black_box(checks.check(name, running));
        }
        total += watch.end(began);
    }
    total
}

fn measure(
    group: &mut BenchmarkGroup<'_, WallTime>,
    label: &str,
    checks: &impl Checks,
    order: &[u32],
) {
    for threads in [1, 2] {
        group.bench_function(format!("{label}, threads: {threads}"), |bencher| {
            bencher.iter_custom(|iterations| run(checks, order, threads, iterations));
        });
    }
}

fn decisions(criterion: &mut Criterion) {
    let ten = Tollgate::new(10);
    let one = Tollgate::new(1);
    let governor_with_clock = governor(DefaultClock::default());
    let governor_without = governor(FakeRelativeClock::default());
    fill(&ten);
    fill(&one);
    fill(&governor_with_clock);
    fill(&governor_without);
    for (keys, order) in [("uniform", uniform()), ("zipf", zipf())] {
        let mut group = criterion.benchmark_group(keys);
        group.throughput(Throughput::Elements(1));
        measure(&mut group, "store, 10 slices", &ten, &order);
        measure(&mut group, "store, 1 slice", &one, &order);
        measure(&mut group, "governor", &governor_with_clock, &order);
        measure(&mut group, "governor, no clock", &governor_without, &order);
        group.finish();
    }
}

/// What a check costs more that is replicated: to take what is due and to merge it, beside the decide.
fn replica(criterion: &mut Criterion) {
    const REPLICATED: u64 = 10_000;
    let mut group = criterion.benchmark_group("replica");
    group.throughput(Throughput::Elements(REPLICATED));
    let (owner, standby) = (Tollgate::new(10), Tollgate::new(10));
    let names: Vec<String> = (0..REPLICATED).map(name).collect();
    // So that a charge is a large part of the limit: it is due at once.
    let decide = |running: u64| {
        let now = Nanos::new(START + running * NANOS_PER_CHECK);
        for name in &names {
            let ask = Ask {
                key: owner.key(name),
                rule: owner.rule,
                cost: Cost::new(u64::from(LIMIT / 32)).expect("a cost in its bounds"),
            };
            owner.store.amend(now, &ask, tollgate_limit::Change::Charge);
        }
        now
    };
    let mut running = 0;
    let mut series = Vec::new();
    let mut timed = |part: fn(&Store, &Store, Nanos, &mut Vec<Series>) -> Duration| {
        running += 1;
        series.clear();
        let now = decide(running);
        part(&owner.store, &standby.store, now, &mut series)
    };
    group.bench_function("take due", |bencher| {
        bencher.iter_custom(|rounds| {
            (0..rounds)
                .map(|_| {
                    timed(|owner, _, now, out| {
                        let began = WallTime.start();
                        while owner.take_due(now, 1000, out) {}
                        WallTime.end(began)
                    })
                })
                .sum()
        });
    });
    group.bench_function("merge", |bencher| {
        bencher.iter_custom(|rounds| {
            (0..rounds)
                .map(|_| {
                    timed(|owner, standby, now, out| {
                        while owner.take_due(now, 1000, out) {}
                        let began = WallTime.start();
                        for series in out.iter() {
                            black_box(standby.merge(now, series));
                        }
                        WallTime.end(began)
                    })
                })
                .sum()
        });
    });
    group.finish();
}

/// Pages that the process has in memory, in bytes; 0 where the system does not say.
fn resident_bytes() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    f64::from(pages.unwrap_or(0_u32)) * 4096.0
}

/// Prints the bytes for each key, averaged over the doubling from one million keys to two.
fn memory(_: &mut Criterion) {
    if std::env::args().any(|argument| argument == "--test" || argument == "--list") {
        return;
    }
    // Both are kept, so that the second does not fill what the first gave back.
    let stores = [1, 10].map(|slices| {
        let before = resident_bytes();
        let tollgate = Tollgate::new(slices);
        let (mut counted, mut resident, mut samples) = (0.0, 0.0, 0.0);
        for number in 0..2 * KEYS {
            tollgate.check(&name(number), number);
            if number >= KEYS && number % (KEYS / 20) == 0 {
                let stats = tollgate.store.stats();
                let keys = f64::from(u32::try_from(stats.keys).expect("two million"));
                let bytes = f64::from(u32::try_from(stats.bytes).expect("below 4 GiB"));
                counted += bytes / keys;
                resident += (resident_bytes() - before) / keys;
                samples += 1.0;
            }
        }
        println!(
            "bytes per key, slices: {slices}: {:.1} counted, {:.1} resident",
            counted / samples,
            resident / samples
        );
        tollgate
    });
    drop(stores);
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3));
    targets = memory, replica, decisions
}
criterion_main!(benches);
