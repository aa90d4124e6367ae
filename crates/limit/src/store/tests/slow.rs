//! Every algorithm by its definition: a list of all charges, from which what is used is worked out anew.

use super::window;
use crate::{
    calendar::{CalendarUnit, Zone, epoch_window_at, window_at},
    rule::{
        Algorithm, Alignment, Concurrency, FixedWindow, LeakyBucket, OldestSlice, SlidingLog,
        SlidingWindow, TokenBucket,
    },
    units::Nanos,
};
use proptest::prelude::*;

/// All charges of one counter, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Slow {
    charges: Vec<(u64, u64)>,
}

impl Slow {
    pub(super) fn charge(&mut self, now: Nanos, units: u64) {
        self.charges.push((now.as_nanos(), units));
    }

    /// Units used, rounded up, at an instant that is not before the last charge.
    pub(super) fn used(&self, algorithm: &Algorithm, now: Nanos, unix_origin: Nanos) -> u128 {
        let instant = now.as_nanos();
        match algorithm {
            Algorithm::SlidingWindow(rule) => self.sliding_window(rule, instant),
            Algorithm::SlidingLog(rule) => self.since(instant, rule.window.span()),
            Algorithm::Concurrency(rule) => self.since(instant, rule.ttl.span()),
            Algorithm::FixedWindow(rule) => {
                let start = |instant: u64| {
                    let unix = unix_origin.saturating_add(Nanos::new(instant));
                    match rule.alignment {
                        Alignment::Epoch(window) => epoch_window_at(window, unix).0,
                        Alignment::Calendar(unit, zone) => window_at(unit, zone, unix).0,
                    }
                };
                self.sum(|then| start(then) == start(instant))
            }
            Algorithm::TokenBucket(rule) => self.bucket(rule.limit, rule.window.span(), instant),
            Algorithm::LeakyBucket(rule) => self.bucket(rule.limit, rule.window.span(), instant),
        }
    }

    fn sum(&self, counts: impl Fn(u64) -> bool) -> u128 {
        let counted = self.charges.iter().filter(|(then, _)| counts(*then));
        counted.map(|(_, units)| u128::from(*units)).sum()
    }

    fn since(&self, now: u64, span: Nanos) -> u128 {
        self.sum(|then| now - then < span.as_nanos())
    }

    fn sliding_window(&self, rule: &SlidingWindow, now: u64) -> u128 {
        let slices = u64::from(rule.slices);
        let width = rule.window.span().as_nanos().div_ceil(slices);
        let age = |then: u64| now / width - then / width;
        let oldest = self.sum(|then| age(then) == slices);
        let part = match rule.oldest {
            OldestSlice::Full => oldest,
            OldestSlice::Weighted => {
                let width = u128::from(width);
                (oldest * (width - u128::from(now) % width)).div_ceil(width)
            }
        };
        self.sum(|then| age(then) < slices) + part
    }

    /// A unit is as many parts as the window has nanoseconds; each drains `limit` parts.
    fn bucket(&self, limit: u64, window: Nanos, now: u64) -> u128 {
        let window = u128::from(window.as_nanos());
        let (mut level, mut at) = (0_u128, 0_u64);
        for (then, units) in self.charges.iter().copied().chain([(now, 0)]) {
            level = level.saturating_sub(u128::from(limit) * u128::from(then - at));
            level += u128::from(units) * window;
            at = then;
        }
        level.div_ceil(window)
    }
}

/// Any algorithm with small numbers, windows of about a second.
pub(super) fn small_algorithm() -> impl Strategy<Value = Algorithm> {
    let numbers = (1_u64..25, 900_u64..1100, 1_u8..=60, 0_u64..30);
    (0_u8..8, numbers).prop_map(|(kind, (limit, milliseconds, slices, more))| {
        let window = window(milliseconds);
        let sliding = |slices, oldest| {
            Algorithm::SlidingWindow(SlidingWindow {
                limit,
                window,
                slices,
                oldest,
            })
        };
        let fixed = |alignment| Algorithm::FixedWindow(FixedWindow { limit, alignment });
        match kind {
            0 => sliding(slices, OldestSlice::Weighted),
            1 => sliding(slices.max(2), OldestSlice::Full),
            2 => Algorithm::SlidingLog(SlidingLog { limit, window }),
            3 => fixed(Alignment::Epoch(window)),
            4 => {
                let unit = CalendarUnit::ALL[usize::from(slices) % 2];
                fixed(Alignment::Calendar(unit, Zone::utc()))
            }
            5 => Algorithm::TokenBucket(TokenBucket {
                limit,
                window,
                burst: 1 + more,
            }),
            6 => Algorithm::LeakyBucket(LeakyBucket {
                limit,
                window,
                queue: more,
            }),
            _ => Algorithm::Concurrency(Concurrency { limit, ttl: window }),
        }
    })
}
