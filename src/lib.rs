//! The `tollgate` program: arguments, configuration files, commands and the wiring of a node.
//!
//! Holds no decision of its own: what counts is in `tollgate-limit`, what runs a node in
//! `tollgate-node`, what answers in `tollgate-api`. It is a library so that its tests reach it;
//! nothing but the program and its tests uses it.

pub mod access_log;
pub mod arguments;
pub mod command;
pub mod config;
pub mod http_client;
mod output;
mod policy_watch;
mod progress;
mod telemetry;
mod wiring;
