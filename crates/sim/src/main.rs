//! Runs the simulator over many seeds; fails if a promise was broken.
//!
//! Each failure is told with the one command that repeats it.

use std::{
    io::{self, Write},
    num::NonZeroUsize,
    process::ExitCode,
    thread,
};

use clap::Parser;
use tollgate_sim::{
    Report,
    seeds::{self, Summary},
    shipped,
};

/// Violations that are told of one run.
const TOLD: usize = 3;

/// Whole clusters in virtual time, with faults by seed.
#[derive(Clone, Debug, Parser)]
#[command(name = "tollgate-sim")]
struct Arguments {
    /// How many seeds shipped nodes are run with: QUIC, gossip and all.
    #[arg(long, default_value_t = 20)]
    quinn_seeds: u64,
    /// Shipped nodes only.
    #[arg(long, conflicts_with = "pure")]
    quinn: bool,
    /// The protocol alone only.
    #[arg(long)]
    pure: bool,
    /// Run just this seed.
    #[arg(long)]
    seed: Option<u64>,
    /// Threads; each runs one seed at a time. All cores unless told.
    #[arg(long)]
    threads: Option<NonZeroUsize>,
    /// Instead: start so many nodes, and kill a part of them at once.
    #[arg(long, value_parser = clap::value_parser!(u8).range(3..=200))]
    nodes: Option<u8>,
    /// How many of a hundred are killed.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u8).range(1..=90))]
    kill: u8,
}

fn main() -> io::Result<ExitCode> {
    let arguments = Arguments::parse();
    let mut out = io::stdout();
    let is_good = match arguments.nodes {
        Some(nodes) => kill(&mut out, nodes, &arguments)?,
        None => quinn(&mut out, &arguments)?,
    };
    Ok(if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn quinn(out: &mut impl Write, arguments: &Arguments) -> io::Result<bool> {
    let threads = arguments.threads;
    let threads = threads.or_else(|| thread::available_parallelism().ok());
    let threads = threads.unwrap_or(NonZeroUsize::MIN);
    let range = arguments
        .seed
        .map_or((0, arguments.quinn_seeds), |seed| (seed, 1));
    let mut told = Ok(());
    let summary = seeds::run(range, threads, shipped::run, |report| {
        if told.is_ok() && !report.is_good() {
            told = failure(out, "--quinn", report);
        }
    });
    told?;
    summarize(out, "shipped nodes", &summary)?;
    Ok(summary.failed.is_empty())
}

/// What a run broke, and how to see it again.
fn failure(out: &mut impl Write, level: &str, report: &Report) -> io::Result<()> {
    let seed = report.seed;
    writeln!(out, "seed {seed} FAILED with faults {:?}", report.faults)?;
    for trouble in report.trouble.iter().take(TOLD) {
        writeln!(out, "  {trouble}")?;
    }
    for violation in report.violations.iter().take(TOLD) {
        writeln!(out, "  {violation}")?;
    }
    writeln!(
        out,
        "  repeat: cargo run -p tollgate-sim --release -- {level} --seed {seed}"
    )
}

fn summarize(out: &mut impl Write, what: &str, summary: &Summary) -> io::Result<()> {
    let Summary {
        seeds,
        faults,
        checks,
        degraded,
        failed,
        slowest,
    } = summary;
    writeln!(
        out,
        "{what}: {seeds} seeds, {checks} checks, {degraded} answered degraded"
    )?;
    writeln!(out, "  faults and changes:")?;
    for (kind, count) in faults {
        writeln!(out, "    {count:>6} {kind}")?;
    }
    writeln!(
        out,
        "  longest from the last fault to one placement: {slowest:?}"
    )?;
    writeln!(out, "  seeds that broke a promise: {}", failed.len())
}

fn kill(out: &mut impl Write, nodes: u8, arguments: &Arguments) -> io::Result<bool> {
    let bound = shipped::agreement_bound(nodes);
    match shipped::kill(arguments.seed.unwrap_or(0), nodes, arguments.kill) {
        Ok(killed) => {
            writeln!(
                out,
                "{nodes} nodes formed a cluster within {:?}; {} died at once; the others agreed on \
                 who is left {:?} later (bound: {bound:?}); {} datagrams",
                killed.formed, killed.killed, killed.agreed, killed.datagrams
            )?;
            Ok(killed.agreed <= bound)
        }
        Err(trouble) => {
            writeln!(out, "{trouble}")?;
            Ok(false)
        }
    }
}
