//! One request of a log, as little of it as is counted with.

use tollgate_limit::{Cost, Nanos};

/// What stands between two values: values have no control characters.
const BETWEEN: char = '\n';

/// One request of a log: when, what it costs, and the values of the wanted attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// When, since 1970.
    pub time: Nanos,
    /// The line of the log, from 1; of a CSV record the first.
    pub line: u64,
    /// What it costs.
    pub cost: Cost,
    values: Box<str>,
}

impl Request {
    /// Bytes of a request beside its values.
    pub const FIXED_BYTES: usize = size_of::<Self>();

    /// A request whose values are joined as [`Request::joined`] gives them.
    #[must_use]
    pub fn new(time: Nanos, line: u64, cost: Cost, values: Box<str>) -> Self {
        Self {
            time,
            line,
            cost,
            values,
        }
    }

    /// The values of the wanted attributes, in their order; an absent one is empty.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.values.split(BETWEEN)
    }

    /// All values as one text without control characters but those between them.
    #[must_use]
    pub const fn joined(&self) -> &str {
        &self.values
    }
}

/// Joins values that have no control characters.
pub(super) fn joined(values: impl IntoIterator<Item = impl AsRef<str>>) -> Box<str> {
    let mut text = String::new();
    for (at, value) in values.into_iter().enumerate() {
        if at > 0 {
            text.push(BETWEEN);
        }
        text.push_str(value.as_ref());
    }
    text.into()
}
