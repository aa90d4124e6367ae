//! The commands: each takes its arguments and returns how the program exits.

mod answers;
mod backtest;
mod bench;
mod certs;
mod check;
mod dev;
mod files;
mod health;
mod node;
mod policies;
mod replay;
mod status;

use std::{io, process::ExitCode};

use thiserror::Error;

use crate::{
    arguments::{CertsCommand, Command, PoliciesCommand},
    config::ConfigError,
};

/// How the program exits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: done, admitted, healthy.
    Done,
    /// 1: a refusal, or a check of health that failed.
    Refused,
    /// 2: wrong arguments or configuration, or a check that was not answered.
    Usage,
    /// 3: what was asked for is right, and failed.
    Runtime,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Refused => 1,
            Exit::Usage => 2,
            Exit::Runtime => 3,
        })
    }
}

/// Why a command could not do its work.
#[derive(Debug, Error)]
pub enum Failure {
    /// The configuration is wrong. The operator's fault.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The arguments, or the files that they name, are wrong. The caller's fault.
    #[error("{0}")]
    Usage(String),
    /// A check was not answered; what it asked may have been counted.
    #[error("{0}")]
    Unanswered(String),
    /// What was asked for failed: the system's fault, a peer's or a bug.
    #[error("{0}")]
    Runtime(String),
    /// The program's output is gone.
    #[error("the output cannot be written: {0}")]
    Output(#[from] io::Error),
}

impl Failure {
    /// How the program exits after this.
    #[must_use]
    pub const fn exit(&self) -> Exit {
        match self {
            Self::Config(_) | Self::Usage(_) | Self::Unanswered(_) => Exit::Usage,
            Self::Runtime(_) | Self::Output(_) => Exit::Runtime,
        }
    }
}

/// Runs one command.
///
/// # Errors
/// [`Failure`] says whose fault it is.
pub fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Dev(arguments) => on_runtime(dev::run(arguments)),
        Command::Node(arguments) => node::run(&arguments),
        Command::Check(arguments) => on_runtime(check::run(arguments)),
        Command::Replay(arguments) => on_runtime(replay::run(arguments)),
        Command::Backtest(arguments) => on_runtime(backtest::run(arguments)),
        Command::Bench(arguments) => on_runtime(bench::run(arguments)),
        Command::Status(arguments) => on_runtime(status::run(arguments)),
        Command::Health(arguments) => on_runtime(health::run(arguments)),
        Command::Certs(CertsCommand::Init(arguments)) => certs::init(&arguments),
        Command::Certs(CertsCommand::Issue(arguments)) => certs::issue(&arguments),
        Command::Policies(PoliciesCommand::Check(arguments)) => policies::check(&arguments),
    }
}

/// Runs what waits for nodes on one thread: none of it computes.
fn on_runtime(work: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| Failure::Runtime(format!("cannot start: {error}")))?;
    runtime.block_on(work)
}
