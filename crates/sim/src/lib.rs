//! Whole clusters in virtual time: the shipped code over an in-memory network, one seed for each run.
//!
//! Test only. Must not reach into a node: it hands in a socket, a clock and a seed, and looks at what
//! the node answers and at the packets it sends.
//!
//! Invariant: a run is a function of its seed. The same seed gives the same packet trace (time, sender,
//! receiver, length), in one process and in two. What keeps it so: one thread, tokio's paused clock, one
//! queue of datagrams ordered by (time, sequence number), every random number from the seed, and no
//! iteration over a randomly hashed map. Scenarios must keep these rules too.

mod checker;
pub mod history;
pub mod load;
mod network;
pub mod pure;
mod report;
pub mod rig;
pub mod seeds;
pub mod shipped;
mod simulation;

pub use self::{
    checker::{Over, Violation, check, worst},
    network::{
        BindError, Datagram, Difference, Fate, LinkConditions, Network, Record, SimSocket, Trace,
    },
    report::Report,
    simulation::{Finished, MAX_VIRTUAL_TIME, RunError, Simulation},
};
