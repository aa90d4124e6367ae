//! Calendar windows: hours, days, weeks, months and years of a time zone, as spans of Unix time.
//!
//! Pure: the zone data is bundled, so that all nodes of a build agree whatever machine they run on.
//! Knows nothing of counters. Invariant (`INV-CALENDAR-PARTITION`): the windows of one unit and zone
//! follow each other without a gap and without overlap, whatever clocks are put forward or back.

use std::{cell::RefCell, sync::LazyLock};

use jiff::{
    Timestamp,
    civil::{Date, DateTime, Time},
    tz::{TimeZone, TimeZoneDatabase},
};

use crate::units::{Nanos, Window};

/// A part of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CalendarUnit {
    /// From one full hour of the local clock to the next.
    Hour,
    /// From midnight to midnight: 23 or 25 hours where clocks change.
    Day,
    /// From Monday to Monday, as ISO 8601 counts weeks.
    Week,
    /// From the first to the first.
    Month,
    /// From 1 January to 1 January.
    Year,
}

impl CalendarUnit {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Hour, Self::Day, Self::Week, Self::Month, Self::Year];

    /// Its name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Year => "year",
        }
    }

    /// The unit of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.name() == name)
    }

    /// The length that is told of it: an hour, 24 hours, 7 days, 31 days, 366 days.
    #[must_use]
    pub const fn nominal(self) -> Window {
        const HOUR: u64 = 3_600_000;
        const DAY: u64 = 24 * HOUR;
        let millis = match self {
            Self::Hour => HOUR,
            Self::Day => DAY,
            Self::Week => 7 * DAY,
            Self::Month => 31 * DAY,
            Self::Year => 366 * DAY,
        };
        match Window::new(Nanos::from_millis(millis)) {
            Some(window) => window,
            None => Window::SHORTEST,
        }
    }
}

/// A time zone of the IANA database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Zone(u16);

/// The names of all zones, sorted: a [`Zone`] is a place in it.
static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let database = TimeZoneDatabase::bundled();
    let mut names: Vec<_> = database.available().map(|name| name.to_string()).collect();
    names.push(UTC.to_owned());
    names.sort_unstable();
    names.dedup();
    names
});

const UTC: &str = "UTC";

thread_local! {
    /// The zone that was asked for last on this thread: as a rule all limits are in one zone.
    static LAST: RefCell<Option<(Zone, TimeZone)>> = const { RefCell::new(None) };
}

impl Zone {
    /// Coordinated universal time.
    #[must_use]
    pub fn utc() -> Self {
        Self::named(UTC).unwrap_or(Self(0))
    }

    /// The zone of this name, whatever the case of its letters; `None` if the bundled data has none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let place = NAMES
            .iter()
            .position(|known| known.eq_ignore_ascii_case(name))?;
        u16::try_from(place).ok().map(Self)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.get(usize::from(self.0)).map_or(UTC, String::as_str)
    }

    /// A number for it that is stable while the process runs, and no longer.
    pub(crate) const fn number(self) -> u16 {
        self.0
    }

    /// The zone of a number.
    pub(crate) fn from_number(number: u64) -> Option<Self> {
        let number = u16::try_from(number).ok()?;
        (usize::from(number) < NAMES.len()).then_some(Self(number))
    }

    fn with<T>(self, read: impl FnOnce(&TimeZone) -> T) -> T {
        LAST.with_borrow_mut(|last| {
            if !matches!(last, Some((zone, _)) if *zone == self) {
                let zone = TimeZoneDatabase::bundled().get(self.name());
                *last = Some((self, zone.unwrap_or(TimeZone::UTC)));
            }
            match last {
                Some((_, zone)) => read(zone),
                None => read(&TimeZone::UTC),
            }
        })
    }
}

