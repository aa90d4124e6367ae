//! Notices that this process did not run for a while.
//!
//! A process that was stopped (a signal, a sleeping laptop, a starved container) wakes with frames in
//! its buffers that were sent before or while it slept. Their senders have long answered their
//! clients by other means, so counting such a check would count it twice. The frame itself cannot
//! tell: its time budget is a span, and the span starts when the frame is read. Only the gap in a
//! steady heartbeat tells. Since the buffers are read in many batches after the pause, and the
//! heartbeat may beat before the last of them, all batches of one check deadline after the pause
//! count as late: what reaches the node after that was sent after the wake-up, or is dropped by its
//! sender's own deadline.
//!
//! INV-LATE-COUNTS-NOTHING: a batch for which [`PauseWatch::is_late`] says yes must be answered "too
//! late" and change no counter. Every batch asks, so asking is two atomic loads. Knows nothing of timers.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_limit::Nanos;

use crate::sabotage::{self, Sabotage};

/// How often to call [`PauseWatch::beat`].
pub const HEARTBEAT: Nanos = Nanos::from_millis(10);

/// A pause that was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The time between the two beats around it.
    pub length: Nanos,
}

/// The heartbeat of one process or thread. Shared by reference: one beats, many ask.
#[derive(Debug)]
pub struct PauseWatch {
    longest_gap: u64,
    drain: Nanos,
    last_beat: AtomicU64,
    late_until: AtomicU64,
}

impl PauseWatch {
    /// Starts watching. A gap longer than `check_deadline` is a pause, and for as long after it
    /// everything is late.
    #[must_use]
    pub const fn new(now: Nanos, check_deadline: Nanos) -> Self {
        Self {
            longest_gap: check_deadline.as_nanos(),
            drain: check_deadline,
            last_beat: AtomicU64::new(now.as_nanos()),
            late_until: AtomicU64::new(0),
        }
    }

    /// The heart beats: says whether there was a pause before. Call it every [`HEARTBEAT`] from one
    /// place.
    pub fn beat(&self, now: Nanos) -> Option<Pause> {
        let length = self.gap(now);
        let paused = length > self.longest_gap;
        if paused {
            // Before the beat is stored, so that nobody sees the new beat without the mark.
            let late_until = now.saturating_add(self.drain).as_nanos();
            self.late_until.fetch_max(late_until, Ordering::Release);
        }
        self.last_beat.fetch_max(now.as_nanos(), Ordering::Release);
        paused.then_some(Pause {
            length: Nanos::new(length),
        })
    }

    /// Whether what is handled at `now` may have waited through a pause.
    #[must_use]
    pub fn is_late(&self, now: Nanos) -> bool {
        if sabotage::is(Sabotage::PausedNodeCounts) {
            return false;
        }
        // The beat is loaded first: see `beat`.
        self.gap(now) > self.longest_gap || now.as_nanos() < self.late_until.load(Ordering::Acquire)
    }

    fn gap(&self, now: Nanos) -> u64 {
        let last_beat = self.last_beat.load(Ordering::Acquire);
        now.as_nanos().saturating_sub(last_beat)
    }
}

#[cfg(test)]
mod tests {
    use tollgate_limit::Nanos;

    use super::{Pause, PauseWatch};

    const fn at(millis: u64) -> Nanos {
        Nanos::from_millis(millis)
    }

    const DEADLINE: Nanos = at(50);

    #[test]
    fn a_steady_heart_is_never_late() {
        let watch = PauseWatch::new(at(1_000), DEADLINE);
        for beat in 1..100 {
            let now = at(1_000 + beat * 10);
            assert!(!watch.is_late(now));
            assert_eq!(watch.beat(now), None);
        }
        assert!(
            !watch.is_late(at(1_990 + 50)),
            "the deadline itself is in time"
        );
    }

    #[test]
    fn a_batch_read_before_the_first_beat_is_late() {
        let watch = PauseWatch::new(at(0), DEADLINE);
        assert!(watch.is_late(at(51)));
    }

    #[test]
    fn batches_of_one_deadline_after_the_pause_are_late() {
        let watch = PauseWatch::new(at(0), DEADLINE);
        let pause = Pause { length: at(5_000) };
        assert_eq!(watch.beat(at(5_000)), Some(pause));
        assert!(watch.is_late(at(5_000)));
        for beat in [5_010, 5_020, 5_030, 5_040] {
            assert_eq!(watch.beat(at(beat)), None, "one pause is told once");
        }
        assert!(watch.is_late(at(5_049)));
        assert!(!watch.is_late(at(5_050)));
    }

    #[test]
    fn a_clock_that_goes_back_is_no_pause() {
        let watch = PauseWatch::new(at(100), DEADLINE);
        assert_eq!(watch.beat(at(20)), None);
        assert!(!watch.is_late(at(110)));
        assert_eq!(watch.beat(at(110)), None);
    }

    #[cfg(feature = "sabotage")]
    #[test]
    fn it_can_be_made_not_to_notice() {
        use crate::sabotage::{Sabotage, set};
        let watch = PauseWatch::new(at(0), DEADLINE);
        set(Some(Sabotage::PausedNodeCounts));
        assert!(!watch.is_late(at(5_000)));
        set(None);
        assert!(watch.is_late(at(5_000)));
    }
}
