//! P1 and P2: no window holds more than the formula allows.
//!
//! `admitted <= a*L + X_crash + X_dual + X_open` (DESIGN 2), for every window that ends with an admission: a
//! window that holds too much can be moved until it does. Of an admission whose instant is not known only
//! windows that hold all of its time count it.

use std::fmt;

use tollgate_limit::{Algorithm, Alignment, Nanos, OldestSlice, SlidingWindow};

use super::{allowance::Allowance, of_key::OfKey, violation::Violation};
use crate::history::Answer;

/// A window that held more than its algorithm allows, and what the formula adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Over {
    key: String,
    from: Nanos,
    to: Nanos,
    admitted: u64,
    most: u64,
    allowance: Allowance,
}

impl Over {
    /// By how much.
    #[must_use]
    pub const fn units(&self) -> u64 {
        self.admitted.saturating_sub(self.most)
    }
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (over, most) = (self.units(), self.most);
        let Allowance { crash, dual, open } = self.allowance;
        let bound = self.allowance.sum();
        write!(
            f,
            "{over} over {most} of {}, bound {bound} (crash {crash} + dual {dual} + open {open})",
            self.key
        )
    }
}

/// All windows of a key that hold more than the formula allows.
pub(super) fn check(key: &OfKey<'_>, broken: &mut Vec<Violation>) {
    look(key, &mut |over: Over| {
        if over.units() > over.allowance.sum() {
            broken.push(over.into());
        }
    });
}

/// The window of a key that holds the most beyond what its algorithm allows.
pub(super) fn worst(key: &OfKey<'_>) -> Option<Over> {
    let mut worst: Option<Over> = None;
    look(key, &mut |over: Over| {
        if worst
            .as_ref()
            .is_none_or(|worst| worst.units() < over.units())
        {
            worst = Some(over);
        }
    });
    worst.filter(|worst| worst.units() > 0)
}

impl From<Over> for Violation {
    fn from(over: Over) -> Self {
        let Allowance { crash, dual, open } = over.allowance;
        Self::TooMany {
            key: over.key,
            from: over.from,
            to: over.to,
            admitted: over.admitted,
            most: over.most,
            crash,
            dual,
            open,
        }
    }
}

/// Finds the windows of a key that hold more than its algorithm allows.
fn look(key: &OfKey<'_>, found: &mut dyn FnMut(Over)) {
    match key.rule.algorithm {
        Algorithm::SlidingWindow(rule) => {
            for (length, most) in spans(&rule) {
                sliding(key, length, most, found);
            }
        }
        Algorithm::SlidingLog(rule) => sliding(key, rule.window.span(), rule.limit, found),
        Algorithm::FixedWindow(rule) => match rule.alignment {
            Alignment::Epoch(window) => fixed(key, window.span(), rule.limit, found),
            // Nothing but the promise of any fixed window.
            Alignment::Calendar(..) => {}
        },
        Algorithm::TokenBucket(rule) => {
            bucket(key, rule.burst, (rule.limit, rule.window.span()), found);
        }
        Algorithm::LeakyBucket(rule) => {
            let rate = (rule.limit, rule.window.span());
            bucket(key, rule.capacity(), rate, found);
        }
        // Permits have no window; their count is the receipts' matter.
        Algorithm::Concurrency(_) => {}
    }
}

/// The windows that a sliding window promises something of, and the most that they hold.
fn spans(rule: &SlidingWindow) -> Vec<(Nanos, u64)> {
    let window = rule.window.span();
    match rule.oldest {
        OldestSlice::Full => vec![(window, rule.limit)],
        OldestSlice::Weighted => {
            let slices = u64::from(rule.slices);
            let slice = window.as_nanos().div_ceil(slices.max(1));
            let full = Nanos::new(slice.saturating_mul(slices.saturating_sub(1)));
            let full = full.as_nanos().min(window.as_nanos().saturating_sub(slice));
            vec![
                (Nanos::new(full), rule.limit),
                (window, rule.limit.saturating_mul(2).saturating_sub(1)),
            ]
        }
    }
}

