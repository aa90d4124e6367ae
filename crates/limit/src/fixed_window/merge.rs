//! Series of one fixed window added up, and taken apart again.
//!
//! Windows are of wall time, the same for all writers. Of series of different windows the latest stands: the
//! others are over, or their writers' wall clocks are behind.

use super::{Alignment, FixedWindow, epoch_window_at};
use crate::{calendar::CalendarUnit, counter::merge::Kept, series::SeriesWords, units::Nanos};

/// More than a window of the calendar is longer than its nominal length, by a change of the clocks.
const CLOCK_CHANGE: Nanos = CalendarUnit::Day.nominal().span();

/// The window of a series that stands: the latest, and all that is counted in it.
fn sum<'a>(series: impl Iterator<Item = Kept<'a>>) -> (u64, u64, i64) {
    let (mut window, mut sum) = ((0, 0), 0_i64);
    for kept in series {
        let [start, end, used] = *kept.words else {
            continue;
        };
        if (start, end) > window {
            window = (start, end);
            sum = 0;
        }
        if (start, end) == window {
            sum = sum.saturating_add(used.cast_signed());
        }
    }
    (window.0, window.1, sum)
}

/// Makes a total of series.
pub(crate) fn gather<'a>(
    (words, latest): (&mut [u64], &mut Nanos),
    now: Nanos,
    series: impl Iterator<Item = Kept<'a>> + Clone,
) {
    let last = series.clone().map(|kept| kept.latest_here(now)).max();
    *latest = last.unwrap_or(*latest);
    if let [start, end, used] = words {
        let counted;
        (*start, *end, counted) = sum(series);
        *used = counted.cast_unsigned();
    }
}

/// What of a total is in none of the series.
pub(crate) fn own<'a>(words: &[u64], foreign: impl Iterator<Item = Kept<'a>>) -> SeriesWords {
    let [start, end, used] = *words else {
        return SeriesWords::from_slice(words);
    };
    let here = foreign.filter(|kept| kept.words.get(..2) == Some(&[start, end]));
    let (_, _, others) = sum(here);
    let own = used.cast_signed().saturating_sub(others);
    SeriesWords::from_slice(&[start, end, own.cast_unsigned()])
}

/// Changes a total from holding `old` of one series to holding `new`.
pub(crate) fn replace(
    (words, latest): (&mut [u64], &mut Nanos),
    now: Nanos,
    others: &[Kept<'_>],
    (old, new): (Option<Kept<'_>>, Option<Kept<'_>>),
) {
    let home = own(words, others.iter().copied().chain(old));
    let home = Kept {
        latest: *latest,
        offset: 0,
        words: &home,
    };
    let after = others.iter().copied().chain(new).chain([home]);
    gather((words, latest), now.max(home.latest), after);
}

/// The end of its window, by the clock here.
pub(crate) fn ends_at(unix_origin: Nanos, words: &[u64]) -> Nanos {
    match words.get(1) {
        Some(&u64::MAX) => Nanos::MAX,
        Some(end) => Nanos::new(*end).saturating_sub(unix_origin),
        None => Nanos::ZERO,
    }
}

/// Whether the words are of a window of the rule, or of none.
pub(crate) fn is_sound(rule: &FixedWindow, words: &[u64]) -> bool {
    let [start, end, _] = *words else {
        return false;
    };
    if (start, end) == (0, 0) {
        return true;
    }
    let (start, end) = (Nanos::new(start), Nanos::new(end));
    match rule.alignment {
        Alignment::Epoch(window) => epoch_window_at(window, start) == (start, end),
        // Not compared with the calendar here: builds may differ in what they know of time zones.
        Alignment::Calendar(unit, _) => {
            let longest = unit.nominal().span().saturating_add(CLOCK_CHANGE);
            start < end && end.saturating_sub(start) <= longest
        }
    }
}
