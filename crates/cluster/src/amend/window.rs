//! The owner's side: tells an amendment from its repetition, and says the same of both.

/// How many sequence numbers back an amendment is still told from its repetition.
pub const AMEND_WINDOW: usize = 1_024;

/// What to do with an amendment. All but the refused are acknowledged, so that the sender stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// It is new: do it.
    Fresh,
    /// It was done before: change nothing.
    Repeated,
    /// It was refused, now or before: change nothing and say so again. What was refused is never done
    /// later, since its sender gives it to another owner by then.
    Refused,
    /// It is out of the window and may have been done before: change nothing.
    TooOld,
}

/// The amendments of one link, as a window of bits that slides with the highest number, as
/// security protocols have one against replays.
///
/// INV-GIVEN-BACK-ONCE: a sequence number is `Fresh` at most once, whatever the order, and never once it
/// was `Refused`.
#[derive(Clone, Debug)]
pub struct AmendWindow {
    /// One above the highest number seen.
    next: u64,
    /// Bit n modulo the window says whether n was seen, for the numbers of the window below `next`.
    seen: [u64; WORDS],
    /// Of those seen the ones that were refused.
    refused: [u64; WORDS],
}

impl AmendWindow {
    /// No amendment yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            next: 0,
            seen: [0; WORDS],
            refused: [0; WORDS],
        }
    }

    /// An amendment has come that can be done here.
    pub fn accept(&mut self, sequence: u64) -> Acceptance {
        self.enter(sequence, Acceptance::Fresh)
    }

    /// One has come for a slot that is not this node's.
    pub fn refuse(&mut self, sequence: u64) -> Acceptance {
        self.enter(sequence, Acceptance::Refused)
    }

    /// One that was accepted could not be done after all: it is as if it had been refused.
    pub fn take_back(&mut self, sequence: u64) {
        if let Some((seen, refused, bit)) = self.place(sequence) {
            *seen |= bit;
            *refused |= bit;
        }
    }

    fn enter(&mut self, sequence: u64, as_new: Acceptance) -> Acceptance {
        if sequence < self.next.saturating_sub(WINDOW) || sequence == u64::MAX {
            return Acceptance::TooOld;
        }
        self.slide_over(sequence);
        let Some((seen, refused, bit)) = self.place(sequence) else {
            return Acceptance::TooOld;
        };
        if *seen & bit == 0 {
            *seen |= bit;
            if as_new == Acceptance::Refused {
                *refused |= bit;
            }
            return as_new;
        }
        if *refused & bit == 0 {
            Acceptance::Repeated
        } else {
            Acceptance::Refused
        }
    }

    /// Makes a number part of the window; the numbers that come in with it are not seen.
    fn slide_over(&mut self, sequence: u64) {
        if sequence < self.next {
            return;
        }
        let first_new = self.next.max(sequence.saturating_sub(WINDOW));
        for new in first_new..=sequence {
            if let Some((seen, refused, bit)) = self.place(new) {
                *seen &= !bit;
                *refused &= !bit;
            }
        }
        self.next = sequence.saturating_add(1);
    }

    /// The words of a number among those seen and refused, and its bit in them.
    fn place(&mut self, sequence: u64) -> Option<(&mut u64, &mut u64, u64)> {
        let within = usize::try_from(sequence % WINDOW).ok()?;
        let seen = self.seen.get_mut(within / BITS)?;
        let refused = self.refused.get_mut(within / BITS)?;
        let bit = 1_u64.rotate_left(u32::try_from(within % BITS).ok()?);
        Some((seen, refused, bit))
    }
}

const BITS: usize = 64;
const WORDS: usize = AMEND_WINDOW / BITS;
const WINDOW: u64 = 1_024;

impl Default for AmendWindow {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::{AMEND_WINDOW, Acceptance, AmendWindow, WINDOW};

    #[test]
    fn each_number_is_fresh_once() {
        let mut window = AmendWindow::new();
        for sequence in [0, 1, 5, 3, 1_023, 1_024, 4] {
            assert_eq!(window.accept(sequence), Acceptance::Fresh, "{sequence}");
            assert_eq!(window.accept(sequence), Acceptance::Repeated, "{sequence}");
        }
        assert_eq!(u64::try_from(AMEND_WINDOW), Ok(WINDOW));
    }

    #[test]
    fn what_was_refused_is_never_done() {
        let mut window = AmendWindow::new();
        assert_eq!(window.refuse(3), Acceptance::Refused);
        assert_eq!(window.accept(3), Acceptance::Refused);
        assert_eq!(window.accept(4), Acceptance::Fresh);
        assert_eq!(window.refuse(4), Acceptance::Repeated, "it was done");
        assert_eq!(window.accept(3 + WINDOW), Acceptance::Fresh);
        assert_eq!(window.refuse(3), Acceptance::TooOld);
    }

    #[test]
    fn what_is_out_of_the_window_is_too_old() {
        let mut window = AmendWindow::new();
        assert_eq!(window.accept(5_000), Acceptance::Fresh);
        assert_eq!(window.accept(5_001 - WINDOW), Acceptance::Fresh);
        assert_eq!(window.accept(5_000 - WINDOW), Acceptance::TooOld);
        assert_eq!(window.accept(0), Acceptance::TooOld);
        assert_eq!(window.accept(u64::MAX), Acceptance::TooOld);
        assert_eq!(window.accept(u64::MAX - 1), Acceptance::Fresh);
        assert_eq!(window.accept(5_000), Acceptance::TooOld);
    }

    #[test]
    fn a_jump_forgets_all_that_it_passes() {
        for jump in [1, 1_000, WINDOW, WINDOW + 1, 5 * WINDOW] {
            let mut window = AmendWindow::new();
            assert!((0..WINDOW).all(|sequence| window.accept(sequence) == Acceptance::Fresh));
            let highest = WINDOW - 1 + jump;
            assert_eq!(window.accept(highest), Acceptance::Fresh);
            let new = highest.saturating_sub(WINDOW - 1).max(WINDOW)..highest;
            for sequence in new {
                assert_eq!(
                    window.accept(sequence),
                    Acceptance::Fresh,
                    "{sequence} after {jump}"
                );
            }
        }
    }

    proptest! {
        /// INV-GIVEN-BACK-ONCE, and nothing in the window is refused.
        #[test]
        fn it_behaves_as_a_set(steps in prop::collection::vec((0_u64..1_500, 0_u64..1_200), 1..400)) {
            let mut window = AmendWindow::new();
            let (mut seen, mut highest) = (BTreeSet::new(), 0);
            for (forward, back) in steps {
                let sequence = (highest + forward / 100).saturating_sub(back);
                let expected = if sequence + WINDOW <= highest && !seen.is_empty() {
                    Acceptance::TooOld
                } else if seen.insert(sequence) {
                    Acceptance::Fresh
                } else {
                    Acceptance::Repeated
                };
                prop_assert_eq!(window.accept(sequence), expected);
                highest = highest.max(sequence);
            }
        }
    }
}
