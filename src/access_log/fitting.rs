//! Values of a log as values of attributes.

use std::borrow::Cow;

use tollgate_limit::MAX_VALUE_LENGTH;

/// A value that an attribute can have: control characters replaced, the end cut off where it is too long.
pub(super) fn fitting(value: &str) -> Cow<'_, str> {
    let cut = value
        .get(..value.floor_char_boundary(MAX_VALUE_LENGTH))
        .unwrap_or_default();
    if cut.chars().any(char::is_control) {
        let replaced = cut.chars().map(|it| if it.is_control() { '?' } else { it });
        return Cow::Owned(replaced.collect());
    }
    Cow::Borrowed(cut)
}
