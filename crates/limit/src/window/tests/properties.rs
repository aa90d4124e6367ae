//! Properties of the sliding window, against a model that keeps every charge.

use proptest::prelude::*;

use super::{Counter, rule};
use crate::{
    rule::{OldestSlice, SlidingWindow},
    units::{Cost, MAX_UNITS, Nanos, Window},
    verdict::{Mode, Outcome},
    window::give_back,
};

/// Every charge, and the definition taken word for word.
#[derive(Default)]
struct Model {
    charges: Vec<(u64, u64)>,
    latest: u64,
}

impl Model {
    fn used(&self, rule: &SlidingWindow, now: u64) -> u128 {
        let width = u128::from(width_of(rule));
        let now = u128::from(now.max(self.latest));
        let slices = u128::from(rule.slices);
        let (mut whole, mut oldest) = (0_u128, 0_u128);
        for &(instant, cost) in &self.charges {
            let age = now / width - u128::from(instant) / width;
            if age < slices {
                whole += u128::from(cost);
            } else if age == slices {
                oldest += u128::from(cost);
            }
        }
        let part = match rule.oldest {
            OldestSlice::Full => oldest,
            OldestSlice::Weighted => (oldest * (width - now % width)).div_ceil(width),
        };
        whole + part
    }

    fn admits(&self, rule: &SlidingWindow, now: u64, cost: u64) -> bool {
        self.used(rule, now) + u128::from(cost) <= u128::from(rule.limit)
    }

    fn charge(&mut self, now: u64, cost: u64) {
        self.latest = self.latest.max(now);
        self.charges.push((self.latest, cost));
    }
}

fn width_of(rule: &SlidingWindow) -> u64 {
    rule.window
        .span()
        .as_nanos()
        .div_ceil(u64::from(rule.slices))
}

/// A step of the clock in parts of a slice or as is, and a cost.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    step: Step,
    cost: u64,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Forward { thousandths_of_slice: u64 },
    ToEdge { slices: u64, before: bool },
    Back { nanos: u64 },
}

impl Step {
    fn from(self, now: u64, width: u64) -> u64 {
        match self {
            Self::Forward {
                thousandths_of_slice,
            } => now + width * thousandths_of_slice / 1000,
            Self::ToEdge { slices, before } => {
                let edge = (now / width + slices) * width - u64::from(before);
                edge.max(now)
            }
            Self::Back { nanos } => now.saturating_sub(nanos),
        }
    }
}

fn arrivals(clock: Clock) -> impl Strategy<Value = Vec<Arrival>> {
    let back = match clock {
        Clock::Forward => 0,
        Clock::AnyWay => 1,
    };
    let step = prop_oneof![
        6 => (0_u64..2500).prop_map(|thousandths_of_slice| Step::Forward { thousandths_of_slice }),
        2 => (1_u64..14, any::<bool>())
            .prop_map(|(slices, before)| Step::ToEdge { slices, before }),
        back => (0_u64..3_000_000).prop_map(|nanos| Step::Back { nanos }),
    ];
    let cost = prop_oneof![3 => Just(1_u64), 2 => 1_u64..8];
    let arrival = (step, cost).prop_map(|(step, cost)| Arrival { step, cost });
    prop::collection::vec(arrival, 1..120)
}

#[derive(Clone, Copy)]
enum Clock {
    Forward,
    AnyWay,
}

fn small_rule(oldest: OldestSlice) -> impl Strategy<Value = SlidingWindow> {
    let slices = 1_u8..13;
    (1_u64..25, 1_000_000_u64..1_000_400, slices).prop_map(move |(limit, window, slices)| {
        let fewest = match oldest {
            OldestSlice::Weighted => 1,
            OldestSlice::Full => 2,
        };
        rule(limit, window, slices.max(fewest), oldest)
    })
}

fn any_small_rule() -> impl Strategy<Value = SlidingWindow> {
    prop_oneof![
        small_rule(OldestSlice::Weighted),
        small_rule(OldestSlice::Full)
    ]
}

/// Runs arrivals and gives back what was admitted and when.
fn run(rule: SlidingWindow, arrivals: &[Arrival]) -> Vec<(u64, u64)> {
    let mut counter = Counter::new(rule);
    let mut now = 5_000_000;
    let mut admitted = Vec::new();
    for arrival in arrivals {
        now = arrival.step.from(now, width_of(&rule));
        if counter.consume(now, arrival.cost).is_allowed() {
            admitted.push((now, arrival.cost));
        }
    }
    admitted
}

