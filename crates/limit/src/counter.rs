//! One counter under a rule: read it, decide, charge, give back, whatever the algorithm.
//!
//! The only place that goes from a rule to the words of its algorithm. Pure functions on borrowed words.
//! What goes back is in `counter::back`. Knows nothing of keys, tables, locks or clocks. Invariant: a refusal
//! and a peek write nothing (P4).

mod back;
pub(crate) mod merge;

pub(crate) use self::back::{give_back, refund};
use crate::{
    bucket::{self, Numbers},
    entries, fixed_window,
    judge::{self, Terms},
    rule::{Algorithm, LeakyBucket, Rule, TokenBucket},
    units::{Cost, Nanos},
    verdict::{Mode, Outcome, Verdict},
    window,
};

/// An instant of the monotonic clock, and what turns it into Unix time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) now: Nanos,
    /// Unix time of the clock's origin.
    pub(crate) unix_origin: Nanos,
}

impl Moment {
    const fn unix(&self, at: Nanos) -> Nanos {
        self.unix_origin.saturating_add(at)
    }
}

/// A counter to read: its words, and what its cell remembers beside them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held<'a> {
    /// What it noted of the rule that it saw last, [`Rule::noted`].
    pub(crate) seen: u64,
    /// The last charge.
    pub(crate) latest: Nanos,
    pub(crate) words: &'a [u64],
}

impl Held<'_> {
    /// A counter in which nothing was ever counted.
    pub(crate) const fn untouched(rule: &Rule, now: Nanos) -> Self {
        Self {
            seen: rule.noted(),
            latest: now,
            words: &[],
        }
    }
}

/// A counter to write.
#[derive(Debug)]
pub(crate) struct HeldMut<'a> {
    /// What it noted of the rule that it saw last, [`Rule::noted`].
    pub(crate) seen: u64,
    /// The last charge.
    pub(crate) latest: &'a mut Nanos,
    pub(crate) words: &'a mut [u64],
}

impl HeldMut<'_> {
    const fn view(&self) -> Held<'_> {
        Held {
            seen: self.seen,
            latest: *self.latest,
            words: self.words,
        }
    }
}

/// Words of a new counter.
pub(crate) fn words(algorithm: &Algorithm) -> usize {
    match algorithm {
        Algorithm::SlidingWindow(rule) => usize::from(rule.slices).saturating_add(1),
        Algorithm::SlidingLog(_) | Algorithm::Concurrency(_) => entries::FEWEST_WORDS,
        Algorithm::FixedWindow(_) => fixed_window::WORDS,
        Algorithm::TokenBucket(_) | Algorithm::LeakyBucket(_) => bucket::WORDS,
    }
}

