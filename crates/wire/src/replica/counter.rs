//! Counters on the wire: which of a key's, with the numbers of its algorithm, checked as those of a rule.

use serde::{Deserialize, Serialize};
use tollgate_limit::{Algorithm, Counter};

use crate::{codec::CodecError, rule::RawAlgorithm};

/// The bytes of a [`Counter`]; grows at the end only.
#[derive(Serialize, Deserialize)]
pub(super) enum RawCounter<'a> {
    Charges(#[serde(borrow)] RawAlgorithm<'a>),
    Failures(#[serde(borrow)] RawAlgorithm<'a>),
    Ban,
}

impl From<&Counter> for RawCounter<'static> {
    fn from(counter: &Counter) -> Self {
        match counter {
            Counter::Charges(algorithm) => Self::Charges(RawAlgorithm::of(algorithm, None)),
            Counter::Failures(algorithm) => Self::Failures(RawAlgorithm::of(algorithm, None)),
            Counter::Ban => Self::Ban,
        }
    }
}

impl TryFrom<RawCounter<'_>> for Counter {
    type Error = CodecError;

    fn try_from(raw: RawCounter<'_>) -> Result<Self, CodecError> {
        Ok(match raw {
            RawCounter::Charges(raw) => Self::Charges(algorithm(raw)?),
            RawCounter::Failures(raw) => Self::Failures(algorithm(raw)?),
            RawCounter::Ban => Self::Ban,
        })
    }
}

/// A counter has no ceiling of its own: the series notes it.
fn algorithm(raw: RawAlgorithm<'_>) -> Result<Algorithm, CodecError> {
    if raw.ceiling().is_some() {
        return Err(CodecError::Malformed);
    }
    raw.try_into()
}
