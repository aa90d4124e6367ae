//! A check as a client sends it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{InlineLimit, Pairs};
use crate::codec::{self, CodecError};

/// A check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check<'a> {
    /// What is asked about.
    #[serde(borrow)]
    pub subject: Subject<'a>,
    /// What it costs.
    pub cost: u64,
    /// Asks without consuming.
    pub peek: bool,
}

/// What a check asks about; grows at the end only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Subject<'a> {
    /// A configured policy.
    Policy {
        /// Its name.
        #[serde(borrow)]
        name: Cow<'a, str>,
        /// What is known of the request.
        #[serde(borrow)]
        attributes: Pairs<'a>,
    },
    /// A limit that comes with the check.
    Inline {
        /// The limit.
        #[serde(borrow)]
        limit: InlineLimit<'a>,
        /// The key's attributes.
        #[serde(borrow)]
        key: Pairs<'a>,
    },
}

/// Appends a check to a body.
///
/// # Errors
/// [`CodecError::TooLarge`] with more attributes than [`MAX_ATTRIBUTES`](tollgate_limit::MAX_ATTRIBUTES),
/// or if it does not fit into a frame.
#[inline]
pub fn put_check(body: &mut Vec<u8>, check: &Check<'_>) -> Result<(), CodecError> {
    super::put_bounded(body, &RawRequest::Check(check))
}

/// Reads a check. Whether its numbers are in range is for the node to say.
///
/// # Errors
/// [`CodecError`]: the client's fault.
#[inline]
pub fn read_check(mut body: &[u8]) -> Result<Check<'_>, CodecError> {
    let ReadRequest::Check(check) = codec::take(&mut body)?;
    codec::end(body)?;
    Ok(check)
}

/// What a client says; grows at the end only.
#[derive(Serialize)]
enum RawRequest<'c, 'a> {
    Check(&'c Check<'a>),
}

/// The same, as it is read.
#[derive(Deserialize)]
enum ReadRequest<'a> {
    Check(#[serde(borrow)] Check<'a>),
}
