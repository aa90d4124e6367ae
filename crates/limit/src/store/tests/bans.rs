//! Bans: what reported failures lead to.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;

use super::{MEBIBYTE, NOW, SECOND, ask, every_algorithm, key, minutes, store, window};
use crate::{
    rule::{Algorithm, Ban, OldestSlice, Rule, SlidingLog, SlidingWindow},
    store::{Ask, Change, Store},
    units::{Cost, Nanos},
    verdict::{Mode, Outcome, Reason, Verdict},
};

/// Five failures in ten minutes.
fn five_in_ten_minutes(ban: Ban) -> Rule {
    let window = window(600_000);
    let log = Algorithm::SlidingLog(SlidingLog { limit: 5, window });
    Rule {
        ban: Some(ban),
        ..Rule::new(log)
    }
}

/// An hour, twice as long each time, at most five.
fn growing() -> Ban {
    Ban {
        length: minutes(60),
        escalation: 2000,
        longest: minutes(300),
    }
}

fn fail(store: &Store, now: Nanos, ask: &Ask) -> Verdict {
    let verdict = store.decide(now, ask, Mode::Consume);
    if verdict.is_allowed() {
        store.amend(now, ask, Change::Failure);
    }
    verdict
}

/// Five failures at once.
fn get_banned(store: &Store, now: Nanos, ask: &Ask) {
    for _ in 0..5 {
        assert_eq!(ban_left(store, now, ask), None);
        assert!(fail(store, now, ask).is_allowed());
    }
}

fn ban_left(store: &Store, now: Nanos, ask: &Ask) -> Option<Nanos> {
    let peek = store.decide(now, ask, Mode::Peek);
    let read = store.read(now, ask.key, &ask.rule);
    if peek.outcome != Outcome::Refuse(Reason::Banned) {
        return None;
    }
    let read = read.expect("a ban is something to read");
    assert_eq!(read.outcome, peek.outcome);
    assert_eq!((peek.used, peek.remaining), (5, 0));
    let left = peek.retry_after.expect("a ban ends");
    assert_eq!((peek.more_after, peek.reset_after), (left, left));
    Some(left)
}

#[test]
fn a_ban_comes_with_the_last_failure_and_lasts_as_long_as_it_says() {
    for algorithm in every_algorithm(5, 600_000) {
        if matches!(algorithm, Algorithm::Concurrency(_)) {
            continue;
        }
        let store = store(16 * MEBIBYTE);
        let ban = Some(growing());
        let rule = Rule {
            ban,
            ..Rule::new(algorithm)
        };
        let one = ask(key(1), rule, 1);
        for _ in 0..4 {
            fail(&store, NOW, &one);
            assert_eq!(ban_left(&store, NOW, &one), None, "{algorithm:?}");
        }
        fail(&store, NOW, &one);
        assert_eq!(
            ban_left(&store, NOW, &one),
            Some(minutes(60)),
            "{algorithm:?}"
        );
        let end = NOW.saturating_add(minutes(60));
        let just_before = end.saturating_sub(Nanos::new(1));
        assert_eq!(ban_left(&store, just_before, &one), Some(Nanos::new(1)));
        // It has cleared the failures: four more lead to nothing.
        for _ in 0..4 {
            assert!(fail(&store, end, &one).is_allowed(), "{algorithm:?}");
        }
        assert_eq!(ban_left(&store, end, &one), None);
    }
}

/// After a ban that is shorter than the window nothing of before counts.
#[test]
fn a_ban_clears_what_led_to_it() {
    let brief = Ban {
        length: minutes(1),
        escalation: 1000,
        longest: minutes(1),
    };
    let store = store(16 * MEBIBYTE);
    let one = ask(key(1), five_in_ten_minutes(brief), 1);
    for number in 0..3 {
        let now = NOW.saturating_add(minutes(number));
        get_banned(&store, now, &one);
        assert_eq!(ban_left(&store, now, &one), Some(minutes(1)));
    }
}

