//! Tests of the wire: golden bytes, round trips, hostile input, and the encoding's version.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

mod answer;
mod golden;
mod hostile;
mod lock;
mod receipt;
mod round_trip;
mod samples;