/// A counter as it stands at an instant.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reading<'a> {
    Window(window::Reading<'a>),
    Entries(entries::Reading<'a>),
    Fixed(fixed_window::Reading),
    Bucket(bucket::Reading),
}

impl<'a> Reading<'a> {
    /// Reads a counter.
    pub(crate) fn at(rule: &'a Rule, held: Held<'a>, at: Moment) -> Self {
        let Held {
            seen,
            latest,
            words,
        } = held;
        match &rule.algorithm {
            Algorithm::SlidingWindow(rule) => {
                Self::Window(window::Reading::at(rule, words, latest, at.now))
            }
            Algorithm::SlidingLog(rule) => {
                Self::Entries(entries::Reading::at(words, rule.window, latest, at.now))
            }
            Algorithm::Concurrency(rule) => {
                Self::Entries(entries::Reading::at(words, rule.ttl, latest, at.now))
            }
            Algorithm::FixedWindow(rule) => {
                let (latest, now) = (at.unix(latest), at.unix(at.now));
                Self::Fixed(fixed_window::Reading::at(rule, words, latest, now))
            }
            Algorithm::TokenBucket(bucket) => {
                let numbers = numbers_of_token_bucket(bucket, rule.ceiling);
                Self::Bucket(bucket::Reading::at(numbers, words, (seen, latest), at.now))
            }
            Algorithm::LeakyBucket(bucket) => {
                let numbers = numbers_of_leaky_bucket(bucket, rule.ceiling);
                Self::Bucket(bucket::Reading::at(numbers, words, (seen, latest), at.now))
            }
        }
    }

    /// Whether the next charge needs longer words, and how many if so.
    pub(crate) fn longer_words(&self) -> Option<usize> {
        match self {
            Self::Entries(reading) if reading.is_full() => {
                let doubled = reading.live().saturating_mul(2);
                Some(entries::words_for(doubled))
            }
            Self::Entries(_) | Self::Window(_) | Self::Fixed(_) | Self::Bucket(_) => None,
        }
    }
}

impl judge::Reading for Reading<'_> {
    fn used(&self) -> u64 {
        match self {
            Self::Window(reading) => reading.used(),
            Self::Entries(reading) => reading.used(),
            Self::Fixed(reading) => reading.used(),
            Self::Bucket(reading) => reading.used(),
        }
    }

    fn wait_until_within(&self, room: u64) -> Nanos {
        match self {
            Self::Window(reading) => reading.wait_until_within(room),
            Self::Entries(reading) => reading.wait_until_within(room),
            Self::Fixed(reading) => reading.wait_until_within(room),
            Self::Bucket(reading) => reading.wait_until_within(room),
        }
    }

    fn wait_until_empty(&self) -> Nanos {
        match self {
            Self::Window(reading) => reading.wait_until_empty(),
            Self::Entries(reading) => reading.wait_until_empty(),
            Self::Fixed(reading) => reading.wait_until_empty(),
            Self::Bucket(reading) => reading.wait_until_empty(),
        }
    }
}

/// Whether a check would be admitted if `pending` were charged before: the verdict without its waits.
pub(crate) fn outcome(
    rule: &Rule,
    held: Held<'_>,
    at: Moment,
    (cost, pending): (Cost, Cost),
) -> Outcome {
    let reading = Reading::at(rule, held, at);
    Terms::of(rule).outcome(&reading, cost, pending)
}

/// What a counter would say if `pending` were charged before; charges nothing.
pub(crate) fn foresee(
    rule: &Rule,
    held: Held<'_>,
    at: Moment,
    (cost, pending): (Cost, Cost),
) -> Verdict {
    let reading = Reading::at(rule, held, at);
    let terms = Terms::of(rule);
    let outcome = terms.outcome(&reading, cost, pending);
    Verdict {
        delay: delay(rule, &reading, outcome, pending),
        ..terms.verdict(&reading, outcome, (cost, pending))
    }
}

/// Whether a check with that outcome is counted.
pub(crate) fn charges(outcome: Outcome, cost: Cost, mode: Mode) -> bool {
    outcome == Outcome::Allow && mode == Mode::Consume && cost > Cost::ZERO
}

/// Decides one check, and charges it if it is admitted and consumes. `number` names a permit.
pub(crate) fn decide(
    rule: &Rule,
    held: HeldMut<'_>,
    at: Moment,
    (cost, mode): (Cost, Mode),
    number: u64,
) -> Verdict {
    let terms = Terms::of(rule);
    if let Algorithm::SlidingWindow(window) = &rule.algorithm {
        let HeldMut { latest, words, .. } = held;
        return window::decide((window, &terms), words, latest, at.now, (cost, mode));
    }
    let reading = Reading::at(rule, held.view(), at);
    let outcome = terms.outcome(&reading, cost, Cost::ZERO);
    let delay = delay(rule, &reading, outcome, Cost::ZERO);
    if !charges(outcome, cost, mode) {
        return Verdict {
            delay,
            ..terms.verdict(&reading, outcome, (cost, Cost::ZERO))
        };
    }
    let HeldMut { latest, words, .. } = held;
    let place = charge(
        rule,
        HeldMut {
            seen: held.seen,
            latest,
            words,
        },
        at,
        (cost.units(), number),
    );
    let charged = Held {
        seen: rule.noted(),
        latest: *latest,
        words,
    };
    let reading = Reading::at(rule, charged, at);
    Verdict {
        delay,
        charged_slice: place,
        ..terms.verdict(&reading, outcome, (cost, Cost::ZERO))
    }
}