#[test]
fn bans_grow_up_to_the_longest_and_are_forgotten_with_time() {
    let store = store(16 * MEBIBYTE);
    let one = ask(key(1), five_in_ten_minutes(growing()), 1);
    let mut now = NOW;
    for hours in [1, 2, 4, 5, 5] {
        get_banned(&store, now, &one);
        assert_eq!(ban_left(&store, now, &one), Some(minutes(hours * 60)));
        now = now.saturating_add(minutes(hours * 60));
    }
    // Five bans; the level falls by one with each five hours, to two.
    now = now.saturating_add(minutes(3 * 300));
    get_banned(&store, now, &one);
    assert_eq!(ban_left(&store, now, &one), Some(minutes(240)));
    now = now.saturating_add(minutes(240 + 50 * 300));
    get_banned(&store, now, &one);
    assert_eq!(ban_left(&store, now, &one), Some(minutes(60)));
}

#[test]
fn a_banned_key_is_what_it_is_whatever_is_reported() {
    let store = store(16 * MEBIBYTE);
    let one = ask(key(1), five_in_ten_minutes(growing()), 1);
    let first = fail(&store, NOW, &one);
    for _ in 0..4 {
        fail(&store, NOW, &one);
    }
    let later = NOW.saturating_add(minutes(30));
    let slice = first.charged_slice;
    store.amend(later, &one, Change::GiveBack { slice });
    store.amend(later, &one, Change::Refund);
    for _ in 0..20 {
        store.amend(later, &one, Change::Failure);
    }
    let left = Some(minutes(30));
    assert_eq!(
        ban_left(&store, later, &one),
        left,
        "neither lifted nor longer"
    );
    let end = NOW.saturating_add(minutes(60));
    for _ in 0..4 {
        assert!(
            fail(&store, end, &one).is_allowed(),
            "the twenty were ignored"
        );
    }
    assert_eq!(ban_left(&store, end, &one), None);
    fail(&store, end, &one);
    assert_eq!(ban_left(&store, end, &one), Some(minutes(120)));
    store.amend(end, &one, Change::Reset);
    assert_eq!(ban_left(&store, end, &one), None, "a reset lifts it");
    assert_eq!(store.read(end, one.key, &one.rule), None);
    get_banned(&store, end, &one);
    let first_again = Some(minutes(60));
    assert_eq!(ban_left(&store, end, &one), first_again, "and its level");
}

#[test]
fn successes_in_between_lift_nothing() {
    let store = store(16 * MEBIBYTE);
    let one = ask(key(1), five_in_ten_minutes(growing()), 1);
    for number in 0..4 {
        fail(&store, NOW, &one);
        let now = NOW.saturating_add(Nanos::new(number * SECOND));
        let slice = store.decide(now, &one, Mode::Consume).charged_slice;
        store.amend(now, &one, Change::GiveBack { slice });
    }
    let now = NOW.saturating_add(minutes(9));
    fail(&store, now, &one);
    assert_eq!(ban_left(&store, now, &one), Some(minutes(60)));
}

/// P5: what waiting for the end of the ban cannot cure is told so.
#[test]
fn a_ban_tells_the_wait_for_what_outlasts_it() {
    let store = store(16 * MEBIBYTE);
    let one = ask(key(1), five_in_ten_minutes(growing()), 1);
    get_banned(&store, NOW, &one);
    let six = Ask {
        cost: Cost::new(6).expect("small"),
        ..one
    };
    assert_eq!(store.decide(NOW, &six, Mode::Consume).retry_after, None);
    // A debt that is settled during the ban lies in a window that ends after it.
    let settled = NOW.saturating_add(minutes(55));
    store.amend(settled, &six, Change::Charge);
    let refused = store.decide(settled, &one, Mode::Consume);
    assert_eq!(refused.outcome, Outcome::Refuse(Reason::Banned));
    let wait = refused.retry_after.expect("waiting helps");
    assert_eq!((wait, refused.reset_after), (minutes(10), minutes(10)));
    let then = settled.saturating_add(wait);
    assert!(store.decide(then, &one, Mode::Consume).is_allowed());
}

