//! `tollgate check`: one check, for people and scripts.

use std::collections::HashSet;

use http::StatusCode;

use super::{
    Exit, Failure,
    answers::{CheckAnswer, CheckBody},
};
use crate::{
    arguments::CheckArguments,
    http_client::{Call, Connection},
    output,
};

pub(super) async fn run(arguments: CheckArguments) -> Result<Exit, Failure> {
    let mut names = HashSet::new();
    for (name, _) in &arguments.attributes {
        if !names.insert(name.as_str()) {
            let right = "write each attribute once";
            return Err(Failure::Usage(format!("{name:?} stands twice; {right}")));
        }
    }
    let mut body = CheckBody::new(&arguments.policy, arguments.attributes);
    body.cost = arguments.cost;
    body.peek = arguments.peek;
    let mut node = Connection::new(arguments.to);
    let call = Call::post("/v1/check", body.bytes());
    let answer = node
        .call(call)
        .await
        .map_err(|error| Failure::Unanswered(error.to_string()))?;
    let text = String::from_utf8_lossy(&answer.body);
    let Ok(parsed) = serde_json::from_slice::<CheckAnswer>(&answer.body) else {
        return Err(Failure::Unanswered(format!(
            "{}: {}",
            answer.status,
            text.trim()
        )));
    };
    output::line(indented(&answer.body).as_deref().unwrap_or(&text))?;
    match (parsed.allowed, answer.status) {
        (true, StatusCode::OK) => Ok(Exit::Done),
        (_, status) if status.is_client_error() || status.is_server_error() => Ok(Exit::Refused),
        (_, status) => Err(Failure::Unanswered(format!("unexpected status {status}"))),
    }
}

/// The same JSON with one member a line.
fn indented(body: &[u8]) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(body).ok()?;
    serde_json::to_string_pretty(&value).ok()
}
