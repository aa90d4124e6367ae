//! Brings what a request holds into the bounds of a check.
//!
//! A node calls a check with an over-long value faulty, and a request whose check is faulty passes:
//! whoever sends the request could so escape each limit. Invariant: different values stay different.

use std::{borrow::Cow, hash::Hasher as _};

use siphasher::sip128::{Hasher128 as _, SipHasher13};
use tollgate_limit::{MAX_UNITS, MAX_VALUE_LENGTH};

use crate::{Check, Pairs, Subject};

/// Bytes of a hash with its marks: `~`, 32 digits, `~`.
const HASH_LENGTH: usize = 34;
/// Bytes that are kept at each end of a value.
const KEPT: usize = (MAX_VALUE_LENGTH - HASH_LENGTH) / 2;

/// Brings cost and values into their bounds; a check in them is left as it is.
pub(super) fn fit(check: &mut Check<'_>) {
    check.cost = check.cost.min(MAX_UNITS);
    match &mut check.subject {
        Subject::Policy { attributes, .. } => fit_values(attributes),
        Subject::Inline { key, .. } => fit_values(key),
    }
}

fn fit_values(pairs: &mut Pairs<'_>) {
    if pairs.iter().all(|(_, value)| fits(value)) {
        return;
    }
    let all = std::mem::take(pairs).into_iter();
    *pairs = all
        .map(|(name, value)| {
            let value = if fits(&value) {
                value
            } else {
                shortened(&value).into()
            };
            (name, value)
        })
        .collect();
}

fn fits(value: &str) -> bool {
    value.len() <= MAX_VALUE_LENGTH && !value.chars().any(char::is_control)
}

/// Beginning, hash and end of a value, without its control characters.
fn shortened(value: &str) -> String {
    let hash = hash(value.as_bytes());
    let legal: String = value.chars().filter(|it| !it.is_control()).collect();
    let head_end = legal.floor_char_boundary(KEPT);
    let tail_start = legal.ceil_char_boundary(legal.len().saturating_sub(KEPT).max(head_end));
    let head = legal.get(..head_end).unwrap_or_default();
    let tail = legal.get(tail_start..).unwrap_or_default();
    format!("{head}~{hash:032x}~{tail}")
}

/// The text of a header's bytes; where they are none, what there is of it, and their hash.
pub(super) fn text(bytes: &[u8]) -> Cow<'_, str> {
    match String::from_utf8_lossy(bytes) {
        text @ Cow::Borrowed(_) => text,
        Cow::Owned(text) => format!("{text}~{:032x}", hash(bytes)).into(),
    }
}

/// The same on every node and in every release; it keeps no secret.
fn hash(bytes: &[u8]) -> u128 {
    let mut hasher = SipHasher13::new();
    hasher.write(bytes);
    hasher.finish128().as_u128()
}
