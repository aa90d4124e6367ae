//! What needs the whole program: real processes, real sockets, and the files of the repository.
//!
//! One binary, so that the program is linked once. Every wait is for a condition, with a deadline.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod backtest;
mod broken_frames;
mod broken_input;
mod calls;
mod command_line;
mod configuration;
mod death;
mod dev;
mod exact;
mod harness;
mod nginx;
mod owner;
mod policy_file;
mod pressure;
mod reload;
mod survival;
mod tidy;
