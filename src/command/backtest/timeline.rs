//! Requests over time, admitted and refused, in few equal steps.
//!
//! Must not know of limits. Bound: [`MOST_STEPS`].

use tollgate_limit::Nanos;

/// The most steps of a timeline.
const MOST_STEPS: u64 = 240;
/// Lengths of steps that people read easily, in seconds.
const STEPS: [u64; 19] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
    604_800,
];

/// Counts of equal steps of time.
#[derive(Clone, Debug)]
pub(super) struct Timeline {
    start: Nanos,
    step: Nanos,
    steps: Vec<Step>,
}

/// What came in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// Requests admitted.
    pub(super) admitted: u64,
    /// Requests refused.
    pub(super) refused: u64,
}

impl Timeline {
    /// The steps from the first request to the last one, aligned to the epoch.
    pub(super) fn new(first: Nanos, last: Nanos) -> Self {
        let span = last.saturating_sub(first).as_nanos();
        let fits =
            |seconds: &u64| span / Nanos::from_millis(seconds * 1000).as_nanos() < MOST_STEPS - 1;
        let step = match STEPS.iter().find(|seconds| fits(seconds)) {
            Some(seconds) => Nanos::from_millis(seconds * 1000),
            None => Nanos::new(span.div_ceil(MOST_STEPS - 1)),
        };
        let nanos = step.as_nanos().max(1);
        Self {
            start: Nanos::new(first.as_nanos() / nanos * nanos),
            step,
            steps: Vec::new(),
        }
    }

    /// Counts a request.
    pub(super) fn count(&mut self, now: Nanos, is_admitted: bool) {
        let step = now.saturating_sub(self.start).as_nanos() / self.step.as_nanos().max(1);
        let step = usize::try_from(step.min(MOST_STEPS)).unwrap_or(0);
        if self.steps.len() <= step {
            self.steps.resize(step.saturating_add(1), Step::default());
        }
        if let Some(step) = self.steps.get_mut(step) {
            step.admitted += u64::from(is_admitted);
            step.refused += u64::from(!is_admitted);
        }
    }

    /// When the first step starts.
    pub(super) const fn start(&self) -> Nanos {
        self.start
    }

    /// How long a step is.
    pub(super) const fn step(&self) -> Nanos {
        self.step
    }

    /// The steps up to the last one with a request.
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }
}

#[cfg(test)]
mod tests {
    use tollgate_limit::Nanos;

    use super::{MOST_STEPS, Step, Timeline};

    #[test]
    fn steps_are_aligned_and_hold_everything() {
        let seconds = |seconds: u64| Nanos::from_millis(seconds * 1000);
        let mut timeline = Timeline::new(seconds(86_399), seconds(86_399 + 3600));
        assert_eq!(
            (timeline.start(), timeline.step()),
            (seconds(86_370), seconds(30))
        );
        timeline.count(seconds(86_399), true);
        timeline.count(seconds(86_400), false);
        timeline.count(seconds(86_415), true);
        assert_eq!(timeline.steps().len(), 2);
        let second = Step {
            admitted: 1,
            refused: 1,
        };
        assert_eq!(timeline.steps()[1], second);
    }

    #[test]
    fn any_span_has_few_steps() {
        for (first, last) in [
            (0, 0),
            (7, 7),
            (0, u64::MAX),
            (u64::MAX, u64::MAX),
            (u64::MAX - 1, u64::MAX),
        ] {
            let mut timeline = Timeline::new(Nanos::new(first), Nanos::new(last));
            timeline.count(Nanos::new(first), true);
            timeline.count(Nanos::new(last), false);
            assert!(timeline.steps().len() as u64 <= MOST_STEPS + 1);
            let all: u64 = timeline
                .steps()
                .iter()
                .map(|step| step.admitted + step.refused)
                .sum();
            assert_eq!(all, 2);
        }
    }
}
