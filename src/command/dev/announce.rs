//! Telling of a cluster that runs.

use serde::Serialize;

use super::{children::Children, layout::Layout};
use crate::{
    command::Failure,
    output::{self, Table},
};

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Announcement<'a> {
    dir: String,
    nodes: Vec<AnnouncedNode<'a>>,
}

#[derive(Debug, Serialize)]
struct AnnouncedNode<'a> {
    id: &'a str,
    pid: u32,
    http: String,
    quic: String,
    config: String,
    log: String,
}

/// Prints addresses, process ids and a first check to try.
pub(super) fn announce(layout: &Layout, children: &Children, json: bool) -> Result<(), Failure> {
    let nodes = layout.nodes.iter().zip(children.process_ids());
    let nodes = nodes.map(|(node, process_id)| AnnouncedNode {
        id: &node.id,
        pid: *process_id,
        http: format!("http://{}", node.ports.http),
        quic: node.ports.quic.to_string(),
        config: node.config.display().to_string(),
        log: node.log.display().to_string(),
    });
    let announcement = Announcement {
        dir: layout.folder().to_string(),
        nodes: nodes.collect(),
    };
    if json {
        output::json(&announcement)?;
    } else {
        output::line(text(&announcement))?;
    }
    Ok(())
}

fn text(announcement: &Announcement<'_>) -> String {
    let mut table = Table::default();
    table.row(["node", "process", "http", "quic", "config"]);
    for node in &announcement.nodes {
        table.row([
            node.id,
            &node.pid.to_string(),
            &node.http,
            &node.quic,
            &node.config,
        ]);
    }
    let first = announcement
        .nodes
        .first()
        .map_or("", |node| node.http.as_str());
    format!(
        "{table}\n\nThe cluster is ready. Ask it:\n\n  \
         curl -i {first}/v1/check -H 'content-type: application/json' \
         -d '{{\"attributes\": {{\"ip\": \"203.0.113.7\"}}}}'\n\n\
         The limits are in {dir}/policies.toml: what is changed there is in force within two seconds.\n\
         The nodes' logs are {dir}/*.log. Ctrl-C ends all nodes.",
        dir = announcement.dir
    )
}
