//! Tests of the calendar: instants worked out by hand, and the partition for all zones.

use jiff::Timestamp;
use proptest::prelude::*;

use super::{CalendarUnit, NAMES, Zone, window_at};
use crate::units::Nanos;

fn unix(text: &str) -> Nanos {
    let at: Timestamp = text.parse().expect("an instant");
    Nanos::new(u64::try_from(at.as_nanosecond()).expect("after 1970"))
}

fn check(zone: &str, unit: CalendarUnit, at: &str, start: &str, end: &str) {
    let zone = Zone::named(zone).expect("a zone");
    let found = window_at(unit, zone, unix(at));
    assert_eq!(
        found,
        (unix(start), unix(end)),
        "{unit:?} of {at} in {zone:?}"
    );
}

#[test]
fn months_and_years_end_where_the_calendar_ends_them() {
    use CalendarUnit::{Month, Year};
    let utc = "UTC";
    check(
        utc,
        Month,
        "2023-01-31T23:59:59Z",
        "2023-01-01T00:00:00Z",
        "2023-02-01T00:00:00Z",
    );
    check(
        utc,
        Month,
        "2024-02-28T12:00:00Z",
        "2024-02-01T00:00:00Z",
        "2024-03-01T00:00:00Z",
    );
    check(
        utc,
        Month,
        "2024-02-29T23:59:59.999999999Z",
        "2024-02-01T00:00:00Z",
        "2024-03-01T00:00:00Z",
    );
    check(
        utc,
        Month,
        "2023-02-28T23:59:59Z",
        "2023-02-01T00:00:00Z",
        "2023-03-01T00:00:00Z",
    );
    check(
        utc,
        Year,
        "2024-12-31T23:59:59Z",
        "2024-01-01T00:00:00Z",
        "2025-01-01T00:00:00Z",
    );
    let berlin = "Europe/Berlin";
    check(
        berlin,
        Month,
        "2024-01-31T23:30:00Z",
        "2024-01-31T23:00:00Z",
        "2024-02-29T23:00:00Z",
    );
    check(
        berlin,
        Month,
        "2024-03-15T00:00:00Z",
        "2024-02-29T23:00:00Z",
        "2024-03-31T22:00:00Z",
    );
}

#[test]
fn iso_weeks_run_from_monday_over_new_year() {
    use CalendarUnit::Week;
    check(
        "UTC",
        Week,
        "2024-12-31T12:00:00Z",
        "2024-12-30T00:00:00Z",
        "2025-01-06T00:00:00Z",
    );
    check(
        "UTC",
        Week,
        "2025-01-05T23:59:59Z",
        "2024-12-30T00:00:00Z",
        "2025-01-06T00:00:00Z",
    );
    check(
        "UTC",
        Week,
        "2025-01-06T00:00:00Z",
        "2025-01-06T00:00:00Z",
        "2025-01-13T00:00:00Z",
    );
    check(
        "Europe/Berlin",
        Week,
        "2021-01-01T00:00:00Z",
        "2020-12-27T23:00:00Z",
        "2021-01-03T23:00:00Z",
    );
}

#[test]
fn days_are_as_long_as_the_clocks_make_them() {
    use CalendarUnit::Day;
    let berlin = "Europe/Berlin";
    // Forward on 2024-03-31: 23 hours. Back on 2024-10-27: 25 hours.
    check(
        berlin,
        Day,
        "2024-03-31T10:00:00Z",
        "2024-03-30T23:00:00Z",
        "2024-03-31T22:00:00Z",
    );
    check(
        berlin,
        Day,
        "2024-10-27T10:00:00Z",
        "2024-10-26T22:00:00Z",
        "2024-10-27T23:00:00Z",
    );
    // Midnight itself is skipped.
    check(
        "America/Sao_Paulo",
        Day,
        "2018-11-04T12:00:00Z",
        "2018-11-04T03:00:00Z",
        "2018-11-05T02:00:00Z",
    );
}

#[test]
fn hours_follow_the_local_clock() {
    use CalendarUnit::Hour;
    let berlin = "Europe/Berlin";
    check(
        berlin,
        Hour,
        "2024-10-27T00:30:00Z",
        "2024-10-27T00:00:00Z",
        "2024-10-27T01:00:00Z",
    );
    check(
        berlin,
        Hour,
        "2024-10-27T01:30:00Z",
        "2024-10-27T01:00:00Z",
        "2024-10-27T02:00:00Z",
    );
    check(
        berlin,
        Hour,
        "2024-03-31T01:30:00Z",
        "2024-03-31T01:00:00Z",
        "2024-03-31T02:00:00Z",
    );
    check(
        "Asia/Kolkata",
        Hour,
        "2024-06-01T00:10:00Z",
        "2024-05-31T23:30:00Z",
        "2024-06-01T00:30:00Z",
    );
    // Half an hour forward at 02:00, 2024-10-06: the local hour from 02:30 is short.
    check(
        "Australia/Lord_Howe",
        Hour,
        "2024-10-05T15:40:00Z",
        "2024-10-05T15:30:00Z",
        "2024-10-05T16:00:00Z",
    );
}

#[test]
fn zones_have_names() {
    assert_eq!(
        Zone::named("europe/berlin").map(Zone::name),
        Some("Europe/Berlin")
    );
    assert_eq!(Zone::utc().name(), "UTC");
    assert_eq!(Zone::named("Europe/Nowhere"), None);
    assert_eq!(Zone::named(""), None);
    assert!(NAMES.len() > 400, "{}", NAMES.len());
}

fn any_unit() -> impl Strategy<Value = CalendarUnit> {
    (0..CalendarUnit::ALL.len()).prop_map(|at| CalendarUnit::ALL[at])
}

proptest! {
    /// INV-CALENDAR-PARTITION, from 1970 to the end of representable time.
    #[test]
    fn windows_follow_each_other(
        unit in any_unit(),
        zone in any::<prop::sample::Index>(),
        at in prop_oneof![0_u64..4_102_444_800_000_000_000, any::<u64>()],
    ) {
        let zone = Zone(u16::try_from(zone.index(NAMES.len())).unwrap());
        let at = Nanos::new(at.max(31_622_400_000_000_000));
        let (start, end) = window_at(unit, zone, at);
        prop_assert!(start <= at && (at < end || end == Nanos::MAX), "{start:?} {end:?}");
        for within in [start, end.saturating_sub(Nanos::new(1))] {
            // Before 1970 local midnights lie before the epoch, which nothing can be.
            if within > Nanos::ZERO && end < Nanos::MAX {
                prop_assert_eq!(window_at(unit, zone, within), (start, end));
            }
        }
        if end < Nanos::MAX {
            prop_assert_eq!(window_at(unit, zone, end).0, end);
        }
    }
}
