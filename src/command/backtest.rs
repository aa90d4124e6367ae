//! `tollgate backtest`: a log against the limits of a file, in virtual time and on no cluster.
//!
//! The log is read and put in order, each request is one check of each policy at the time that the log
//! says, and what the limits said is reported. Bounds: the parts' own; nothing grows with the log but the
//! temporary files of the sort.

mod engine;
mod peaks;
mod reading;
mod refused;
mod report;
mod sort;
mod tally;
mod timeline;

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tollgate_limit::HashKey;

use self::{
    engine::{Engine, Plans},
    reading::{Ordered, ReadError},
    report::Report,
    sort::SortBounds,
};
use super::{Exit, Failure};
use crate::{
    access_log::{Fields, Log},
    arguments::BacktestArguments,
    config::PolicyFile,
    output, progress,
};

/// Requests between two signs of progress.
const PROGRESS_EVERY: u64 = 1024;

pub(super) async fn run(arguments: BacktestArguments) -> Result<Exit, Failure> {
    let progress = Arc::new(Progress::default());
    let work = Arc::clone(&progress);
    // It computes from its first line to its last, and progress is shown beside it.
    let done =
        tokio::task::spawn_blocking(move || backtest(&arguments, &work).map(|it| (it, arguments)));
    let done = progress::shown(done, || progress.say()).await;
    let (report, arguments) =
        done.map_err(|error| Failure::Runtime(format!("the backtest ended: {error}")))??;
    if let Some(path) = &arguments.html {
        fs::write(path, report.page()).map_err(|error| at(path, &error))?;
    }
    if arguments.json {
        output::json(&report)?;
    } else {
        output::line(&report)?;
    }
    Ok(if report.exceeded.is_empty() {
        Exit::Done
    } else {
        Exit::Refused
    })
}

/// How far it is.
#[derive(Debug, Default)]
struct Progress {
    bytes: AtomicU64,
    read: AtomicU64,
    requests: AtomicU64,
    checked: AtomicU64,
}

impl Progress {
    fn say(&self) -> String {
        let percent = |part: &AtomicU64, whole: &AtomicU64| {
            let whole = whole.load(Ordering::Relaxed).max(1);
            part.load(Ordering::Relaxed).saturating_mul(100) / whole
        };
        if self.requests.load(Ordering::Relaxed) == 0 {
            return format!("{} % of the log read", percent(&self.read, &self.bytes));
        }
        format!(
            "{} % of the requests checked",
            percent(&self.checked, &self.requests)
        )
    }
}

fn backtest(arguments: &BacktestArguments, progress: &Progress) -> Result<Report, Failure> {
    // The hash decides where a counter lies, not what it says.
    let file = PolicyFile::load(&arguments.policies, &HashKey::new([0; 16]))?;
    let plans = Plans::new(&file.policies, arguments.policy.as_deref())
        .map_err(|error| at(&arguments.policies, &error))?;
    let fields = Fields {
        attributes: plans.wanted.clone(),
        time: arguments.time.clone(),
        cost: arguments.cost.clone(),
    };
    let log = Log::open(&arguments.log, arguments.format, fields)
        .map_err(|error| at(&arguments.log, &error))?;
    progress.bytes.store(log.length(), Ordering::Relaxed);
    let ordered = reading::read(log, SortBounds::default(), &progress.read)
        .map_err(|error| Failure::Runtime(error.to_string()))?;
    check_readable(&ordered, &arguments.log)?;
    progress
        .requests
        .store(ordered.summary.requests, Ordering::Relaxed);
    let engine = Engine::new(file.policies);
    replay(
        &engine,
        &plans,
        ordered,
        (arguments.max_refused_share, progress),
    )
}

/// Sends every request, in order, to every policy.
fn replay(
    engine: &Engine,
    plans: &Plans,
    ordered: Ordered,
    (may_refuse, progress): (Option<f64>, &Progress),
) -> Result<Report, Failure> {
    let mut tallies = tally::new(&plans.plans, ordered.first, ordered.last);
    let mut said = Vec::new();
    let mut checked = 0_u64;
    for request in ordered.requests {
        let request =
            request.map_err(|error| Failure::Runtime(ReadError::Temporary(error).to_string()))?;
        let values: Vec<&str> = request.values().collect();
        let asked = (values.as_slice(), request.cost);
        for (plan, tally) in plans.plans.iter().zip(&mut tallies) {
            said.clear();
            match engine.check(plan, request.time, asked, &mut said) {
                Ok(()) => tally.count(plan, request.time, &values, &said),
                Err(error) => tally.count_fault(&error),
            }
        }
        checked += 1;
        if checked.is_multiple_of(PROGRESS_EVERY) {
            progress.checked.store(checked, Ordering::Relaxed);
        }
    }
    let counted = (plans.plans.as_slice(), tallies.as_slice());
    Ok(Report::new(
        ordered.summary,
        counted,
        &engine.stats(),
        may_refuse,
    ))
}

/// Refuses a log of which more than half cannot be read: what it would say is of another log.
fn check_readable(ordered: &Ordered, log: &Path) -> Result<(), Failure> {
    let summary = &ordered.summary;
    if !summary.is_mostly_unreadable() {
        return Ok(());
    }
    if summary.unreadable == 0 {
        return Err(at(log, &"has no request"));
    }
    let lines = summary.unreadable.saturating_add(summary.requests);
    let why = format!(
        "{} of {lines} lines cannot be read as {}; {}",
        summary.unreadable,
        summary.form,
        summary.faults.join("; ")
    );
    Err(at(log, &why))
}

/// What is wrong with a file that the caller named.
fn at(path: &Path, why: &impl std::fmt::Display) -> Failure {
    Failure::Usage(format!("{}: {why}", path.display()))
}

#[cfg(test)]
mod tests;