/// The most that lies in a closed window of that length, ending at any admission.
fn most_within(admitted: &[(u64, u64)], length: u64) -> u64 {
    let ends = admitted.iter().map(|(instant, _)| *instant);
    let within = |end: u64| {
        let inside = admitted
            .iter()
            .filter(|(instant, _)| *instant <= end && *instant >= end.saturating_sub(length));
        inside.map(|(_, cost)| cost).sum()
    };
    ends.map(within).max().unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// P1: at most L in any window, the closed one of length W included.
    #[test]
    fn hard_never_exceeds_its_limit_in_any_window(
        rule in small_rule(OldestSlice::Full),
        arrivals in arrivals(Clock::Forward),
    ) {
        let admitted = run(rule, &arrivals);
        let most = most_within(&admitted, rule.window.span().as_nanos());
        prop_assert!(most <= rule.limit, "{most} of {}", rule.limit);
    }

    #[test]
    fn soft_never_exceeds_its_limit_in_all_but_one_slice(
        rule in small_rule(OldestSlice::Weighted),
        arrivals in arrivals(Clock::Forward),
    ) {
        let admitted = run(rule, &arrivals);
        let window = rule.window.span().as_nanos();
        if rule.slices >= 2 {
            let length = window - window.div_ceil(u64::from(rule.slices));
            let most = most_within(&admitted, length);
            prop_assert!(most <= rule.limit, "{most} of {}", rule.limit);
        }
        prop_assert!(most_within(&admitted, window) <= 2 * rule.limit);
    }

    /// P9: what fits is admitted, what does not is not, to the unit; also with a clock that goes back.
    #[test]
    fn verdicts_are_those_of_the_model(
        rule in any_small_rule(),
        arrivals in arrivals(Clock::AnyWay),
    ) {
        let mut counter = Counter::new(rule);
        let mut model = Model::default();
        let mut now = 5_000_000;
        for arrival in arrivals {
            now = arrival.step.from(now, width_of(&rule));
            let fits = model.admits(&rule, now, arrival.cost);
            let before = counter.clone();
            let verdict = counter.consume(now, arrival.cost);
            prop_assert_eq!(verdict.is_allowed(), fits);
            if fits {
                model.charge(now, arrival.cost);
            } else {
                prop_assert_eq!(&counter, &before, "P4: a refusal changes nothing");
            }
            let used = model.used(&rule, now);
            prop_assert_eq!(u128::from(verdict.used), used);
            prop_assert_eq!(verdict.remaining, rule.limit.saturating_sub(verdict.used));
        }
    }

    /// P5: after the wait the same cost is admitted, and not a nanosecond before.
    #[test]
    fn waits_are_exact(
        rule in any_small_rule(),
        arrivals in arrivals(Clock::AnyWay),
    ) {
        let mut counter = Counter::new(rule);
        let mut now = 5_000_000;
        for arrival in arrivals {
            now = arrival.step.from(now, width_of(&rule));
            let verdict = counter.consume(now, arrival.cost);
            if arrival.cost > rule.limit {
                prop_assert_eq!(verdict.retry_after, None);
                continue;
            }
            let wait = verdict.retry_after.expect("waiting helps").as_nanos();
            prop_assert!(counter.peek(now + wait, arrival.cost).is_allowed());
            let told = now + Nanos::new(wait).ceil_millis() * 1_000_000;
            prop_assert!(counter.peek(told, arrival.cost).is_allowed());
            if wait > 0 {
                prop_assert!(!counter.peek(now + wait - 1, arrival.cost).is_allowed());
                prop_assert!(!counter.peek(told - 1_000_000, arrival.cost).is_allowed());
            }
            let more = verdict.more_after.as_nanos();
            let reset = verdict.reset_after.as_nanos();
            prop_assert_eq!(counter.used(now + reset), 0);
            if verdict.used > 0 {
                prop_assert!(counter.used(now + more) < verdict.used);
                prop_assert_eq!(counter.used(now + more - 1), verdict.used);
                prop_assert!(counter.used(now + reset - 1) > 0);
            } else {
                prop_assert_eq!((more, reset), (0, 0));
            }
        }
    }

    #[test]
    fn raising_a_limit_never_refuses(
        rule in any_small_rule(),
        arrivals in arrivals(Clock::AnyWay),
        raise in 0_u64..100,
    ) {
        let mut counter = Counter::new(rule);
        let mut now = 5_000_000;
        for arrival in arrivals {
            now = arrival.step.from(now, width_of(&rule));
            let mut raised = counter.clone();
            raised.rule.limit += raise;
            let asked = counter.consume(now, arrival.cost);
            let with_more = raised.peek(now, arrival.cost);
            prop_assert!(with_more.is_allowed() || !asked.is_allowed());
        }
    }

    #[test]
    fn a_clock_that_goes_back_changes_nothing(
        rule in any_small_rule(),
        arrivals in arrivals(Clock::AnyWay),
        back in 0_u64..5_000_000,
        cost in 1_u64..8,
    ) {
        let mut counter = Counter::new(rule);
        let mut now = 5_000_000;
        for arrival in arrivals {
            now = arrival.step.from(now, width_of(&rule));
            counter.consume(now, arrival.cost);
        }
        let mut straight = counter.clone();
        let latest = counter.latest.as_nanos();
        let expected = straight.consume(latest, cost);
        let verdict = counter.consume(latest - back.min(latest), cost);
        prop_assert_eq!(verdict.outcome, expected.outcome);
        prop_assert_eq!(verdict.used, expected.used);
        prop_assert_eq!(verdict.remaining, expected.remaining);
        prop_assert_eq!(verdict.charged_slice, expected.charged_slice);
        prop_assert_eq!(counter, straight);
    }
}

