//! A rule: the algorithm and the numbers that decide, all that an owner must know of a limit.
//!
//! Knows nothing of names, keys or policies. Invariant: a `Rule` that exists can be computed with:
//! every bound of rule 9 was checked when it was made.

use crate::units::Window;

/// An algorithm and its numbers, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Counters of slices of the window.
    SlidingWindow(SlidingWindow),
}

impl Rule {
    /// The most that the limit can ever admit at once.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        match self {
            Self::SlidingWindow(rule) => rule.limit,
        }
    }

    /// The window that the limit counts over.
    #[must_use]
    pub const fn window(&self) -> Window {
        match self {
            Self::SlidingWindow(rule) => rule.window,
        }
    }

    /// The algorithm's name in files, answers and keys.
    #[must_use]
    pub const fn algorithm(&self) -> &'static str {
        match self {
            Self::SlidingWindow(_) => "sliding-window",
        }
    }
}

/// The numbers of a sliding window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlidingWindow {
    /// Units for each window, 0 (a block) to [`MAX_UNITS`](crate::MAX_UNITS).
    pub limit: u64,
    /// The window.
    pub window: Window,
    /// Slices of the window, 1 to [`MAX_SLICES`].
    pub slices: u8,
    /// How the oldest slice counts.
    pub oldest: OldestSlice,
}

/// The most slices of a window.
pub const MAX_SLICES: u8 = 60;

/// How the slice counts that lies only partly in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OldestSlice {
    /// By its remaining part: at most L in any W(1 - 1/slices). `hard = false`.
    Weighted,
    /// In full: at most L in any W. `hard = true`, needs two slices at least.
    Full,
}
