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
use tollgate_limit::Nanos;
use tollgate_sim::{
    Report,
    history::History,
    pure::{self, Mode},
    seeds::{self, Summary},
    shipped,
};

/// Violations that are told of one run.
const TOLD: usize = 3;

/// Whole clusters in virtual time, with faults by seed.
#[derive(Clone, Debug, Parser)]
#[command(name = "tollgate-sim")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
struct Arguments {
    /// How many seeds the protocol alone is run with, in each of its two modes.
    #[arg(long = "seeds", default_value_t = 1_000)]
    pure_seeds: u64,
    /// How many seeds shipped nodes are run with: QUIC, gossip and all.
    #[arg(long, default_value_t = 20)]
    quinn_seeds: u64,
    /// Shipped nodes only.
    #[arg(long, conflicts_with = "pure")]
    quinn: bool,
    /// The protocol alone only.
    #[arg(long)]
    pure: bool,
    /// Of the protocol alone: only whether it comes to rest after faults.
    #[arg(long)]
    liveness: bool,
    /// Run just this seed.
    #[arg(long)]
    seed: Option<u64>,
    /// Tell all that was said of this key (with `--seed`).
    #[arg(long, requires = "seed")]
    key: Option<String>,
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
        None => all(&mut out, &arguments)?,
    };
    Ok(if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Whether every promise was kept, on each level that is asked for.
fn all(out: &mut impl Write, arguments: &Arguments) -> io::Result<bool> {
    let mut is_good = true;
    if !arguments.quinn {
        for mode in [Mode::Safety, Mode::Liveness] {
            if mode == Mode::Safety && arguments.liveness {
                continue;
            }
            let name = match mode {
                Mode::Safety => "the protocol, faults at any time",
                Mode::Liveness => "the protocol, faults that stop",
            };
            let run = |seed| Report::of_pure(pure::run(seed, mode));
            is_good &= level(out, arguments, (name, arguments.pure_seeds), run)?;
        }
    }
    if !arguments.pure {
        let level_of = ("shipped nodes", arguments.quinn_seeds);
        is_good &= level(out, arguments, level_of, shipped::run)?;
    }
    Ok(is_good)
}

/// Runs one level and tells what came of it.
fn level(
    out: &mut impl Write,
    arguments: &Arguments,
    (name, seeds): (&str, u64),
    run: impl Fn(u64) -> Report + Sync,
) -> io::Result<bool> {
    let threads = arguments.threads;
    let threads = threads.or_else(|| thread::available_parallelism().ok());
    let threads = threads.unwrap_or(NonZeroUsize::MIN);
    let range = arguments.seed.map_or((0, seeds), |seed| (seed, 1));
    let mut told = Ok(());
    let summary = seeds::run(range, threads, run, |report| {
        if told.is_ok() && !report.is_good() {
            told = failure(out, report);
        }
        if let (Ok(()), Some(key), Some(history)) = (&told, &arguments.key, &report.history) {
            told = tell_key(out, key, history);
        }
    });
    told?;
    summarize(out, name, &summary)?;
    Ok(summary.failed.is_empty())
}

/// What a run broke, and how to see it again.
fn failure(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let seed = report.seed;
    writeln!(out, "seed {seed} FAILED with faults {:?}", report.faults)?;
    for trouble in report.trouble.iter().take(TOLD) {
        writeln!(out, "  {trouble}")?;
    }
    for violation in report.violations.iter().take(TOLD) {
        writeln!(out, "  {violation}")?;
    }
    writeln!(out, "  repeat: {}", report.command)
}

/// All that a history has of a key, in order.
fn tell_key(out: &mut impl Write, key: &str, history: &History) -> io::Result<()> {
    let mut lines = Vec::new();
    for it in history.answers.iter().filter(|it| it.key == key) {
        let at = it.answered.unwrap_or(it.asked);
        let (check, said, cost, by) = (it.check, it.said, it.cost, it.by.as_str());
        let degraded = if it.degraded { " degraded" } else { "" };
        let (asked, entry, node) = (millis(it.asked), &it.entry, &it.node);
        let boot = it.boot.0 % 0x1000;
        lines.push((at, format!("{said:?} {cost}, check {check} asked at {asked} of {entry}, by {by} {node}/{boot:03x}{degraded}")));
    }
    for it in history.amends.iter().filter(|it| it.key == key) {
        lines.push((
            it.asked,
            format!("{:?}, acknowledged {:?}", it.what, it.answered.map(millis)),
        ));
    }
    for it in history.holds.iter().filter(|it| it.key == key) {
        let boot = it.boot.0 % 0x1000;
        lines.push((
            it.since,
            format!("held by {}/{boot:03x} until {}", it.node, millis(it.until)),
        ));
    }
    for fault in &history.faults {
        lines.push((fault.since(), format!("{fault:?}")));
    }
    for change in &history.changes {
        lines.push((*change, "a planned change begins or ends".to_owned()));
    }
    lines.sort_by_key(|(at, _)| *at);
    for (at, line) in lines {
        writeln!(out, "{:>8} {line}", millis(at))?;
    }
    for end in history.ends.iter().filter(|it| it.key == key) {
        writeln!(out, "in the end {} are counted", end.counted)?;
    }
    Ok(())
}

const fn millis(at: Nanos) -> u64 {
    at.as_nanos() / 1_000_000
}

fn summarize(out: &mut impl Write, what: &str, summary: &Summary) -> io::Result<()> {
    let Summary {
        seeds,
        faults,
        checks,
        degraded,
        failed,
        slowest,
        worst,
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
    if let Some(worst) = worst {
        writeln!(out, "  worst over-admission: {worst}")?;
    }
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
