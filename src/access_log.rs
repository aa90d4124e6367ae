//! Logs of requests: access logs of Apache and nginx, JSON lines, CSV.
//!
//! [`Lines`] and [`Entry`] read an access log line by line; [`Log`] reads all three forms into
//! [`Request`]s that keep the wanted attributes alone. Must not know of checks, limits or counters.
//!
//! Invariants: a line of any content is read or refused with a reason, never a panic; a line and a CSV
//! record take at most [`MAX_LINE`] bytes of memory, and the last of a longer one is not looked at.

mod csv_records;
mod entry;
mod fields;
mod fitting;
mod form;
mod json_line;
mod lines;
mod log;
mod request;
mod time;

pub use self::{
    entry::Entry,
    fields::{Fault, Fields},
    form::Form,
    lines::Lines,
    log::{Log, OpenError, Reading},
    request::Request,
    time::{TimeError, parse_time},
};

/// The longest line of a log, in bytes; what comes behind is cut off. Of CSV the longest record, a longer
/// one is refused.
pub const MAX_LINE: usize = 64 << 10;
