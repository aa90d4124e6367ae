//! Tests of series: a few stores that hold each other's, against one counter that saw it all.

mod buckets;
mod properties;
mod rows;

use std::collections::BTreeMap;

use super::{Kept, gather, offset, own, replace, words_to_hold};
use crate::{
    counter::{Held, HeldMut, Moment, Reading, charge, give_back, words},
    entries,
    judge::Reading as _,
    rule::{
        Algorithm, Alignment, Concurrency, FixedWindow, LeakyBucket, OldestSlice, Rule, SlidingLog,
        SlidingWindow, TokenBucket,
    },
    series::SeriesWords,
    units::{Cost, Nanos, Window},
};

const WINDOW: u64 = 40_000_000;
const SLICE: u64 = WINDOW / 4;
/// True time begins there: all clocks have run for a while, and all tell the same wall time.
const START: u64 = 1_000_000_000_000;
const UNIX_ORIGIN: Nanos = Nanos::new((1 << 60) + 7);

fn window() -> Window {
    Window::new(Nanos::new(WINDOW)).expect("a window in its bounds")
}

fn sliding(oldest: OldestSlice) -> Rule {
    Rule::new(Algorithm::SlidingWindow(SlidingWindow {
        limit: 1000,
        window: window(),
        slices: 4,
        oldest,
    }))
}

fn log() -> Rule {
    let window = window();
    Rule::new(Algorithm::SlidingLog(SlidingLog {
        limit: 1000,
        window,
    }))
}

fn fixed() -> Rule {
    let alignment = Alignment::Epoch(window());
    Rule::new(Algorithm::FixedWindow(FixedWindow {
        limit: 1000,
        alignment,
    }))
}

fn permits() -> Rule {
    Rule::new(Algorithm::Concurrency(Concurrency {
        limit: 1000,
        ttl: window(),
    }))
}

fn token_bucket() -> Rule {
    let window = window();
    Rule::new(Algorithm::TokenBucket(TokenBucket {
        limit: 40,
        window,
        burst: 40,
    }))
}

fn leaky_bucket() -> Rule {
    let window = window();
    Rule::new(Algorithm::LeakyBucket(LeakyBucket {
        limit: 40,
        window,
        queue: 39,
    }))
}

/// Rules of which all sums are exact where clocks agree.
fn summed() -> [Rule; 5] {
    let [soft, hard] = [OldestSlice::Weighted, OldestSlice::Full].map(sliding);
    [soft, hard, log(), fixed(), permits()]
}

/// A series on its way.
#[derive(Clone, Debug)]
struct Sent {
    writer: usize,
    version: u64,
    latest: Nanos,
    clock: u64,
    words: SeriesWords,
}

/// What a store holds of another's series.
#[derive(Clone, Debug)]
struct Foreign {
    version: u64,
    latest: Nanos,
    offset: u64,
    words: SeriesWords,
}

impl Foreign {
    fn kept(&self) -> Kept<'_> {
        Kept {
            latest: self.latest,
            offset: self.offset,
            words: &self.words,
        }
    }
}

/// One counter in one store.
#[derive(Clone, Debug)]
struct Node {
    rule: Rule,
    number: usize,
    /// What its clock is ahead of true time.
    ahead: u64,
    version: u64,
    total: Option<(Nanos, Vec<u64>)>,
    foreign: BTreeMap<usize, Foreign>,
}

impl Node {
    fn new(rule: Rule, number: usize, ahead: u64) -> Self {
        Self {
            rule,
            number,
            ahead,
            version: 0,
            total: None,
            foreign: BTreeMap::new(),
        }
    }

    fn at(&self, now: u64) -> Moment {
        Moment {
            now: Nanos::new(now.wrapping_add(self.ahead)),
            unix_origin: UNIX_ORIGIN.saturating_sub(Nanos::new(self.ahead)),
        }
    }

