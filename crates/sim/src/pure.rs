//! The pure level: clusters of the shipped state machines under one virtual clock and one queue of events.
//!
//! No sockets, no tasks, no bytes: thousands of seeds a minute. A seed says how many nodes there are, what
//! they are asked, how long messages take and what goes wrong. Two modes: in *safety* things go wrong until the
//! end, and the history must keep its promises; in *liveness* they stop, and within [`SETTLE`] all must be as
//! if nothing had happened, with every count where it belongs.
//!
//! Invariants: a run is a function of seed and mode, and so is its trace, byte for byte. Must not hold a rule
//! of the protocol that the program has too: it runs the program's.

mod end;
mod faults;
mod frames;
mod network;
mod node;
mod oracle;
mod placements;
mod queue;
mod records;
mod workload;
mod world;

use tollgate_limit::Nanos;

use crate::{
    checker::{Violation, check},
    history::History,
};

/// Within so much virtual time after the last fault all is quiet again.
pub const SETTLE: Nanos = Nanos::from_millis(12_000);

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Faults at any time: no promise is broken.
    Safety,
    /// Faults stop: all is well again.
    Liveness,
}

/// What goes wrong in a run; a seed has one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Nothing.
    Calm,
    /// Nodes join, leave and are restarted, one after the other.
    Planned,
    /// Nodes crash and come back.
    Crashes,
    /// Nodes do not reach each other, one way or both, and connections break.
    Cuts,
    /// Nodes stop for a while, or are slow.
    Pauses,
    /// Nodes are taken for dead that are not.
    Accusations,
    /// All of it.
    Everything,
}

impl Profile {
    /// The profile of a seed.
    #[must_use]
    pub const fn of(seed: u64) -> Self {
        match seed % 8 {
            0 => Self::Calm,
            1 => Self::Planned,
            2 => Self::Crashes,
            3 => Self::Cuts,
            4 => Self::Pauses,
            5 => Self::Accusations,
            _ => Self::Everything,
        }
    }
}

/// What a run was.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// Its mode.
    pub mode: Mode,
    /// What went wrong in it.
    pub profile: Profile,
    /// A hash over all events, in order.
    pub trace: u64,
    /// How many there were.
    pub events: u64,
    /// What its clients saw.
    pub history: History,
    /// What it breaks.
    pub violations: Vec<Violation>,
    /// What was not as it should be at the end; of a liveness run only.
    pub unsettled: Vec<String>,
}

impl Report {
    /// Whether all promises were kept.
    #[must_use]
    pub const fn is_good(&self) -> bool {
        self.violations.is_empty() && self.unsettled.is_empty()
    }

    /// The command that does it again.
    #[must_use]
    pub fn command(&self) -> String {
        let mode = match self.mode {
            Mode::Safety => "",
            Mode::Liveness => " --liveness",
        };
        let seed = self.seed;
        format!("cargo run -p tollgate-sim --release -- --pure{mode} --seed {seed}")
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (seed, events, trace) = (self.seed, self.events, self.trace);
        let (mode, profile) = (self.mode, self.profile);
        writeln!(
            f,
            "seed {seed} {mode:?} {profile:?}: {events} events, {} answers, trace {trace:016x}",
            self.history.answers.len()
        )?;
        for violation in &self.violations {
            writeln!(f, "  {violation}")?;
        }
        for unsettled in &self.unsettled {
            writeln!(f, "  unsettled: {unsettled}")?;
        }
        if !self.is_good() {
            writeln!(f, "  again: {}", self.command())?;
        }
        Ok(())
    }
}

/// Runs one seed.
#[must_use]
pub fn run(seed: u64, mode: Mode) -> Report {
    run_profile(seed, mode, Profile::of(seed))
}

/// Runs one seed with other faults than its own.
#[must_use]
pub fn run_profile(seed: u64, mode: Mode, profile: Profile) -> Report {
    let mut world = world::World::new(seed, mode, profile);
    world.run();
    let (trace, events) = world.trace();
    let (history, unsettled) = world.finish();
    let violations = check(&history);
    Report {
        seed,
        mode,
        profile,
        trace,
        events,
        history,
        violations,
        unsettled,
    }
}

#[cfg(test)]
mod tests;
