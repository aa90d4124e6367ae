//! Runs one scenario: a paused runtime on this thread, a network, and the seed that both live by.

use std::{hash::Hasher, io, time::Duration};

use siphasher::sip::SipHasher13;
use thiserror::Error;
use tokio::{runtime::Builder, time::timeout};

use crate::network::{Network, Trace};

/// The most virtual time that a scenario may take unless it says. One that waits for what never comes ends here.
pub const MAX_VIRTUAL_TIME: Duration = Duration::from_secs(600);

/// One run of one scenario.
#[derive(Debug)]
pub struct Simulation {
    seed: u64,
    network: Network,
}

/// What a run left behind.
#[derive(Clone, Debug)]
pub struct Finished<T> {
    /// What the scenario returned.
    pub output: T,
    /// Every datagram of the run.
    pub trace: Trace,
}

/// A run came to no end.
#[derive(Debug, Error)]
pub enum RunError {
    /// The runtime could not be built. The machine's fault.
    #[error("the runtime could not be built")]
    Runtime(#[source] io::Error),
    /// The scenario took too long. The scenario's fault, or the tested code's.
    #[error("seed {seed}: not finished after {longest:?} of virtual time")]
    Stuck {
        /// The virtual time that it had.
        longest: Duration,
        /// The seed that it happens with.
        seed: u64,
    },
}

impl Simulation {
    /// Runs a scenario from virtual time 0 to its end, on a runtime of its own on this thread. When it
    /// returns, all tasks that it left are ended.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn run<T>(
        seed: u64,
        scenario: impl AsyncFnOnce(&Self) -> T,
    ) -> Result<Finished<T>, RunError> {
        Self::run_for(seed, MAX_VIRTUAL_TIME, scenario)
    }

    /// The same, for a scenario that may take `longest` of virtual time.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn run_for<T>(
        seed: u64,
        longest: Duration,
        scenario: impl AsyncFnOnce(&Self) -> T,
    ) -> Result<Finished<T>, RunError> {
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build();
        let runtime = runtime.map_err(RunError::Runtime)?;
        runtime.block_on(async {
            let simulation = Self {
                seed,
                network: Network::new(seed),
            };
            tokio::spawn(simulation.network.clone().deliver());
            let output = timeout(longest, scenario(&simulation)).await;
            Ok(Finished {
                output: output.map_err(|_elapsed| RunError::Stuck { seed, longest })?,
                trace: simulation.network.trace(),
            })
        })
    }

    /// The network.
    #[must_use]
    pub const fn network(&self) -> &Network {
        &self.network
    }

    /// The seed.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// A seed for one part of the scenario (a node, a load), by its number: the same in each run, and
    /// unrelated to that of other parts.
    #[must_use]
    pub fn seed_of_part(&self, part: u64) -> u64 {
        part_seed(self.seed, part)
    }
}

/// [`Simulation::seed_of_part`], for what outlives the borrow of the simulation.
pub(crate) fn part_seed(seed: u64, part: u64) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(seed, part);
    hasher.write_u64(part);
    hasher.finish()
}