    /// Works on the total, which is gathered if there is none.
    fn write<T>(&mut self, now: u64, change: impl FnOnce(HeldMut<'_>, Moment) -> T) -> T {
        let at = self.at(now);
        self.version += 1;
        let (mut latest, mut words) = self.gathered(now);
        let held = Held {
            seen: self.rule.noted(),
            latest,
            words: &words,
        };
        if let Some(length) = Reading::at(&self.rule, held, at).longer_words() {
            let mut longer = vec![0; length];
            entries::move_to(&words, &mut longer);
            words = longer;
        }
        let held = HeldMut {
            seen: self.rule.noted(),
            latest: &mut latest,
            words: &mut words,
        };
        let result = change(held, at);
        self.total = Some((latest, words));
        result
    }

    /// The total, or what it would be.
    fn gathered(&self, now: u64) -> (Nanos, Vec<u64>) {
        let at = self.at(now);
        self.total.clone().unwrap_or_else(|| {
            let series: Vec<_> = self.foreign.values().map(Foreign::kept).collect();
            let mut words = vec![0; words_to_hold(&self.rule, None, &series)];
            let mut latest = at.now;
            let total = HeldMut {
                seen: self.rule.noted(),
                latest: &mut latest,
                words: &mut words,
            };
            gather(&self.rule, total, at, &series);
            (latest, words)
        })
    }

    fn charge(&mut self, now: u64, units: u64, number: u64) -> u64 {
        let rule = self.rule;
        self.write(now, |held, at| charge(&rule, held, at, (units, number)))
    }

    /// Gives units back; returns how many went.
    fn give_back(&mut self, now: u64, place: u64, units: u64) -> i64 {
        let (rule, before) = (self.rule, self.own_sum(now));
        let cost = Cost::new(units).expect("a cost in its bounds");
        self.write(now, |held, at| give_back(&rule, held, at, (place, cost)));
        before - self.own_sum(now)
    }

    fn own(&self, now: u64) -> SeriesWords {
        let (latest, words) = self.gathered(now);
        let held = Held {
            seen: self.rule.noted(),
            latest,
            words: &words,
        };
        let foreign: Vec<_> = self.foreign.values().map(Foreign::kept).collect();
        own(&self.rule, held, self.at(now), &foreign)
    }

    /// All that its own series says.
    fn own_sum(&self, now: u64) -> i64 {
        let own = self.own(now);
        match self.rule.algorithm {
            Algorithm::SlidingWindow(_) => own.iter().map(|word| word.cast_signed()).sum(),
            Algorithm::FixedWindow(_) => own[2].cast_signed(),
            Algorithm::SlidingLog(_)
            | Algorithm::Concurrency(_)
            | Algorithm::TokenBucket(_)
            | Algorithm::LeakyBucket(_) => {
                own[2..].chunks(3).map(|entry| entry[1].cast_signed()).sum()
            }
        }
    }

    fn used(&self, now: u64) -> u64 {
        let (latest, words) = self.gathered(now);
        let held = Held {
            seen: self.rule.noted(),
            latest,
            words: &words,
        };
        Reading::at(&self.rule, held, self.at(now)).used()
    }

    /// All that it holds: its own series and those of others.
    fn send(&self, now: u64) -> Vec<Sent> {
        let clock = self.at(now).now.as_nanos();
        let mut sent: Vec<_> = self
            .foreign
            .iter()
            .map(|(writer, held)| Sent {
                writer: *writer,
                version: held.version,
                latest: held.latest,
                clock: clock.wrapping_sub(held.offset),
                words: held.words.clone(),
            })
            .collect();
        if let Some((latest, _)) = &self.total {
            sent.push(Sent {
                writer: self.number,
                version: self.version,
                latest: *latest,
                clock,
                words: self.own(now),
            });
        }
        sent
    }

    fn take(&mut self, now: u64, sent: &Sent) {
        let at = self.at(now);
        let offset = offset(at.now, sent.clock, sent.latest);
        self.take_with(now, sent, offset);
    }

    fn take_with(&mut self, now: u64, sent: &Sent, offset: u64) {
        assert!(super::is_sound(&self.rule, &sent.words), "{sent:?}");
        let known = self.foreign.get(&sent.writer).map(|held| held.version);
        if sent.writer == self.number || known >= Some(sent.version) {
            return;
        }
        let at = self.at(now);
        let new = Foreign {
            version: sent.version,
            latest: sent.latest,
            offset,
            words: sent.words.clone(),
        };
        let old = self.foreign.remove(&sent.writer);
        if let Some((latest, words)) = &mut self.total {
            let length = words_to_hold(&self.rule, Some(words), &[new.kept()]);
            if length > words.len() {
                let mut longer = vec![0; length];
                entries::move_to(words, &mut longer);
                *words = longer;
            }
            let others: Vec<_> = self.foreign.values().map(Foreign::kept).collect();
            let total = HeldMut {
                seen: self.rule.noted(),
                latest,
                words,
            };
            let change = (old.as_ref().map(Foreign::kept), Some(new.kept()));
            replace(&self.rule, total, at, &others, change);
        }
        self.foreign.insert(sent.writer, new);
    }
}

/// Words of a new counter of a rule.
fn length(rule: &Rule) -> usize {
    words(&rule.algorithm)
}
