//! Histories just inside and just outside of each promise.

use tollgate_limit::{
    Algorithm, Alignment, DecidedBy, FixedWindow, Nanos, NodeId, OldestSlice, Reason, Rule,
    SlidingLog, SlidingWindow, TokenBucket, Window,
};
use tollgate_wire::identity::BootId;

use super::{Violation, check};
use crate::history::{Amend, Amended, Answer, End, Fault, Held, History, Said, Terms};

const TERMS: Terms = Terms {
    deadline: at(50),
    slack: at(1),
    longest_delay: at(2),
    recovery: at(3_000),
    unix_origin: Nanos::ZERO,
};

const fn at(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

fn node(number: u64) -> NodeId {
    NodeId::new(&format!("n{number}")).unwrap()
}

fn window(millis: u64) -> Window {
    Window::new(at(millis)).unwrap()
}

fn log(limit: u64, millis: u64) -> Rule {
    Rule::new(Algorithm::SlidingLog(SlidingLog {
        limit,
        window: window(millis),
    }))
}

fn slices(limit: u64, millis: u64, oldest: OldestSlice) -> Rule {
    Rule::new(Algorithm::SlidingWindow(SlidingWindow {
        limit,
        window: window(millis),
        slices: 10,
        oldest,
    }))
}

/// A history of one key, told step by step.
struct Story(History);

impl Story {
    fn of(rule: Rule) -> Self {
        let mut history = History::new(TERMS);
        history.rules.insert("k".into(), rule);
        Self(history)
    }

    /// A check that node `decider` admitted, 1 ms after it was asked; told 1 ms later.
    fn answer(mut self, millis: u64, cost: u64, decider: u64) -> Self {
        self.0.answers.push(Answer {
            check: u64::try_from(self.0.answers.len()).unwrap(),
            key: "k".into(),
            cost,
            entry: node(9),
            asked: at(millis - 1),
            answered: Some(at(millis + 1)),
            decided: Some(at(millis)),
            said: Said::Admitted,
            by: DecidedBy::Owner,
            node: node(decider),
            boot: BootId(decider),
            degraded: false,
        });
        self
    }

    fn admit(self, millis: u64, cost: u64) -> Self {
        self.answer(millis, cost, 1)
    }

    fn refuse(self, millis: u64, cost: u64) -> Self {
        self.admit(millis, cost)
            .but(|answer| answer.said = Said::Refused(Reason::LimitExceeded))
    }

    fn but(mut self, change: impl FnOnce(&mut Answer)) -> Self {
        change(self.0.answers.last_mut().unwrap());
        self
    }

    fn amend(mut self, what: Amended, asked: u64, answered: u64) -> Self {
        self.0.amends.push(Amend {
            key: "k".into(),
            what,
            asked: at(asked),
            answered: Some(at(answered)),
        });
        self
    }

    fn refund(self, of: u64, units: u64, asked: u64) -> Self {
        let what = Amended::Refund {
            units,
            of: Some(of),
        };
        self.amend(what, asked, asked + 1)
    }

    fn fault(mut self, fault: Fault) -> Self {
        self.0.faults.push(fault);
        self
    }

    fn crash(self, number: u64, millis: u64) -> Self {
        self.fault(Fault::Crash {
            node: node(number),
            boot: BootId(number),
            at: at(millis),
        })
    }

    fn cut(self, from: u64, to: u64, since: u64, until: u64) -> Self {
        self.fault(Fault::Cut {
            from: node(from),
            to: node(to),
            since: at(since),
            until: at(until),
        })
    }

    fn accused(self, number: u64, since: u64, until: u64) -> Self {
        self.fault(Fault::Accused {
            node: node(number),
            since: at(since),
            until: at(until),
        })
    }

    fn held(mut self, number: u64, since: u64, until: u64) -> Self {
        self.0.holds.push(Held {
            key: "k".into(),
            node: node(number),
            boot: BootId(number),
            since: at(since),
            until: at(until),
        });
        self
    }

    fn end(mut self, counted: u64) -> Self {
        self.0.ends.push(End {
            key: "k".into(),
            counted,
        });
        self
    }

    fn broken(&self) -> Vec<Violation> {
        check(&self.0)
    }

    #[track_caller]
    fn keeps(self) {
        assert_eq!(self.broken(), []);
    }

    #[track_caller]
    fn breaks(self, expected: fn(&Violation) -> bool) {
        let broken = self.broken();
        assert!(broken.iter().any(expected), "{broken:?}");
    }
}

fn too_many(violation: &Violation) -> bool {
    matches!(violation, Violation::TooMany { .. })
}

#[test]
fn a_log_holds_its_limit_in_any_window() {
    let story = || Story::of(log(3, 1_000)).admit(1_000, 2).admit(1_500, 1);
    story().admit(2_000, 2).keeps();
    story().admit(1_999, 1).breaks(too_many);
    story().admit(2_499, 1).admit(2_501, 1).keeps();
    story().admit(2_000, 2).admit(2_001, 1).breaks(too_many);
}

#[test]
fn a_hard_window_holds_its_limit_and_a_soft_one_less_than_twice() {
    let hard = || Story::of(slices(10, 10_000, OldestSlice::Full)).admit(10_000, 10);
    hard().admit(20_000, 10).keeps();
    hard().admit(19_999, 1).breaks(too_many);
    let soft = || Story::of(slices(10, 10_000, OldestSlice::Weighted)).admit(10_000, 10);
    soft().admit(19_000, 9).keeps();
    soft().admit(18_999, 1).breaks(too_many);
    soft().admit(19_000, 10).breaks(too_many);
}

#[test]
fn a_fixed_window_holds_its_limit_between_its_edges() {
    let rule = Rule::new(Algorithm::FixedWindow(FixedWindow {
        limit: 5,
        alignment: Alignment::Epoch(window(1_000)),
    }));
    let story = || Story::of(rule).admit(999, 5);
    story().admit(1_000, 5).keeps();
    story().admit(998, 1).breaks(too_many);
    story().admit(1_000, 5).admit(1_999, 1).breaks(too_many);
}

#[test]
fn a_bucket_holds_its_burst_and_what_flows_out() {
    let rule = Rule::new(Algorithm::TokenBucket(TokenBucket {
        limit: 10,
        window: window(1_000),
        burst: 5,
    }));
    let story = || Story::of(rule).admit(1_000, 5);
    story().admit(1_100, 1).admit(1_200, 1).keeps();
    story().admit(1_100, 2).breaks(too_many);
    story().admit(1_100, 1).admit(1_199, 2).breaks(too_many);
}

#[test]
fn an_unknown_instant_counts_in_windows_that_hold_all_of_it() {
    let long = |answer: &mut Answer| {
        answer.decided = None;
        answer.asked = at(1_500);
        answer.answered = Some(at(1_540));
    };
    let story = || Story::of(log(1, 1_000)).admit(1_540, 1).but(long);
    story().admit(2_510, 1).keeps();
    story().admit(2_499, 1).breaks(too_many);
}

#[test]
fn what_was_given_back_counts_no_more() {
    let story = || Story::of(log(3, 10_000)).admit(1_000, 3);
    story().refund(0, 2, 2_000).admit(3_000, 2).keeps();
    story().refund(0, 2, 2_000).admit(3_000, 3).breaks(too_many);
    story().refund(0, 2, 3_001).admit(3_000, 2).breaks(too_many);
    story()
        .amend(Amended::Reset, 2_000, 2_010)
        .admit(3_000, 3)
        .keeps();
    story()
        .amend(Amended::Reset, 2_000, 2_010)
        .admit(3_000, 3)
        .admit(4_000, 1)
        .breaks(too_many);
}

#[test]
fn a_refund_frees_no_later_window() {
    let story = Story::of(log(3, 1_000)).admit(1_000, 3).refund(0, 3, 1_500);
    story.admit(2_100, 3).admit(2_200, 1).breaks(too_many);
}

/// A standby has not told its charge yet, or a crash has lost it: who gives it back takes another's.
#[test]
fn a_refund_of_what_is_not_known_frees_what_others_charged() {
    let story = || Story::of(log(3, 1_000)).admit(1_000, 3);
    let by_standby = || story().but(|it| it.by = DecidedBy::Standby);
    let refunded = |story: Story| story.refund(0, 3, 1_500).admit(2_100, 3);
    refunded(by_standby()).admit(2_200, 3).keeps();
    refunded(by_standby()).admit(2_200, 4).breaks(too_many);
    // Long before the window it took what has left.
    refunded(by_standby()).admit(2_600, 1).breaks(too_many);
    let boot = BootId(1);
    let crashed = |story: Story, at: u64| story.but(|it| it.boot = boot).crash(1, at);
    refunded(crashed(story(), 1_400)).admit(2_200, 3).keeps();
    // A crash after it was done changes nothing.
    refunded(crashed(story(), 2_900))
        .admit(2_200, 1)
        .breaks(too_many);
}

/// Who holds a key again was asked before too, and need not have told who took it for dead.
#[test]
fn what_was_admitted_before_an_interruption_may_be_untold() {
    let story = |until: u64| {
        Story::of(log(3, 1_000))
            .held(1, 0, 1_400)
            .held(1, 1_410, until)
            .held(2, 1_500, 9_000)
            .answer(1_350, 3, 1)
            .answer(1_600, 3, 2)
    };
    story(1_800).accused(1, 1_300, 2_000).keeps();
    // Had nobody taken it for dead it would have told all.
    story(1_495).breaks(too_many);
}

/// Who was to hold it in between was taken for dead, and the last word went to that one.
#[test]
fn what_was_told_to_one_that_is_gone_may_be_untold() {
    let story = |since: u64| {
        Story::of(log(3, 1_000))
            .held(1, 0, 1_400)
            .held(2, since, 9_000)
            .answer(1_350, 3, 1)
            .answer(1_600, 3, 2)
    };
    story(1_500).accused(3, 1_300, 2_000).keeps();
    // Without a fault, or handed over at once, the next knows all.
    story(1_500).breaks(too_many);
    story(1_405).accused(3, 1_300, 2_000).breaks(too_many);
    // Who was taken for dead itself has no last word.
    story(1_405).accused(1, 1_300, 2_000).keeps();
}

#[test]
fn degraded_answers_come_on_top_and_switched_ones_do_not_count() {
    let story = || Story::of(log(3, 1_000)).admit(1_000, 3);
    story().admit(1_100, 2).but(|it| it.degraded = true).keeps();
    story()
        .admit(1_100, 9)
        .but(|it| it.by = DecidedBy::Switch)
        .keeps();
    story()
        .admit(1_100, 2)
        .but(|it| it.degraded = true)
        .admit(1_200, 1)
        .breaks(too_many);
}

/// 64 of a limit are at stake: 2 that were not urgent yet, and all of the last 7 ms.
#[test]
fn a_crash_loses_what_was_not_sent() {
    let story = || {
        Story::of(log(64, 60_000))
            .admit(10_000, 62)
            .held(1, 0, 10_995)
    };
    let taken = |story: Story, lost: u64| {
        let story = story.crash(1, 10_995).held(2, 10_995, 99_000);
        (0..lost).fold(story, |story, _| story.answer(14_000, 1, 2))
    };
    taken(story().admit(10_900, 2), 2).keeps();
    taken(story().admit(10_900, 2), 3).breaks(too_many);
    // Nothing in the last 257 ms: all of it was sent.
    taken(story().admit(10_700, 2), 1).breaks(too_many);
    // A burst just before it: two, and the burst.
    let burst = || {
        Story::of(log(64, 60_000))
            .admit(10_000, 50)
            .held(1, 0, 10_995)
    };
    taken(burst().admit(10_900, 5).admit(10_990, 9), 2 + 9).keeps();
    taken(burst().admit(10_900, 5).admit(10_990, 9), 2 + 10).breaks(too_many);
}

#[test]
fn a_second_crash_may_lose_all() {
    let story = Story::of(log(10, 60_000))
        .admit(10_000, 10)
        .crash(1, 11_000);
    let story = story
        .held(1, 0, 11_000)
        .held(2, 11_000, 12_000)
        .crash(2, 12_000);
    story.held(3, 12_000, 99_000).answer(15_000, 10, 3).keeps();
}

#[test]
fn owners_at_once_come_on_top() {
    let story = || {
        Story::of(log(10, 60_000))
            .held(1, 0, 20_000)
            .held(2, 15_000, 90_000)
    };
    let cut = |story: Story| story.cut(1, 2, 12_000, 20_000);
    cut(story()).admit(13_000, 4).answer(16_000, 10, 2).keeps();
    // Before the cut it was told.
    cut(story())
        .admit(11_000, 4)
        .answer(16_000, 10, 2)
        .breaks(too_many);
    // And one alone never admits more than its limit.
    cut(story())
        .answer(16_000, 10, 2)
        .answer(17_000, 1, 2)
        .breaks(too_many);
}

#[test]
fn every_check_is_answered_in_time() {
    let late = |violation: &Violation| matches!(violation, Violation::Late { .. });
    let story = |answered: Option<u64>| {
        Story::of(log(3, 1_000))
            .admit(1_001, 1)
            .but(|answer| answer.answered = answered.map(at))
    };
    story(Some(1_051)).keeps();
    story(Some(1_052)).breaks(late);
    story(None).breaks(late);
    story(None).crash(9, 1_020).keeps();
    story(None).crash(8, 1_020).breaks(late);
}

fn refused(violation: &Violation) -> bool {
    matches!(violation, Violation::RefusedThoughItFits { .. })
}

#[test]
fn nothing_is_refused_that_fits() {
    let story = || Story::of(log(3, 1_000)).admit(1_000, 2);
    story().refuse(1_500, 2).keeps();
    story().refuse(1_500, 1).breaks(refused);
    story().refuse(2_001, 2).breaks(refused);
    let soft = || Story::of(slices(3, 1_000, OldestSlice::Full)).admit(1_000, 3);
    soft().refuse(2_099, 1).keeps();
    soft().refuse(2_101, 1).breaks(refused);
    let given = |it: &mut Answer| it.said = Said::Given;
    story().admit(1_001, 1).but(given).refuse(1_400, 1).keeps();
    let long = || {
        Story::of(log(3, 9_000))
            .admit(1_000, 2)
            .admit(1_001, 1)
            .but(given)
    };
    long().refuse(2_002, 1).breaks(refused);
}

#[test]
fn a_bucket_refuses_nothing_that_fits() {
    let rule = Rule::new(Algorithm::TokenBucket(TokenBucket {
        limit: 10,
        window: window(1_000),
        burst: 5,
    }));
    let story = || Story::of(rule).admit(1_000, 5);
    story().refuse(1_199, 2).keeps();
    story().refuse(1_200, 2).breaks(refused);
}

#[test]
fn a_refund_is_in_force_within_a_second() {
    let story = || {
        Story::of(log(3, 60_000))
            .admit(1_000, 3)
            .refund(0, 2, 2_000)
    };
    story().refuse(3_001, 2).keeps();
    story().refuse(3_002, 2).breaks(refused);
    let reset = || {
        Story::of(log(3, 60_000))
            .admit(1_000, 3)
            .amend(Amended::Reset, 2_000, 2_001)
    };
    reset().refuse(3_001, 2).keeps();
    reset().refuse(3_002, 2).breaks(refused);
}

fn lost(violation: &Violation) -> bool {
    matches!(violation, Violation::Lost { .. })
}

fn invented(violation: &Violation) -> bool {
    matches!(violation, Violation::Invented { .. })
}

#[test]
fn what_is_counted_at_the_end_is_what_was_admitted() {
    let story = || {
        Story::of(log(100, 600_000))
            .admit(10_000, 7)
            .admit(11_000, 3)
    };
    story().end(10).keeps();
    story().end(9).breaks(lost);
    story().end(11).breaks(invented);
    story().refund(0, 4, 12_000).end(6).keeps();
    story().refund(0, 4, 12_000).end(7).breaks(invented);
    story().refund(0, 4, 12_000).end(5).breaks(lost);
    let given = |it: &mut Answer| it.said = Said::Given;
    story().admit(12_000, 1).but(given).end(10).keeps();
    story().admit(12_000, 1).but(given).end(11).breaks(invented);
}

#[test]
fn the_end_may_miss_what_a_crash_lost_and_hold_what_nobody_knows() {
    let story = || {
        Story::of(log(64, 600_000))
            .admit(10_000, 20)
            .admit(10_950, 3)
    };
    let crash = |story: Story| story.held(1, 0, 11_000).crash(1, 11_000);
    crash(story()).end(21).keeps();
    crash(story()).end(20).breaks(lost);
    let nothing = |it: &mut Answer| it.said = Said::Nothing;
    crash(story()).admit(10_990, 5).but(nothing).end(28).keeps();
    crash(story())
        .admit(10_800, 5)
        .but(nothing)
        .end(27)
        .breaks(invented);
    let paused = Fault::Pause {
        node: node(1),
        since: at(10_940),
        until: at(12_000),
    };
    story().fault(paused).end(24).breaks(invented);
    story().cut(9, 1, 10_940, 12_000).end(26).keeps();
    story().cut(9, 1, 10_940, 12_000).end(27).breaks(invented);
}

#[test]
fn without_a_fault_there_is_one_owner() {
    let two = |violation: &Violation| matches!(violation, Violation::TwoOwners { .. });
    let story = |since| {
        Story::of(log(3, 1_000))
            .held(1, 0, 9_000)
            .held(2, since, 20_000)
    };
    story(9_000).keeps();
    story(8_999).breaks(two);
    story(8_999).cut(1, 2, 5_000, 6_000).keeps();
    story(8_999).cut(1, 2, 5_000, 5_900).breaks(two);
}

#[test]
fn only_an_owner_decides_as_one() {
    let none = |violation: &Violation| matches!(violation, Violation::NoOwner { .. });
    let story = |millis| {
        Story::of(log(3, 1_000))
            .held(1, 1_000, 2_000)
            .admit(millis, 1)
    };
    story(1_000).keeps();
    story(999).breaks(none);
    story(2_001).breaks(none);
    story(999).but(|it| it.degraded = true).keeps();
}

#[test]
fn a_standby_asks_the_owner_if_it_can() {
    let needless = |violation: &Violation| matches!(violation, Violation::NeedlessStandby { .. });
    let story = || {
        let story = Story::of(log(3, 1_000))
            .held(1, 0, 90_000)
            .answer(20_000, 1, 2);
        story.but(|it| it.by = DecidedBy::Standby)
    };
    story().breaks(needless);
    story().cut(9, 1, 19_000, 25_000).breaks(needless);
    story().cut(2, 1, 19_000, 25_000).keeps();
    story().cut(1, 2, 12_000, 17_000).keeps();
    story().cut(1, 2, 12_000, 16_999).breaks(needless);
    story().but(|it| it.degraded = true).keeps();
}
