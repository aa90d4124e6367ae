//! What the simulator promises, on bare quinn and on whole clusters: runs that repeat, and faults that
//! strike. And what a cluster promises under such faults.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test code: a failure is the test's"
)]

mod actions;
mod agreement;
mod amends;
mod asking;
mod cluster;
mod credentials;
mod decided_once;
mod faults;
mod late;
mod mesh;
mod next_owner;
mod repeats;
mod returns;
mod runs;
mod survival;
mod tokens;
