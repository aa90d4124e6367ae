//! The `tollgate` program: reads its arguments, runs one command, exits with the command's code.

use std::{io::Write as _, process::ExitCode};

use clap::Parser as _;
use tollgate::{arguments::Arguments, command};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match command::run(arguments.command) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            // Nowhere is left to say that standard error is gone.
            drop(writeln!(std::io::stderr(), "tollgate: {failure}"));
            failure.exit().into()
        }
    }
}
