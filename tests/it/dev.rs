//! `tollgate dev` leaves nothing behind, however it ends.

use std::time::Duration;

use crate::harness::{Dev, DevOptions, Signal, is_node, run, send_signal, text, until};

const PER_IP: &str = "[[limit]]\nname = \"per-ip\"\nkey = [\"ip\"]\nlimit = 2\nwindow = \"1h\"\n";
/// How long a node may take to leave.
const LEAVE: Duration = Duration::from_secs(12);

fn cluster() -> Dev {
    Dev::start(&DevOptions {
        nodes: 2,
        policies: PER_IP,
        more: &[],
    })
}

#[test]
fn it_ends_its_nodes_and_removes_its_files() {
    let cluster = cluster();
    let (nodes, folder) = (cluster.nodes.clone(), cluster.folder.clone());
    assert_eq!(cluster.end(), Some(0));
    assert!(!nodes.iter().any(is_node), "a node still runs");
    assert!(!folder.exists());
}

#[test]
fn it_leaves_the_files_to_a_node_that_was_started_by_hand() {
    let mut cluster = cluster();
    let folder = cluster.folder.clone();
    let process_id = cluster.nodes[1].pid;
    send_signal(process_id, Signal::Kill);
    // It holds its lock and ports until it is gone from the list of processes.
    let process = std::path::PathBuf::from(format!("/proc/{process_id}"));
    until("n2 is gone", LEAVE, || (!process.exists()).then_some(()));
    cluster.restart(1);
    let mut node = cluster.node(1);
    until("n2 answers again", LEAVE, || node.get("/livez").ok());
    assert_eq!(cluster.end(), Some(0));
    assert!(folder.join("n2.toml").exists());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_node_that_refuses_its_file_is_quoted_whole() {
    let output = run(&["dev", "--base-port", "0", "--json", "--max-memory-mb", "0"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("max_memory_mb: 0 is out of range"), "{told}");
    assert!(told.contains("| max_memory_mb = 0\n"), "{told}");
    let (_, folder) = told.trim_end().rsplit_once("files are in ").unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn its_nodes_leave_when_it_is_killed() {
    let cluster = cluster();
    send_signal(cluster.process_id(), Signal::Kill);
    until("the nodes leave", LEAVE, || {
        (!cluster.nodes.iter().any(is_node)).then_some(())
    });
    std::fs::remove_dir_all(&cluster.folder).unwrap();
}

#[test]
fn an_owner_counts_what_it_decides_for_its_peer() {
    let cluster = cluster();
    let (mut asked, mut owner) = (cluster.node(0), cluster.node(1));
    let mut client = 0;
    until("n2 decides for n1", LEAVE, || {
        client += 1;
        asked.check(&format!("192.0.2.{}", client % 256)).ok()?;
        let metrics = owner.get("/metrics").ok()?.text;
        let none = "tollgate_owner_checks_total{outcome=\"decided\"} 0\n";
        assert!(metrics.contains("tollgate_owner_checks_total{outcome=\"decided\"}"));
        (!metrics.contains(none)).then_some(())
    });
    let metrics = asked.get("/metrics").unwrap().text;
    let none = "tollgate_peer_connects_total{peer=\"n2\"} 0\n";
    assert!(metrics.contains("tollgate_peer_connects_total{peer=\"n2\"}"));
    assert!(!metrics.contains(none), "{metrics}");
}

#[test]
fn a_node_that_is_told_to_end_leaves_and_the_commands_see_it() {
    let cluster = cluster();
    let url = cluster.nodes[0].http.as_str();
    let code = |arguments: &[&str]| run(arguments).status.code();
    assert_eq!(code(&["health", "--to", url]), Some(0));
    let check = ["check", "--to", url, "ip=192.0.2.1"];
    assert_eq!(
        [code(&check), code(&check), code(&check)],
        [Some(0), Some(0), Some(1)]
    );
    assert_eq!(
        code(&["check", "--to", url, "--policy", "none", "ip=1"]),
        Some(2)
    );
    let status = run(&["status", "--to", url]);
    assert!(
        text(&status.stdout).contains("2 active")
            && text(&status.stdout).contains("policies  lag\n"),
        "{}",
        text(&status.stdout)
    );
    send_signal(cluster.nodes[1].pid, Signal::Terminate);
    until("n2 ends", LEAVE, || {
        (!is_node(&cluster.nodes[1])).then_some(())
    });
    cluster.until_seen(0, "n2 has left", LEAVE, |seen| seen.active() == ["n1"]);
    assert_eq!(code(&["health", "--to", &cluster.nodes[1].http]), Some(1));
}
