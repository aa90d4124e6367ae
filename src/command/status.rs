//! `tollgate status`: the cluster as one node sees it.

use super::{Exit, Failure, answers::ClusterAnswer, files};
use crate::{
    arguments::StatusArguments,
    http_client::{Call, Connection},
    output::{self, Table},
};

pub(super) async fn run(arguments: StatusArguments) -> Result<Exit, Failure> {
    let token = arguments
        .token_file
        .as_deref()
        .map(files::read)
        .transpose()?;
    let mut node = Connection::new(arguments.to);
    let call = Call::read("/v1/cluster").with_token(token.as_deref().map(str::trim));
    let answer = node
        .call(call)
        .await
        .map_err(|error| Failure::Runtime(error.to_string()))?;
    let text = String::from_utf8_lossy(&answer.body);
    if !answer.status.is_success() {
        return Err(Failure::Runtime(format!(
            "{}: {}",
            answer.status,
            text.trim()
        )));
    }
    if arguments.json {
        output::line(text.trim())?;
        return Ok(Exit::Done);
    }
    let cluster: ClusterAnswer = serde_json::from_slice(&answer.body).map_err(|error| {
        Failure::Runtime(format!("the node's answer is not understood: {error}"))
    })?;
    output::line(format_args!(
        "as {} sees it: {} active, placement {}, policies {}",
        cluster.this,
        cluster.active(),
        cluster.placement,
        cluster.policies
    ))?;
    output::line(members(&cluster))?;
    for line in cluster.unsettled() {
        output::line(format_args!("\n{line}"))?;
    }
    if let Some(error) = &cluster.policies_error {
        output::line(format_args!(
            "\nthe newest policies of {} are not in force: {error}",
            cluster.this
        ))?;
    }
    let others = cluster.with_other_policies();
    if !others.is_empty() {
        output::line(format_args!(
            "\nthe policies differ: {} does not have those of {}",
            others.join(", "),
            cluster.this
        ))?;
    }
    Ok(Exit::Done)
}

fn members(cluster: &ClusterAnswer) -> Table {
    let mut table = Table::default();
    table.row([
        "node",
        "phase",
        "reachable",
        "slots",
        "weight",
        "peer",
        "http",
        "placement",
        "policies",
        "lag",
    ]);
    let known = |fingerprint: &Option<String>| {
        let unknown = || "unknown".to_owned();
        fingerprint.clone().unwrap_or_else(unknown)
    };
    for member in &cluster.members {
        let reachable = if member.reachable { "yes" } else { "no" };
        table.row([
            member.id.clone(),
            member.phase.clone(),
            reachable.to_owned(),
            member.slots.to_string(),
            member.weight.to_string(),
            member.peer.to_string(),
            member.api.to_string(),
            known(&member.placement),
            known(&member.policies),
            lag(member.replication_lag_ms),
        ]);
    }
    table
}

/// For how long the oldest change has waited that the member was not told.
fn lag(millis: Option<u64>) -> String {
    millis.map_or_else(|| "-".to_owned(), |millis| format!("{millis}ms"))
}
