//! Runs the decisions: QUIC, TLS, tasks and timers around the state machines of `cluster`.
//!
//! Clock, randomness, socket and name look-up are handed in ([`Surroundings`]), so that the same code runs in
//! production and in the simulator. Must not know HTTP: accepted client streams are handed out as plain
//! byte streams.
//!
//! Two planes. *Control* (`gossip`): one task, on its own thread in production, owns foca, the
//! membership and the joining phase, and publishes a [`View`]. *Data* (`link`, `serve`, `check`): only
//! reads the published view; membership touches it in no other way.

mod act;
pub mod certificates;
mod check;
mod clients;
mod clock;
mod config;
mod counters;
pub mod credentials;
mod errands;
mod frames;
pub mod gossip;
mod link;
mod node;
mod replica;
mod routes;
pub mod seeds;
mod serve;
mod tls;
pub mod transport;
mod view;

pub use self::{
    check::Checked,
    clients::ClientStream,
    clock::{Clock, TokioClock},
    config::{Clients, ControlHost, InlineLimits, NodeConfig, Seed, Surroundings, Timeouts},
    counters::{LATENCY_BOUNDS_MICROS, LatencyReading},
    node::{
        CounterReading, CounterUnreachable, FollowerReport, MemberReport, Node, NodeReport,
        PeerReport, ReplicaReport, StartError,
    },
    tls::{RoleError, TlsError},
    view::View,
};