#[test]
fn without_a_ban_failures_do_nothing_but_stay_charged() {
    let store = store(16 * MEBIBYTE);
    let one = Ask {
        rule: Rule {
            ban: None,
            ..five_in_ten_minutes(growing())
        },
        ..ask(key(1), five_in_ten_minutes(growing()), 1)
    };
    get_banned(&store, NOW, &one);
    let refused = store.decide(NOW, &one, Mode::Consume);
    assert_eq!(refused.outcome, Outcome::Refuse(Reason::LimitExceeded));
    assert_eq!(refused.retry_after, Some(minutes(10)));
}

/// One line of the real log-ins: when, from which address, and whether it failed.
struct Login {
    at: Nanos,
    address: String,
    failed: bool,
}

fn logins() -> Option<Vec<Login>> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/data/logins.csv"
    );
    let text = std::fs::read_to_string(path).ok()?;
    let start: Timestamp = "2017-03-27T00:00:00Z".parse().expect("a time");
    let parse = |line: &str| {
        let fields: Vec<_> = line.split(',').collect();
        let at: Timestamp = fields[0].parse().expect("a time");
        let since = u64::try_from(at.as_nanosecond() - start.as_nanosecond());
        Login {
            at: Nanos::new(since.expect("after the start")),
            address: fields[1].to_owned(),
            failed: fields[3] == "failure",
        }
    };
    let mut logins: Vec<_> = text.lines().skip(1).map(parse).collect();
    // Some lines stand a few seconds too late.
    logins.sort_by_key(|login| login.at);
    Some(logins)
}

/// How many failures each banned address had when it was banned first.
fn banned_at(logins: &[Login], rule: Rule) -> BTreeMap<String, u32> {
    let store = store(16 * MEBIBYTE);
    let mut numbers = HashMap::new();
    let mut failures: HashMap<&str, u32> = HashMap::new();
    let mut banned = BTreeMap::new();
    for Login {
        at,
        address,
        failed,
    } in logins
    {
        let next = numbers.len() as u64;
        let number = *numbers.entry(address).or_insert(next);
        let one = ask(key(number), rule, 1);
        let verdict = store.decide(*at, &one, Mode::Consume);
        let count = failures.entry(address).or_default();
        *count += u32::from(*failed);
        if !verdict.is_allowed() {
            let reason = Outcome::Refuse(Reason::Banned);
            assert_eq!(verdict.outcome, reason, "{address}: nothing else refuses");
            continue;
        }
        let slice = verdict.charged_slice;
        let change = if *failed {
            Change::Failure
        } else {
            Change::GiveBack { slice }
        };
        store.amend(*at, &one, change);
        let peek = store.decide(*at, &one, Mode::Peek);
        if peek.outcome == Outcome::Refuse(Reason::Banned) {
            banned.entry(address.clone()).or_insert(*count);
        }
    }
    banned
}

/// The default algorithm and the exact one agree on who is banned.
#[test]
#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
fn real_logins_ban_just_the_guessers() {
    let Some(logins) = logins() else {
        eprintln!("skipped: the data is not there");
        return;
    };
    let window = window(600_000);
    let log = Algorithm::SlidingLog(SlidingLog { limit: 5, window });
    let by_default = Algorithm::SlidingWindow(SlidingWindow {
        limit: 5,
        window,
        slices: 10,
        oldest: OldestSlice::Weighted,
    });
    let ban = Ban {
        length: minutes(60),
        escalation: 1000,
        longest: minutes(24 * 60),
    };
    for algorithm in [log, by_default] {
        let rule = Rule {
            ban: Some(ban),
            ..Rule::new(algorithm)
        };
        let banned = banned_at(&logins, rule);
        assert_eq!(banned.len(), 46, "{algorithm:?}");
        let at_their_fifth = banned.values().filter(|failures| **failures == 5);
        assert_eq!(at_their_fifth.count(), 45, "{algorithm:?}");
        assert_eq!(banned.get("10.0.0.29"), Some(&15), "{algorithm:?}");
        assert_eq!(banned.get("10.0.0.1"), None, "a user who mistypes");
    }
}
