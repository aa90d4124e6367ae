//! The whole log, read and put in order.
//!
//! Bounds: what the sort takes, and [`SHOWN_FAULTS`] faults that are kept.

use std::{
    io,
    sync::atomic::{AtomicU64, Ordering},
};

use serde::Serialize;
use thiserror::Error;
use tollgate_limit::{Cost, Nanos};

use super::{
    report::instant,
    sort::{Merged, SortBounds, Sorter},
};
use crate::access_log::{Log, Reading};

/// Lines that cannot be read and are told.
const SHOWN_FAULTS: usize = 5;
/// Requests between two signs of progress.
const PROGRESS_EVERY: u64 = 1024;

/// What a log holds.
#[derive(Debug, Serialize)]
pub(super) struct LogSummary {
    pub(super) form: &'static str,
    pub(super) requests: u64,
    pub(super) unreadable: u64,
    /// The first lines that cannot be read, and why.
    #[serde(rename = "unreadable_lines")]
    pub(super) faults: Vec<String>,
    pub(super) from: String,
    pub(super) to: String,
    #[serde(skip)]
    pub(super) has_costs: bool,
}

/// A log in order.
#[derive(Debug)]
pub(super) struct Ordered {
    pub(super) summary: LogSummary,
    pub(super) first: Nanos,
    pub(super) last: Nanos,
    pub(super) requests: Merged,
}

/// A log that was not read to its end. The system's fault.
#[derive(Debug, Error)]
pub(super) enum ReadError {
    /// The log itself.
    #[error("the log: {0}")]
    Log(io::Error),
    /// What it is sorted with.
    #[error("temporary files in {}: {_0}", std::env::temp_dir().display())]
    Temporary(io::Error),
}

impl LogSummary {
    /// Whether too little of the log was read to say anything.
    pub(super) const fn is_mostly_unreadable(&self) -> bool {
        self.unreadable > self.requests || self.requests == 0
    }
}

/// Reads a log to its end. `position` is kept at the bytes that were read.
pub(super) fn read(
    mut log: Log,
    bounds: SortBounds,
    position: &AtomicU64,
) -> Result<Ordered, ReadError> {
    let mut sorter = Sorter::new(bounds);
    let mut summary = LogSummary {
        form: log.form().as_str(),
        requests: 0,
        unreadable: 0,
        faults: Vec::new(),
        from: String::new(),
        to: String::new(),
        has_costs: false,
    };
    let (mut first, mut last) = (Nanos::MAX, Nanos::ZERO);
    while let Some(reading) = log.next_reading().map_err(ReadError::Log)? {
        match reading {
            Reading::Request(request) => {
                first = first.min(request.time);
                last = last.max(request.time);
                summary.requests = summary.requests.saturating_add(1);
                summary.has_costs |= request.cost != Cost::ONE;
                sorter.push(request).map_err(ReadError::Temporary)?;
            }
            Reading::Fault { line, lines, why } => {
                summary.unreadable = summary.unreadable.saturating_add(lines);
                if summary.faults.len() < SHOWN_FAULTS {
                    summary.faults.push(format!("line {line}: {why}"));
                }
            }
        }
        if summary.requests.is_multiple_of(PROGRESS_EVERY) {
            position.store(log.position(), Ordering::Relaxed);
        }
    }
    if summary.requests > 0 {
        (summary.from, summary.to) = (instant(first), instant(last));
    }
    Ok(Ordered {
        summary,
        first: first.min(last),
        last,
        requests: sorter.finish().map_err(ReadError::Temporary)?,
    })
}
