//! The command line.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};

use tollgate_bench::load::Volume;

/// Measures Tollgate beside a bare hyper server and a bare quinn echo.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) bench: BenchOptions,
    #[command(subcommand)]
    pub(crate) role: Option<Role>,
}

/// How to measure.
#[derive(Clone, Debug, Args)]
pub(crate) struct BenchOptions {
    /// The `tollgate` program, unless it stands beside this one
    #[arg(long)]
    pub(crate) program: Option<PathBuf>,
    /// What to measure
    #[arg(long, value_enum, default_value_t = Scope::All)]
    pub(crate) scope: Scope,
    /// Rounds; each measures every server once, and medians are over rounds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) rounds: u8,
    /// Seconds of load on each server in each round
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=60))]
    pub(crate) seconds: u8,
    /// One short round: shows that everything works, measures nothing
    #[arg(long)]
    pub(crate) smoke: bool,
    /// The report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    /// The program beside the yardsticks
    All,
    /// The yardsticks alone
    Yardsticks,
}

/// What this process is, if not the bench.
#[derive(Debug, Subcommand)]
pub(crate) enum Role {
    /// A bare hyper server that reads the body and gives a canned answer
    YardstickHttp(YardstickHttpOptions),
    /// A bare quinn server that answers each frame with one of fixed length
    YardstickQuic(YardstickQuicOptions),
}

/// What the HTTP yardstick answers.
#[derive(Debug, Args)]
pub(crate) struct YardstickHttpOptions {
    /// A file with the head and body of the answer
    #[arg(long)]
    pub(crate) answer: PathBuf,
}

/// What the QUIC yardstick answers.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct YardstickQuicOptions {
    /// Bytes of an answer's body
    #[arg(long, value_parser = clap::value_parser!(u16))]
    pub(crate) answer_bytes: u16,
}

impl BenchOptions {
    /// Rounds to do.
    pub(crate) fn rounds(&self) -> u8 {
        if self.smoke { 1 } else { self.rounds }
    }

    /// Load on each server in each round.
    pub(crate) fn volume(&self) -> Volume {
        if self.smoke {
            Volume::Requests(3000)
        } else {
            Volume::For(Duration::from_secs(self.seconds.into()))
        }
    }

    /// Load before it that is not counted.
    pub(crate) fn warm_up(&self) -> Volume {
        if self.smoke {
            Volume::Requests(500)
        } else {
            Volume::For(Duration::from_millis(300))
        }
    }
}
