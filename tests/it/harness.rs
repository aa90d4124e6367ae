//! Real clusters for tests: `tollgate dev` as a child process, killed when dropped.

mod dev;
mod node;
mod processes;
mod traffic;
mod wait;

pub(crate) use self::{
    dev::{Dev, DevOptions, PATIENT, is_node},
    node::{Answered, Node},
    processes::{Signal, resident_bytes, send_signal},
    traffic::{Asked, Traffic},
    wait::{now, until},
};

use std::process::{Command, Output};

/// The program under test.
pub(crate) fn tollgate() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tollgate"))
}

/// Runs the program to its end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    tollgate().args(arguments).output().unwrap()
}

/// What a program printed.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