/// The window of the calendar that an instant lies in: its first instant, and the first of the next,
/// both in nanoseconds since the epoch.
pub(crate) fn window_at(unit: CalendarUnit, zone: Zone, unix: Nanos) -> (Nanos, Nanos) {
    let found = zone.with(|zone| match unit {
        CalendarUnit::Hour => hour_at(zone, unix),
        CalendarUnit::Day | CalendarUnit::Week | CalendarUnit::Month | CalendarUnit::Year => {
            dates_at(unit, zone, unix)
        }
    });
    // Only outside the years that the calendar knows.
    found.unwrap_or_else(|| epoch_window_at(unit.nominal(), unix))
}

/// The window since the epoch that an instant lies in.
pub(crate) fn epoch_window_at(window: Window, unix: Nanos) -> (Nanos, Nanos) {
    let span = window.span();
    let within = unix
        .as_nanos()
        .checked_rem(span.as_nanos())
        .unwrap_or_default();
    let start = unix.saturating_sub(Nanos::new(within));
    (start, start.saturating_add(span))
}

/// Hours end early where the local clock is changed within one, so that each is of one local hour.
fn hour_at(zone: &TimeZone, unix: Nanos) -> Option<(Nanos, Nanos)> {
    let at = timestamp(unix)?;
    let local = zone.to_datetime(at).time();
    let minutes = u64::try_from(local.minute()).ok()?;
    let seconds = u64::try_from(local.second()).ok()?;
    let nanos = u64::try_from(local.subsec_nanosecond()).ok()?;
    let seconds = minutes.saturating_mul(60).saturating_add(seconds);
    let passed = seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
    let mut start = unix.saturating_sub(Nanos::new(passed));
    let mut end = start.saturating_add(CalendarUnit::Hour.nominal().span());
    // `preceding` is exclusive: one after now also finds a change that is now.
    let after = timestamp(unix.saturating_add(Nanos::new(1)))?;
    if let Some(change) = zone.preceding(after).next() {
        start = start.max(unix_nanos(change.timestamp()).unwrap_or(start));
    }
    if let Some(change) = zone.following(at).next() {
        end = end.min(unix_nanos(change.timestamp())?);
    }
    Some((start, end))
}

fn dates_at(unit: CalendarUnit, zone: &TimeZone, unix: Nanos) -> Option<(Nanos, Nanos)> {
    let today = zone.to_datetime(timestamp(unix)?).date();
    let first = first_of(unit, today)?;
    let next = next_of(unit, first)?;
    Some((start_of(zone, first)?, start_of(zone, next)?))
}

fn first_of(unit: CalendarUnit, date: Date) -> Option<Date> {
    match unit {
        CalendarUnit::Hour | CalendarUnit::Day => Some(date),
        CalendarUnit::Week => {
            let mut first = date;
            for _ in 0..date.weekday().to_monday_zero_offset() {
                first = first.yesterday().ok()?;
            }
            Some(first)
        }
        CalendarUnit::Month => Some(date.first_of_month()),
        CalendarUnit::Year => Some(date.first_of_year()),
    }
}

fn next_of(unit: CalendarUnit, first: Date) -> Option<Date> {
    match unit {
        CalendarUnit::Hour | CalendarUnit::Day => first.tomorrow().ok(),
        CalendarUnit::Week => {
            let mut next = first;
            for _ in 0..7 {
                next = next.tomorrow().ok()?;
            }
            Some(next)
        }
        CalendarUnit::Month => first.last_of_month().tomorrow().ok(),
        CalendarUnit::Year => first.last_of_year().tomorrow().ok(),
    }
}

/// The first instant of a date: where midnight comes twice the first, where it is skipped what follows.
fn start_of(zone: &TimeZone, date: Date) -> Option<Nanos> {
    let midnight = DateTime::from_parts(date, Time::midnight());
    let start = zone.to_ambiguous_timestamp(midnight).compatible().ok()?;
    unix_nanos(start)
}

fn timestamp(unix: Nanos) -> Option<Timestamp> {
    Timestamp::from_nanosecond(i128::from(unix.as_nanos())).ok()
}

fn unix_nanos(at: Timestamp) -> Option<Nanos> {
    u64::try_from(at.as_nanosecond()).ok().map(Nanos::new)
}

#[cfg(test)]
mod tests;
