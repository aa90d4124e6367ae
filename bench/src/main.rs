//! The whole-program bench: Tollgate beside yardsticks, on the same machine in the same run.
//!
//! Figures that mean something elsewhere are ratios, of the server's CPU time for a request to that of a
//! bare server which reads and writes as many bytes. Servers run on one core, load on another.
//! Must not link the program that it measures: it starts it, as anyone would.

mod arguments;
mod bench;
mod children;
mod cluster;
mod processor;
mod report;
mod rounds;
mod yardstick;

use std::process::ExitCode;

use clap::Parser;

use self::arguments::{Arguments, Role};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.role {
        None => bench::run(&arguments.bench),
        Some(Role::YardstickHttp(options)) => yardstick::http::run(&options),
        Some(Role::YardstickQuic(options)) => yardstick::quic::run(options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report::complain(&error);
            ExitCode::FAILURE
        }
    }
}
