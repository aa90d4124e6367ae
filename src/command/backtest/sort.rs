//! Requests in the order of their times, more of them than fit into memory.
//!
//! Requests are gathered up to a bound of bytes, sorted and written to a temporary file, a run; as many
//! runs as are merged at once become one run of the next level, so that few files are open. Equal times
//! keep the order of their lines. Must not know of limits.
//!
//! Bounds: [`SortBounds`] in memory; [`MAX_LEVELS`] times the fan-in of open files.

mod run;

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, binary_heap::PeekMut},
    io,
};

use tollgate_limit::Nanos;

use self::run::{Run, RunWriter};
use crate::access_log::Request;

/// What a request's values cost beyond their bytes: the allocator's share.
const BYTES_FOR_EACH: usize = 16;
/// Levels of runs: with the default bounds these hold more than any disk does.
const MAX_LEVELS: usize = 8;

/// How much memory and how many files a sort takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SortBounds {
    /// Bytes of requests in memory.
    pub(super) bytes: usize,
    /// Runs that are merged at once, at least 2.
    pub(super) fan_in: usize,
}

impl Default for SortBounds {
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            fan_in: 32,
        }
    }
}

/// Takes requests in any order.
#[derive(Debug)]
pub(super) struct Sorter {
    bounds: SortBounds,
    gathered: Vec<Request>,
    /// Bytes of the values gathered.
    value_bytes: usize,
    /// Runs that were made of lines, runs that were made of those, and so on.
    levels: Vec<Vec<Run>>,
    runs: u64,
}

impl Sorter {
    /// An empty one.
    pub(super) const fn new(bounds: SortBounds) -> Self {
        Self {
            bounds,
            gathered: Vec::new(),
            value_bytes: 0,
            levels: Vec::new(),
            runs: 0,
        }
    }

    /// Takes a request.
    pub(super) fn push(&mut self, request: Request) -> io::Result<()> {
        self.value_bytes = self
            .value_bytes
            .saturating_add(request.joined().len())
            .saturating_add(BYTES_FOR_EACH);
        self.gathered.push(request);
        let fixed = self
            .gathered
            .capacity()
            .saturating_mul(Request::FIXED_BYTES);
        if fixed.saturating_add(self.value_bytes) >= self.bounds.bytes {
            self.write_run()?;
        }
        Ok(())
    }

    /// How many runs were written to files.
    #[cfg(test)]
    pub(super) const fn runs(&self) -> u64 {
        self.runs
    }

    /// All requests, in order.
    pub(super) fn finish(mut self) -> io::Result<Merged> {
        sort(&mut self.gathered);
        let mut runs: Vec<Run> = self.levels.into_iter().flatten().collect();
        let fan_in = self.bounds.fan_in.max(2);
        while runs.len() > fan_in {
            // The first levels have the shortest runs.
            let short: Vec<Run> = runs.drain(..fan_in).collect();
            runs.push(merge(short)?);
        }
        let mut sources = opened(runs)?;
        sources.push(Source::Memory(self.gathered.into_iter()));
        Merged::new(sources)
    }

    fn write_run(&mut self) -> io::Result<()> {
        sort(&mut self.gathered);
        let mut writer = RunWriter::new()?;
        for request in self.gathered.drain(..) {
            writer.write(&request)?;
        }
        self.value_bytes = 0;
        self.runs = self.runs.saturating_add(1);
        let mut run = writer.finish()?;
        for level in 0..MAX_LEVELS {
            if self.levels.len() <= level {
                self.levels.push(Vec::new());
            }
            let Some(runs) = self.levels.get_mut(level) else {
                break;
            };
            runs.push(run);
            if runs.len() < self.bounds.fan_in.max(2) {
                return Ok(());
            }
            run = merge(std::mem::take(runs))?;
        }
        // The last level grows by what overflows it: its runs are longer than any disk before that.
        self.levels.push(vec![run]);
        Ok(())
    }
}

fn sort(requests: &mut [Request]) {
    requests.sort_unstable_by_key(|request| (request.time, request.line));
}

fn opened(runs: Vec<Run>) -> io::Result<Vec<Source>> {
    let files = runs.into_iter().map(|run| Ok(Source::File(run.open()?)));
    files.collect()
}

fn merge(runs: Vec<Run>) -> io::Result<Run> {
    let mut writer = RunWriter::new()?;
    for request in Merged::new(opened(runs)?)? {
        writer.write(&request?)?;
    }
    writer.finish()
}

/// Requests of several sorted sources, in order.
#[derive(Debug)]
pub(super) struct Merged {
    heads: BinaryHeap<Reverse<Head>>,
    sources: Vec<Source>,
}

#[derive(Debug)]
enum Source {
    Memory(std::vec::IntoIter<Request>),
    File(run::RunReader),
}

impl Source {
    fn next(&mut self) -> io::Result<Option<Request>> {
        match self {
            Self::Memory(requests) => Ok(requests.next()),
            Self::File(run) => run.next(),
        }
    }
}

/// The first request of a source that is not given out yet.
#[derive(Debug)]
struct Head {
    request: Request,
    source: usize,
}

impl Head {
    const fn order(&self) -> (Nanos, u64) {
        (self.request.time, self.request.line)
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Head {}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}

impl Merged {
    fn new(mut sources: Vec<Source>) -> io::Result<Self> {
        let mut heads = BinaryHeap::with_capacity(sources.len());
        for (at, source) in sources.iter_mut().enumerate() {
            if let Some(request) = source.next()? {
                heads.push(Reverse(Head {
                    request,
                    source: at,
                }));
            }
        }
        Ok(Self { heads, sources })
    }

    fn step(&mut self) -> io::Result<Option<Request>> {
        let Some(mut first) = self.heads.peek_mut() else {
            return Ok(None);
        };
        let source = self.sources.get_mut(first.0.source);
        let next = source.map_or(Ok(None), Source::next)?;
        Ok(Some(match next {
            Some(next) => std::mem::replace(&mut first.0.request, next),
            None => PeekMut::pop(first).0.request,
        }))
    }
}

impl Iterator for Merged {
    type Item = io::Result<Request>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}

#[cfg(test)]
mod tests;
