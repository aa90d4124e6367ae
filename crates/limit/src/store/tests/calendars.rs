//! Windows of the calendar end when the calendar says so.

use jiff::Timestamp;

use super::{SECOND, ask, key, store_since};
use crate::{
    calendar::{CalendarUnit, Zone},
    rule::{Algorithm, Alignment, FixedWindow},
    units::Nanos,
    verdict::Mode,
};

fn unix(time: &str) -> Nanos {
    let at: Timestamp = time.parse().expect("a time with its offset");
    Nanos::new(u64::try_from(at.as_nanosecond()).expect("after the epoch"))
}

/// Uses up a window at one instant, and is refused until just before the end.
fn check(unit: CalendarUnit, zone: &str, (at, end): (&str, &str)) {
    let (at, end) = (unix(at), unix(end));
    let origin = at.saturating_sub(Nanos::new(500 * SECOND + 17));
    let store = store_since(origin);
    let zone = Zone::named(zone).expect("a zone of the data");
    let rule = Algorithm::FixedWindow(FixedWindow {
        limit: 3,
        alignment: Alignment::Calendar(unit, zone),
    });
    let all = ask(key(1), rule.into(), 3);
    let now = at.saturating_sub(origin);
    assert!(store.decide(now, &all, Mode::Consume).is_allowed());
    let refused = store.decide(now, &all, Mode::Consume);
    let wait = end.saturating_sub(at);
    let name = unit.name();
    assert_eq!(refused.retry_after, Some(wait), "{name} of {zone:?}");
    assert_eq!((refused.more_after, refused.reset_after), (wait, wait));
    let then = now.saturating_add(wait);
    let just_before = then.saturating_sub(Nanos::new(1));
    assert!(!store.decide(just_before, &all, Mode::Consume).is_allowed());
    assert!(store.decide(then, &all, Mode::Consume).is_allowed());
    assert!(!store.decide(then, &all, Mode::Consume).is_allowed());
}

#[test]
fn a_month_ends_with_its_last_day() {
    for (at, end) in [
        ("2026-01-31T12:00:00Z", "2026-02-01T00:00:00Z"),
        ("2026-02-28T23:59:59Z", "2026-03-01T00:00:00Z"),
        ("2028-02-28T00:00:00Z", "2028-03-01T00:00:00Z"),
        ("2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"),
    ] {
        check(CalendarUnit::Month, "UTC", (at, end));
    }
    let berlin = "Europe/Berlin";
    let in_march = ("2026-03-01T00:00:00+01:00", "2026-04-01T00:00:00+02:00");
    check(CalendarUnit::Month, berlin, in_march);
    let in_october = ("2026-10-31T23:00:00+01:00", "2026-11-01T00:00:00+01:00");
    check(CalendarUnit::Month, berlin, in_october);
}

#[test]
fn a_day_of_changed_clocks_is_23_or_25_hours() {
    for (at, end) in [
        ("2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00"),
        ("2026-03-29T01:59:59+01:00", "2026-03-30T00:00:00+02:00"),
        ("2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00"),
        ("2026-10-25T02:30:00+01:00", "2026-10-26T00:00:00+01:00"),
    ] {
        check(CalendarUnit::Day, "Europe/Berlin", (at, end));
    }
    let spring =
        unix("2026-03-30T00:00:00+02:00").saturating_sub(unix("2026-03-29T00:00:00+01:00"));
    assert_eq!(spring, Nanos::new(23 * 3600 * SECOND));
}

#[test]
fn hours_around_a_change_of_clocks_are_hours() {
    for (at, end) in [
        ("2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00"),
        ("2026-10-25T02:30:00+02:00", "2026-10-25T02:00:00+01:00"),
        ("2026-10-25T02:30:00+01:00", "2026-10-25T03:00:00+01:00"),
    ] {
        check(CalendarUnit::Hour, "Europe/Berlin", (at, end));
    }
}

#[test]
fn an_iso_week_goes_on_over_new_year() {
    for (at, end) in [
        ("2026-12-31T12:00:00Z", "2027-01-04T00:00:00Z"),
        ("2027-01-01T00:00:00Z", "2027-01-04T00:00:00Z"),
        ("2024-12-30T00:00:00Z", "2025-01-06T00:00:00Z"),
    ] {
        check(CalendarUnit::Week, "UTC", (at, end));
    }
    let new_year = ("2026-12-31T23:59:59+01:00", "2027-01-01T00:00:00+01:00");
    check(CalendarUnit::Year, "Europe/Berlin", new_year);
}
