//! Tests of reports.

mod model;

use tollgate_limit::{Body, Counter, KeyHash, Nanos, NodeId, Series, SlotId, SlotSet, Writer};

use super::{
    MAX_KEPT, MAX_LOOKED_AT, MAX_REPORTS, REPORT_INTERVAL, REPORT_SLOTS, REPORT_TIMEOUT, Report,
    ReportTo, Reports,
};

const fn at(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

fn node(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

fn slots(numbers: impl IntoIterator<Item = u16>) -> SlotSet {
    numbers.into_iter().map(SlotId::new).collect()
}

fn to(name: &str) -> impl FnMut(SlotId) -> ReportTo + use<> {
    let peer = node(name);
    move |_slot| ReportTo::Peer(peer.clone())
}

/// A series of a slot, told by its version.
fn series(slot: u16, version: u64) -> Series {
    Series {
        key: KeyHash::from_halves(u64::from(slot) << 48, version),
        counter: Counter::Ban,
        writer: Writer::new(1),
        version,
        clock: 0,
        body: Body::Void,
    }
}

fn marked(numbers: impl IntoIterator<Item = u16>) -> Reports {
    let reports = Reports::new();
    reports.marked().mark_all(&slots(numbers));
    reports
}

#[track_caller]
fn sent(reports: &mut Reports, now: u64, frames: u64) -> std::ops::Range<u64> {
    let report = reports.poll_report(at(now), to("a")).unwrap();
    let withdrawn = report.kept.clone();
    reports.handle_sent(at(now), report, (frames, withdrawn))
}

#[test]
fn what_is_marked_is_reported_until_it_is_taken_in() {
    let mut reports = Reports::new();
    assert!(reports.is_settled());
    assert_eq!(reports.poll_report(at(0), to("a")), None);
    reports.marked().mark(SlotId::new(7));
    assert!(!reports.is_settled() && reports.is_owed(SlotId::new(7)));
    let report = reports.poll_report(at(0), to("a")).unwrap();
    let expected = Report {
        to: Some(node("a")),
        slots: slots([7]),
        kept: Vec::new(),
        room: MAX_KEPT,
    };
    assert_eq!(report, expected);
    let numbers = reports.handle_sent(at(0), report, (2, Vec::new()));
    assert_eq!(numbers, 0..2);
    assert_eq!(
        reports.poll_report(at(2_000), to("a")),
        None,
        "it is under way"
    );
    reports.handle_reported(&node("b"), 0);
    for number in [1, 1, 0, 0] {
        reports.handle_reported(&node("a"), number);
        assert!(reports.is_owed(SlotId::new(7)), "half of it at most");
    }
    reports.handle_reported(&node("a"), 1);
    assert!(reports.is_settled());
    assert!(!reports.is_owed(SlotId::new(7)));
}

#[test]
fn a_slot_is_reported_once_in_a_while() {
    let mut reports = marked([7]);
    let first = sent(&mut reports, 0, 1);
    reports.handle_reported(&node("a"), first.start);
    reports.marked().mark_all(&slots([7, 8]));
    let report = reports.poll_report(at(1), to("a")).unwrap();
    assert_eq!(report.slots, slots([8]));
    let numbers = reports.handle_sent(at(1), report, (1, Vec::new()));
    assert_eq!(numbers, 1..2, "no number is used twice");
    let before = REPORT_INTERVAL.saturating_sub(Nanos::new(1));
    assert_eq!(reports.poll_report(before, to("a")), None);
    let report = reports.poll_report(REPORT_INTERVAL, to("a")).unwrap();
    assert_eq!(report.slots, slots([7]));
}

#[test]
fn each_owner_gets_its_own_and_who_cannot_be_told_is_told_later() {
    let mut reports = marked([1, 2, 3, 4, 5]);
    let whom = |slot: SlotId| match slot.number() {
        1 | 4 => ReportTo::Peer(node("a")),
        2 => ReportTo::Later,
        3 => ReportTo::Here,
        _ => ReportTo::Peer(node("b")),
    };
    let mut told = Vec::new();
    while let Some(report) = reports.poll_report(at(0), whom) {
        told.push((report.to.clone(), report.slots.clone()));
        let frames = reports.handle_sent(at(0), report, (1, Vec::new()));
        assert_eq!(frames.is_empty(), told.last().unwrap().0.is_none());
    }
    let expected = [
        (Some(node("a")), slots([1, 4])),
        (None, slots([3])),
        (Some(node("b")), slots([5])),
    ];
    assert_eq!(told, expected);
    assert_eq!(reports.owed(), 1);
    assert!(!reports.is_owed(SlotId::new(3)), "its owner has it");
    assert!(reports.is_owed(SlotId::new(2)));
}

#[test]
fn what_is_not_acknowledged_is_owed_again() {
    for is_lost in [true, false] {
        let mut reports = marked([7]);
        let first = sent(&mut reports, 0, 1);
        let now = if is_lost {
            reports.handle_disconnected(&node("b"));
            assert_eq!(reports.poll_report(at(1_000), to("a")), None);
            reports.handle_disconnected(&node("a"));
            1_000
        } else {
            let before = REPORT_TIMEOUT.saturating_sub(Nanos::new(1));
            assert_eq!(reports.poll_report(before, to("a")), None);
            REPORT_TIMEOUT.ceil_millis()
        };
        assert_eq!(sent(&mut reports, now, 1), 1..2);
        reports.handle_reported(&node("a"), first.start);
        assert!(!reports.is_settled(), "it is of the report before");
        reports.handle_reported(&node("a"), 1);
        assert!(reports.is_settled());
    }
}

#[test]
fn what_was_taken_out_of_the_shares_is_kept_until_it_is_taken_in() {
    let mut reports = marked([7, 8]);
    let report = reports.poll_report(at(100), to("a")).unwrap();
    reports.handle_unsent(at(100), &report, vec![series(7, 1)]);
    assert_eq!(reports.kept(), 1);
    // It is older by then.
    let older = |version, millis| Series {
        clock: at(millis).as_nanos(),
        ..series(7, version)
    };
    let mut report = reports.poll_report(at(1_100), to("a")).unwrap();
    assert_eq!(report.kept, [older(1, 1_000)]);
    assert_eq!(report.slots, slots([7, 8]));
    assert_eq!(report.room, MAX_KEPT - 1);
    let mut withdrawn = std::mem::take(&mut report.kept);
    withdrawn.push(series(7, 2));
    let numbers = reports.handle_sent(at(1_100), report, (1, withdrawn));
    assert_eq!(reports.kept(), 2);
    reports.handle_disconnected(&node("a"));
    assert_eq!(reports.kept(), 2);
    let report = reports.poll_report(at(3_100), to("a")).unwrap();
    assert_eq!(report.kept, [older(1, 3_000), older(2, 2_000)]);
    let withdrawn = report.kept.clone();
    reports.handle_reported(&node("a"), numbers.start);
    let numbers = reports.handle_sent(at(3_100), report, (1, withdrawn));
    reports.handle_reported(&node("a"), numbers.start);
    assert_eq!(reports.kept(), 0);
    assert!(reports.is_settled());
}

#[test]
fn its_bounds_hold() {
    let mut reports = marked(0..=u16::MAX);
    let mut under_way = 0;
    while let Some(report) = reports.poll_report(at(0), to("a")) {
        assert_eq!(report.slots.len(), REPORT_SLOTS);
        let withdrawn = vec![series(7, 1); MAX_KEPT / MAX_REPORTS];
        under_way += 1;
        let _numbers = reports.handle_sent(at(0), report, (1, withdrawn));
    }
    assert_eq!(under_way, MAX_REPORTS);
    assert_eq!(reports.owed(), 65_536 - MAX_REPORTS * REPORT_SLOTS);
    reports.handle_reported(&node("a"), 0);
    let report = reports.poll_report(at(0), to("a")).unwrap();
    assert_eq!(
        report.room,
        MAX_KEPT / MAX_REPORTS,
        "what was taken in makes room"
    );
}

/// However many slots cannot be told of, the others are come to.
#[test]
fn those_who_cannot_be_told_hold_up_nobody() {
    let mut reports = marked(0..=u16::MAX);
    let last = |slot: SlotId| {
        if slot.number() == u16::MAX {
            ReportTo::Peer(node("a"))
        } else {
            ReportTo::Later
        }
    };
    let mut polls = 0;
    let report = loop {
        polls += 1;
        assert!(polls <= 20);
        let mut looked_at = 0;
        let whom = |slot| {
            looked_at += 1;
            last(slot)
        };
        let report = reports.poll_report(at(0), whom);
        assert!(looked_at <= MAX_LOOKED_AT);
        if let Some(report) = report {
            break report;
        }
    };
    assert_eq!(report.slots, slots([u16::MAX]));
}

#[test]
fn many_threads_mark() {
    let mut reports = Reports::new();
    let marked = reports.marked();
    let mut found = SlotSet::new();
    std::thread::scope(|scope| {
        for thread in 0..4_u16 {
            let marked = &marked;
            scope.spawn(move || {
                for number in 0..10_000 {
                    marked.mark(SlotId::new(number * 4 + thread));
                }
            });
        }
        for now in 0..100 {
            if let Some(report) = reports.poll_report(at(now * 2_000), to("a")) {
                found.extend(&report.slots);
                let _none = reports.handle_sent(at(now * 2_000), report, (0, Vec::new()));
            }
        }
    });
    let mut now = 1_000_000;
    while let Some(report) = reports.poll_report(at(now), to("a")) {
        now += 2_000;
        found.extend(&report.slots);
        let _none = reports.handle_sent(at(now), report, (0, Vec::new()));
    }
    assert_eq!(found, slots(0..40_000));
}
