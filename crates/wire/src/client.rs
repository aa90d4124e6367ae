//! What clients and nodes say to each other (ALPN `tollgate/1`): a check, and its answer.
//!
//! Names and values are borrowed from the frame. Any number of streams per connection, any number of
//! checks in flight on each; answers come in any order.

mod answer;
mod check;
mod fault;
mod pairs;

pub use self::{
    answer::{Algorithm, Answer, LimitAnswer, put_decision, read_answer},
    check::{Check, InlineLimit, Subject, put_check, read_check},
    fault::{Fault, FaultKind, put_fault},
    pairs::Pairs,
};
