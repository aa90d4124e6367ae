//! Log lines that are not told again for a minute. Knows nothing of what is told.

use tollgate_limit::Nanos;

/// How long a line is not told again.
pub(super) const QUIET: Nanos = Nanos::from_millis(60_000);

/// Whether one line is due.
#[derive(Debug, Default)]
pub(super) struct OnceAMinute {
    last: Option<Nanos>,
}

impl OnceAMinute {
    /// `true` at first and again [`QUIET`] after it was last `true`.
    pub(super) fn is_due(&mut self, now: Nanos) -> bool {
        let quiet = self
            .last
            .is_some_and(|last| now.saturating_sub(last) < QUIET);
        if !quiet {
            self.last = Some(now);
        }
        !quiet
    }
}

#[cfg(test)]
mod tests {
    use tollgate_limit::Nanos;

    use super::OnceAMinute;

    #[test]
    fn it_is_due_at_once_and_then_once_a_minute() {
        let mut line = OnceAMinute::default();
        let due: Vec<u64> = (5..=130)
            .filter(|second| line.is_due(Nanos::from_millis(second * 1_000)))
            .collect();
        assert_eq!(due, [5, 65, 125]);
    }
}
