//! What the simulator promises, on bare quinn: runs that repeat, and faults that strike.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test code: a failure is the test's"
)]

mod credentials;
mod faults;
mod mesh;
mod repeats;