/// Windows of one length, wherever they end.
fn sliding(key: &OfKey<'_>, length: Nanos, most: u64, found: &mut dyn FnMut(Over)) {
    if length == Nanos::ZERO {
        return;
    }
    for (at, last) in key.admissions.iter().enumerate() {
        let to = last.latest();
        let Some(from) = to.as_nanos().checked_sub(length.as_nanos()) else {
            // All that came so far.
            let window = Window::before(key, at, None, to);
            window.check(most, found);
            continue;
        };
        let window = Window::before(key, at, Some(Nanos::new(from)), to);
        window.check(most, found);
    }
}

/// Windows that start at whole multiples of their length.
fn fixed(key: &OfKey<'_>, length: Nanos, most: u64, found: &mut dyn FnMut(Over)) {
    let origin = key.history.terms.unix_origin;
    let number = |at: Nanos| {
        let unix = origin.saturating_add(at).as_nanos();
        unix.checked_div(length.as_nanos()).unwrap_or(0)
    };
    for (at, last) in key.admissions.iter().enumerate() {
        let to = last.latest();
        let start = number(to).saturating_mul(length.as_nanos());
        // The instant before its first.
        let from = start.checked_sub(origin.as_nanos().saturating_add(1));
        Window::before(key, at, from.map(Nanos::new), to).check(most, found);
    }
}

/// A level that drains: at most the burst and what has drained since, in any time.
fn bucket(key: &OfKey<'_>, burst: u64, rate: (u64, Nanos), found: &mut dyn FnMut(Over)) {
    let (limit, window) = rate;
    let drained = |span: Nanos| {
        let units = u128::from(limit) * u128::from(span.as_nanos());
        let units = units.div_ceil(u128::from(window.as_nanos().max(1)));
        u64::try_from(units).unwrap_or(u64::MAX)
    };
    for (at, last) in key.admissions.iter().enumerate() {
        let to = last.latest();
        let mut sum = 0_u64;
        for first in key.admissions.iter().take(at.saturating_add(1)).rev() {
            let from = first.earliest();
            sum = sum.saturating_add(first.admitted());
            let most = burst.saturating_add(drained(to.saturating_sub(from)));
            if sum > most {
                let from = from.as_nanos().checked_sub(1).map(Nanos::new);
                Window::before(key, at, from, to).check(most, found);
            }
        }
    }
}

/// One window: what was admitted after `from` and up to `to`.
#[derive(Debug)]
pub(super) struct Window<'a> {
    key: &'a OfKey<'a>,
    from: Option<Nanos>,
    to: Nanos,
    admissions: Vec<&'a Answer>,
}

impl<'a> Window<'a> {
    /// Of the admissions up to the one at `last`; without `from` since ever.
    fn before(key: &'a OfKey<'a>, last: usize, from: Option<Nanos>, to: Nanos) -> Self {
        let after = |at: Nanos| from.is_none_or(|from| at > from);
        let up_to = key.admissions.iter().take(last.saturating_add(1));
        let reset = key.reset_by(to);
        let inside = up_to.rev().copied();
        let inside = inside.take_while(|answer| after(answer.latest()));
        let counts = |answer: &&Answer| {
            after(answer.earliest()) && reset.is_none_or(|reset| answer.earliest() > reset)
        };
        Self {
            key,
            from,
            to,
            admissions: inside.filter(counts).collect(),
        }
    }

    fn check(&self, most: u64, found: &mut dyn FnMut(Over)) {
        let admitted = self.admissions.iter().map(|answer| answer.admitted());
        let admitted = admitted.fold(0_u64, u64::saturating_add);
        if admitted <= most {
            return;
        }
        // Without a start all is inside: an amendment at the origin's instant too.
        let from = self.from.unwrap_or(Nanos::ZERO);
        let admitted =
            admitted.saturating_sub(self.key.given_back(&self.admissions, from, self.to));
        let allowance = Allowance::of(self.key, &self.admissions, self.to, most);
        found(Over {
            key: self.key.name.to_owned(),
            from,
            to: self.to,
            admitted,
            most,
            allowance,
        });
    }
}
