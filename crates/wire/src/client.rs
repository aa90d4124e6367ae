//! What clients and nodes say to each other (ALPN `tollgate/1`): a check, and its answer.
//!
//! Names and values are borrowed from the frame. Any number of streams per connection, any number of
//! checks in flight on each; answers come in any order.

mod answer;
mod check;
mod fault;
mod inline;
mod pairs;

use serde::Serialize;
pub use tollgate_limit::{CalendarUnit, Fallback};

pub use self::{
    answer::{Algorithm, Answer, LimitAnswer, put_decision, read_answer},
    check::{Check, Subject, put_check, read_check},
    fault::{Fault, FaultKind, put_fault},
    inline::{InlineAlgorithm, InlineLimit},
    pairs::Pairs,
};
use crate::{
    codec::{self, CodecError},
    frame::{HEADER_LENGTH, MAX_CLIENT_FRAME},
};

/// Appends a value that must fit into a client's frame.
#[inline]
fn put_bounded<T: Serialize>(body: &mut Vec<u8>, value: &T) -> Result<(), CodecError> {
    let before = body.len();
    codec::put(body, value)?;
    if body.len().saturating_sub(before) > MAX_CLIENT_FRAME - HEADER_LENGTH {
        return Err(CodecError::TooLarge);
    }
    Ok(())
}