/// Counts units without asking whether they fit; `number` names a permit. Returns where they went, as
/// [`give_back`] takes it.
pub(crate) fn charge(
    rule: &Rule,
    held: HeldMut<'_>,
    at: Moment,
    (units, number): (u64, u64),
) -> u64 {
    let HeldMut {
        seen,
        latest,
        words,
    } = held;
    match &rule.algorithm {
        Algorithm::SlidingWindow(rule) => window::charge(rule, words, latest, at.now, units),
        Algorithm::SlidingLog(rule) => {
            entries::charge(words, rule.window, latest, (at.now, units), 0).as_nanos()
        }
        Algorithm::Concurrency(rule) => {
            entries::charge(words, rule.ttl, latest, (at.now, units), number);
            number
        }
        Algorithm::FixedWindow(rule) => {
            let (before, now) = (at.unix(*latest), at.unix(at.now));
            let reading = fixed_window::Reading::at(rule, words, before, now);
            fixed_window::charge(words, &reading, units);
            *latest = at.now.max(*latest);
            reading.start()
        }
        Algorithm::TokenBucket(bucket) => {
            let numbers = numbers_of_token_bucket(bucket, rule.ceiling);
            charge_bucket(numbers, (words, latest, seen), at.now, units)
        }
        Algorithm::LeakyBucket(bucket) => {
            let numbers = numbers_of_leaky_bucket(bucket, rule.ceiling);
            charge_bucket(numbers, (words, latest, seen), at.now, units)
        }
    }
}

/// Counts units on a counter that is there, as an amendment does: a bucket keeps the numbers that it saw.
pub(crate) fn charge_later(
    rule: &Rule,
    held: HeldMut<'_>,
    at: Moment,
    (units, number): (u64, u64),
) {
    let numbers = match &rule.algorithm {
        Algorithm::TokenBucket(bucket) => numbers_of_token_bucket(bucket, rule.ceiling),
        Algorithm::LeakyBucket(bucket) => numbers_of_leaky_bucket(bucket, rule.ceiling),
        Algorithm::SlidingWindow(_)
        | Algorithm::SlidingLog(_)
        | Algorithm::FixedWindow(_)
        | Algorithm::Concurrency(_) => {
            charge(rule, held, at, (units, number));
            return;
        }
    };
    let HeldMut {
        seen,
        latest,
        words,
    } = held;
    let numbers = numbers.as_seen(words, seen);
    charge_bucket(numbers, (words, latest, seen), at.now, units);
}

fn charge_bucket(
    numbers: Numbers,
    (words, latest, seen): (&mut [u64], &mut Nanos, u64),
    now: Nanos,
    units: u64,
) -> u64 {
    let reading = bucket::Reading::at(numbers, words, (seen, *latest), now);
    let place = bucket::charge(words, &reading, now.max(*latest), units);
    *latest = now.max(*latest);
    place
}

/// What an admitted request must wait so that the outflow is even: what was there before it flows first.
fn delay(rule: &Rule, before: &Reading<'_>, outcome: Outcome, pending: Cost) -> Nanos {
    match (&rule.algorithm, before) {
        (Algorithm::LeakyBucket(_), Reading::Bucket(bucket)) if outcome == Outcome::Allow => {
            bucket.backlog(pending)
        }
        _ => Nanos::ZERO,
    }
}

const fn numbers_of_token_bucket(rule: &TokenBucket, ceiling: u64) -> Numbers {
    Numbers {
        limit: rule.limit,
        window: rule.window,
        capacity: rule.burst,
        ceiling,
    }
}

const fn numbers_of_leaky_bucket(rule: &LeakyBucket, ceiling: u64) -> Numbers {
    Numbers {
        limit: rule.limit,
        window: rule.window,
        capacity: rule.capacity(),
        ceiling,
    }
}
