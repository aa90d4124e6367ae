//! Which parts of a line are kept, and a line's parts made into a request.
//!
//! Knows nothing of the forms: each looks up its parts by name, [`Fields::request`] makes sense of them.

use std::borrow::Cow;

use thiserror::Error;
use tollgate_limit::{Cost, MAX_UNITS};

use super::{
    MAX_LINE,
    fitting::fitting,
    request::{Request, joined},
    time::{TimeError, parse_time},
};

/// What times are called where no name is given, in any case.
pub(super) const TIME_NAMES: [&str; 4] = ["time", "timestamp", "ts", "@timestamp"];
/// The most characters of a wrong value that an error repeats.
const MAX_REPEATED: usize = 64;

/// Which parts of a line are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// The wanted attributes.
    pub attributes: Vec<String>,
    /// The column of the time; without one the first of the usual names.
    pub time: Option<String>,
    /// The columns whose sum is the cost; without one the cost is 1.
    pub cost: Vec<String>,
}

/// Why a line is not a request that can be counted. The log's fault.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Fault {
    /// Not a line of an access log.
    #[error("not of the common or combined form of Apache and nginx")]
    NotAnEntry,
    /// Not an object of JSON.
    #[error("not a JSON object: {0}")]
    NotJson(String),
    /// A CSV record of another width than the first line.
    #[error("has {found} columns, the first line has {wanted}")]
    Width {
        /// How many it has.
        found: usize,
        /// How many it should have.
        wanted: usize,
    },
    /// A CSV record that is too long.
    #[error("longer than {MAX_LINE} bytes or of too many columns; is a quote not closed?")]
    TooLong,
    /// No time.
    #[error("has no `{name}`")]
    Absent {
        /// What is missing.
        name: String,
    },
    /// A wrong time.
    #[error(transparent)]
    Time(#[from] TimeError),
    /// A wrong cost.
    #[error("{name}: {text:?} is not a whole number from 0 to 2^53")]
    Cost {
        /// The column.
        name: String,
        /// What stands there, cut off.
        text: String,
    },
    /// A sum of costs that is too large.
    #[error("the costs must be at most 2^53 in sum")]
    CostTooLarge,
}

impl Fields {
    /// The cost's columns and the time's, if they are named.
    pub(super) fn named(&self) -> impl Iterator<Item = &str> {
        self.time.iter().chain(&self.cost).map(String::as_str)
    }

    /// Makes a request of a line's parts.
    pub(super) fn request<'a>(
        &self,
        line: u64,
        time: &str,
        part: impl Fn(&str) -> Option<Cow<'a, str>>,
    ) -> Result<Request, Fault> {
        let cost = self.cost_of(&part)?;
        let values = self.attributes.iter().map(|name| {
            part(name).map_or(Cow::Borrowed(""), |value| match value {
                Cow::Borrowed(value) => fitting(value),
                Cow::Owned(value) => Cow::Owned(fitting(&value).into_owned()),
            })
        });
        Ok(Request::new(parse_time(time)?, line, cost, joined(values)))
    }

    fn cost_of<'a>(&self, part: impl Fn(&str) -> Option<Cow<'a, str>>) -> Result<Cost, Fault> {
        if self.cost.is_empty() {
            return Ok(Cost::ONE);
        }
        let mut sum = 0_u64;
        for name in &self.cost {
            let text = part(name).ok_or_else(|| Fault::Absent { name: name.clone() })?;
            let units: Option<u64> = text.trim().parse().ok();
            let units = units
                .filter(|units| *units <= MAX_UNITS)
                .ok_or_else(|| Fault::Cost {
                    name: name.clone(),
                    text: text.chars().take(MAX_REPEATED).collect(),
                })?;
            sum = sum.saturating_add(units);
        }
        Cost::new(sum).map_err(|_too_large| Fault::CostTooLarge)
    }
}

/// Whether a name is one that times have.
pub(super) fn is_time(name: &str) -> bool {
    TIME_NAMES
        .iter()
        .any(|known| known.eq_ignore_ascii_case(name))
}
