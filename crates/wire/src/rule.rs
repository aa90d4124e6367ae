//! A rule on the wire: checked again when it is read, so that no peer and no client can send one that
//! the counters cannot compute with.

use serde::{Deserialize, Serialize};
use tollgate_limit::{MAX_SLICES, MAX_UNITS, Nanos, OldestSlice, Rule, SlidingWindow, Window};

use crate::codec::CodecError;

/// The bytes of a [`Rule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RawRule {
    SlidingWindow {
        limit: u64,
        window_nanos: u64,
        slices: u8,
        hard: bool,
    },
}

impl From<&Rule> for RawRule {
    fn from(rule: &Rule) -> Self {
        match rule {
            Rule::SlidingWindow(rule) => Self::SlidingWindow {
                limit: rule.limit,
                window_nanos: rule.window.span().as_nanos(),
                slices: rule.slices,
                hard: rule.oldest == OldestSlice::Full,
            },
        }
    }
}

impl TryFrom<RawRule> for Rule {
    type Error = CodecError;

    fn try_from(raw: RawRule) -> Result<Self, CodecError> {
        let RawRule::SlidingWindow {
            limit,
            window_nanos,
            slices,
            hard,
        } = raw;
        let window = Window::new(Nanos::new(window_nanos)).ok_or(CodecError::Malformed)?;
        let fits = limit <= MAX_UNITS && (1..=MAX_SLICES).contains(&slices);
        if !fits || (hard && slices < 2) {
            return Err(CodecError::Malformed);
        }
        let oldest = if hard {
            OldestSlice::Full
        } else {
            OldestSlice::Weighted
        };
        Ok(Self::SlidingWindow(SlidingWindow {
            limit,
            window,
            slices,
            oldest,
        }))
    }
}
