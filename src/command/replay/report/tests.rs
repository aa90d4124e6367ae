//! What a replay tells, and how it exits.

use std::time::Duration;

use super::Report;
use crate::command::{Exit, answers::CheckAnswer};

#[test]
fn checks_that_no_limit_applied_to_are_told_apart() {
    let free = CheckAnswer {
        allowed: true,
        limits: Vec::new(),
    };
    let mut lane = Report::default();
    lane.answered("192.0.2.1", &free);
    let mut report = Report::default();
    report.answered("192.0.2.2", &free);
    report.add(lane);
    let table = format!("{}", report.table(Duration::ZERO));
    let row = table
        .lines()
        .find(|row| row.starts_with("no limit applied"));
    assert!(row.is_some_and(|row| row.ends_with(" 2")), "{table}");
    let json = serde_json::to_value(report.summary(Duration::ZERO)).unwrap();
    assert_eq!(json["no_limit_applied"], 2);
}

#[test]
fn a_replay_exits_with_what_became_of_it() {
    let answered = CheckAnswer {
        allowed: false,
        limits: Vec::new(),
    };
    let mut report = Report {
        unreadable: 3,
        ..Report::default()
    };
    let none = report.exit(&"access.log").unwrap_err();
    assert_eq!(none.exit(), Exit::Usage);
    report.answered("192.0.2.1", &answered);
    assert_eq!(report.exit(&"access.log").unwrap(), Exit::Done);
    report.failed("192.0.2.1", "gone".to_owned());
    let some = report.exit(&"access.log").unwrap_err();
    assert_eq!(some.exit(), Exit::Runtime);
}
