//! The recipes for nginx in `docs/proxies.md`, run by a real nginx before a real node.
//!
//! Skipped, and said so, where there is no nginx.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;

use crate::harness::{Answered, Dev, DevOptions, Node, PATIENT, Signal, send_signal, until};

const POLICIES: &str =
    "[[limit]]\npolicy = \"api\"\nname = \"per-ip\"\nkey = [\"ip\"]\nlimit = 2\nwindow = \"1h\"\n";
const DOCUMENT: &str = include_str!("../../docs/proxies.md");
/// How long nginx may take to answer, or to see that a node is gone.
const SOON: Duration = Duration::from_secs(20);
/// A node that is busy is not one that is gone.
const PATIENCE: &str = "proxy_read_timeout 5s;";

/// A running nginx before a service that answers `hello`, killed when dropped.
struct Nginx {
    child: Child,
    url: String,
    _folder: TempDir,
}

impl Nginx {
    /// Runs the recipe of that number before this node; `None` where there is no nginx.
    fn start(recipe: usize, node: &str) -> Option<Self> {
        let program = program()?;
        let folder = tempfile::tempdir().unwrap();
        let (listen, service) = (free_port(), free_port());
        let recipe = DOCUMENT.split("```nginx\n").nth(recipe + 1).unwrap();
        let recipe = recipe.split("```").next().unwrap();
        let node = node.strip_prefix("http://").unwrap();
        let recipe = replaced(recipe, "server 127.0.0.1:7600;", &format!("server {node};"));
        let recipe = replaced(&recipe, "127.0.0.1:8080", &format!("127.0.0.1:{service}"));
        let recipe = replaced(
            &recipe,
            "listen 8000",
            &format!("listen 127.0.0.1:{listen}"),
        );
        let recipe = replaced(&recipe, "proxy_read_timeout 200ms;", PATIENCE);
        let recipe = replaced(
            &recipe,
            "proxy_connect_timeout 50ms;",
            "proxy_connect_timeout 5s;",
        );
        let file = folder.path().join("nginx.conf");
        fs::write(&file, whole(folder.path(), &recipe, service)).unwrap();
        let child = Command::new(program)
            .arg("-p")
            .arg(folder.path())
            .arg("-c")
            .arg(&file)
            .args(["-e", "stderr"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let url = format!("http://127.0.0.1:{listen}");
        let mut service = Node::new(&format!("http://127.0.0.1:{service}"));
        until("nginx answers", SOON, || service.get("/").ok());
        Some(Self {
            child,
            url,
            _folder: folder,
        })
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The recipe in a file that runs in the foreground, as one process, with all files in the folder.
fn whole(folder: &Path, recipe: &str, service: u16) -> String {
    let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary = kinds.map(|kind| format!("{kind}_temp_path {}/{kind};\n", folder.display()));
    format!(
        "daemon off;\nmaster_process off;\npid {}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{}\n{recipe}\n\
         server {{ listen 127.0.0.1:{service}; location / {{ return 200 hello; }} }}\n}}\n",
        folder.display(),
        temporary.concat(),
    )
}

fn replaced(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "the recipe has no {from:?}");
    text.replace(from, to)
}

/// Where nginx is.
#[expect(clippy::print_stderr, reason = "a test that did not run must say so")]
fn program() -> Option<PathBuf> {
    let found = ["nginx", "/usr/sbin/nginx"].into_iter().find(|program| {
        let mut version = Command::new(program);
        let status = version.arg("-v").stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    });
    if found.is_none() {
        eprintln!("skipped: nginx is not installed");
    }
    found.map(PathBuf::from)
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn cluster() -> Dev {
    Dev::start(&DevOptions {
        nodes: 1,
        policies: POLICIES,
        more: &PATIENT,
    })
}

fn retry_after(answer: &Answered) -> Option<u64> {
    let told = answer.headers.get("retry-after")?;
    told.to_str().unwrap().parse().ok()
}

/// Two pass, the third is refused with a wait, and without a node all pass.
fn limits_and_fails_open(recipe: usize) {
    let cluster = cluster();
    let Some(nginx) = Nginx::start(recipe, &cluster.nodes[0].http) else {
        return;
    };
    let ask = || Node::new(&nginx.url).get("/some/path?query").unwrap();
    for _ in 0..2 {
        let answer = ask();
        assert_eq!(
            (answer.status.as_u16(), answer.text.as_str()),
            (200, "hello")
        );
        assert_eq!(retry_after(&answer), None);
    }
    let refused = ask();
    assert_eq!(refused.status, 429, "{}", refused.text);
    // An hour, and what the oldest slice lasts on.
    let wait = retry_after(&refused);
    assert!(
        wait.is_some_and(|wait| (1..=3960).contains(&wait)),
        "{wait:?}"
    );
    if recipe == 0 {
        let told = refused.headers.get("ratelimit").unwrap().to_str().unwrap();
        assert!(told.starts_with("\"per-ip\";r=0;t="), "{told}");
    }
    send_signal(cluster.nodes[0].pid, Signal::Kill);
    until("requests pass without a node", SOON, || {
        let answer = ask();
        (answer.status == 200 && answer.text == "hello").then_some(())
    });
    // It keeps the logs of a node that died.
    let folder = cluster.folder.clone();
    drop(cluster);
    if folder.exists() {
        fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn refusals_that_are_403_on_the_way_reach_the_client_as_429() {
    limits_and_fails_open(0);
}

#[test]
fn refusals_that_are_429_on_the_way_reach_the_client_too() {
    limits_and_fails_open(1);
}
