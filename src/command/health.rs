//! `tollgate health`: whether a node is ready, as an exit code.

use super::{Exit, Failure};
use crate::{
    arguments::HealthArguments,
    http_client::{Call, Connection},
    output,
};

pub(super) async fn run(arguments: HealthArguments) -> Result<Exit, Failure> {
    let mut node = Connection::new(arguments.to);
    match node.call(Call::read("/readyz")).await {
        Ok(answer) if answer.status.is_success() => {
            output::line("ready")?;
            Ok(Exit::Done)
        }
        Ok(answer) => {
            let why = String::from_utf8_lossy(&answer.body);
            output::note(format_args!("not ready: {} {}", answer.status, why.trim()));
            Ok(Exit::Refused)
        }
        Err(error) => {
            output::note(format_args!("not ready: {error}"));
            Ok(Exit::Refused)
        }
    }
}
