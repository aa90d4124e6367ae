//! The machine: which core runs what, and how much processor time a process has used. Linux only.

use std::{fs, io};

use anyhow::{Context, ensure};
use rustix::{
    param::clock_ticks_per_second,
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};

/// Fields of `/proc/<pid>/stat` after the command's name, counted from 0.
const USER_TICKS: usize = 11;
const SYSTEM_TICKS: usize = 12;

/// Who runs where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cores {
    all: CpuSet,
    server: CpuSet,
    load: CpuSet,
}

impl Cores {
    /// The first allowed core for servers and the second for load; with one core, both on it.
    pub(crate) fn divide() -> io::Result<Self> {
        let all = sched_getaffinity(None)?;
        let mut allowed = (0..CpuSet::MAX_CPU)
            .filter(|core| all.is_set(*core))
            .map(single);
        let server = allowed.next().unwrap_or(all);
        let load = allowed.next().unwrap_or(server);
        Ok(Self { all, server, load })
    }

    /// Whether server and load have a core each.
    pub(crate) fn are_apart(&self) -> bool {
        self.all.count() > 1
    }

    /// Moves this thread, and threads that it starts from now on, to the load's core.
    pub(crate) fn enter_load(&self) -> io::Result<()> {
        Ok(sched_setaffinity(None, &self.load)?)
    }

    /// Runs `start` on the servers' core, which processes that it starts inherit.
    pub(crate) fn on_server<T>(&self, start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        sched_setaffinity(None, &self.server)?;
        let started = start();
        self.enter_load()?;
        started
    }
}

fn single(core: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(core);
    set
}

/// Processor time that the processes have used until now, user and system, in seconds; in steps of a
/// clock tick (10 ms as a rule) for each process.
pub(crate) fn cpu_seconds(processes: &[u32]) -> anyhow::Result<f64> {
    let mut ticks = 0;
    for process in processes {
        let path = format!("/proc/{process}/stat");
        let stat = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
        ticks += ticks_of(&stat).with_context(|| format!("reading {path}"))?;
    }
    let per_second = clock_ticks_per_second();
    ensure!(per_second > 0, "the system has no clock ticks");
    #[expect(
        clippy::cast_precision_loss,
        reason = "ticks of a bench are far below 2^52"
    )]
    Ok(ticks as f64 / per_second as f64)
}

/// User and system time in a line of `/proc/<pid>/stat`.
fn ticks_of(stat: &str) -> anyhow::Result<u64> {
    // The name is in parentheses and may hold anything, even parentheses.
    let (_name, rest) = stat.rsplit_once(')').context("no name in it")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |index: usize| -> anyhow::Result<u64> {
        let field = fields.get(index).context("too few fields")?;
        field.parse().context("not a number")
    };
    Ok(field(USER_TICKS)? + field(SYSTEM_TICKS)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_found_behind_any_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194304 100 0 0 0 120 34 5 6 20 0 4 0 100";
        assert_eq!(ticks_of(stat).unwrap(), 154);
        assert!(ticks_of("7 (a) S 1").is_err());
    }

    #[test]
    fn this_process_has_used_time() {
        let busy = |rounds: u64| (0..rounds).fold(0_u64, |sum, n| std::hint::black_box(sum ^ n));
        let process = std::process::id();
        let before = cpu_seconds(&[process]).unwrap();
        // Tens of clock ticks of work on any machine.
        let mut after = before;
        while after < before + 0.05 {
            busy(10_000_000);
            after = cpu_seconds(&[process]).unwrap();
        }
    }
}