fn wide_rule() -> impl Strategy<Value = SlidingWindow> {
    let limit = prop_oneof![0..=MAX_UNITS, 0_u64..100, Just(MAX_UNITS), Just(0)];
    let (shortest, longest) = (Window::MIN.as_nanos(), Window::MAX.as_nanos());
    let window = prop_oneof![shortest..=longest, Just(shortest), Just(longest)];
    let oldest = prop_oneof![Just(OldestSlice::Weighted), Just(OldestSlice::Full)];
    let fields = (limit, window, 1_u8..=60, oldest);
    fields.prop_map(|(limit, window, slices, oldest)| rule(limit, window, slices, oldest))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    /// P9 and P5 for limits, windows and costs of any size: nothing is rounded the wrong way.
    #[test]
    fn large_numbers_follow_the_model(
        rule in wide_rule(),
        arrivals in prop::collection::vec((0_u64..2500, 0_u64..600), 1..12),
    ) {
        let part = |whole: u64, thousandths: u64| {
            (u128::from(whole) * u128::from(thousandths) / 1000) as u64
        };
        let mut counter = Counter::new(rule);
        let mut model = Model::default();
        let mut now = 0;
        for (step, cost) in arrivals {
            now += part(width_of(&rule), step);
            let cost = part(rule.limit, cost).max(1);
            let fits = model.admits(&rule, now, cost);
            let verdict = counter.consume(now, cost);
            prop_assert_eq!(verdict.is_allowed(), fits);
            if fits {
                model.charge(now, cost);
            }
            prop_assert_eq!(u128::from(verdict.used), model.used(&rule, now));
            if let Some(wait) = verdict.retry_after.map(Nanos::as_nanos) {
                prop_assert!(model.admits(&rule, now + wait, cost));
                prop_assert!(wait == 0 || !model.admits(&rule, now + wait - 1, cost));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100_000))]

    /// Rule 9: whatever the numbers, nothing overflows and `0 <= remaining <= capacity`. The debug
    /// build of the tests checks every operator.
    #[test]
    fn any_numbers_work(
        rule in wide_rule(),
        asks in prop::collection::vec(
            (
                prop_oneof![any::<u64>(), 0..=Window::MAX.as_nanos(), Just(u64::MAX), Just(0)],
                prop_oneof![0..=MAX_UNITS, Just(MAX_UNITS), 0_u64..100],
                any::<bool>(),
            ),
            1..6,
        ),
        limit_later in prop_oneof![0..=MAX_UNITS, 0_u64..100],
    ) {
        let mut counter = Counter::new(rule);
        for (now, cost, peeks) in asks {
            let mode = if peeks { Mode::Peek } else { Mode::Consume };
            let verdict = counter.ask(now, cost, mode);
            prop_assert!(verdict.remaining <= counter.rule.limit);
            let never = cost > counter.rule.limit;
            prop_assert_eq!(verdict.retry_after.is_none(), never);
            prop_assert!(!never || verdict.outcome != Outcome::Allow);
            let cost = Cost::new(cost).expect("a cost in its bounds");
            counter.rule.limit = limit_later;
            let slice = verdict.charged_slice;
            let Counter { rule, words, latest } = &mut counter;
            give_back(rule, words, *latest, Nanos::new(now), (slice, cost));
        }
    }
}
