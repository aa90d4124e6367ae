//! `tollgate replay`: a real access log as checks, and what became of them.
//!
//! Bounds: [`IN_FLIGHT`] checks over all nodes, one line of at most
//! [`MAX_LINE`](access_log::MAX_LINE) bytes for each in memory.

mod report;

use std::{
    fs::File,
    io::BufReader,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::StatusCode;
use tokio::task::JoinSet;
use tollgate_node::{Clock as _, TokioClock};

use self::report::Report;
use super::{
    Exit, Failure,
    answers::{CheckAnswer, CheckBody},
};
use crate::{
    access_log::{Entry, Lines},
    arguments::ReplayArguments,
    http_client::{Call, Connection, NodeUrl},
    output, progress,
};

/// Checks in flight, over all nodes.
const IN_FLIGHT: usize = 64;

pub(super) async fn run(arguments: ReplayArguments) -> Result<Exit, Failure> {
    let unreadable = |error| Failure::Usage(format!("{}: {error}", arguments.log.display()));
    let (lines, bytes) = Lines::open(&arguments.log).map_err(unreadable)?;
    let work = Arc::new(Work {
        bytes,
        lines: Mutex::new(lines),
        policy: arguments.policy,
        nodes: arguments.to,
        sent: AtomicU64::new(0),
    });
    let clock = TokioClock::system();
    let started = clock.now();
    let report = progress::shown(send_all(&work), || work.progress()).await?;
    let elapsed = Duration::from(clock.now().saturating_sub(started));
    if arguments.json {
        output::json(&report.summary(elapsed))?;
    } else {
        output::line(report.table(elapsed))?;
    }
    report.exit(&arguments.log.display())
}

/// What all lanes share.
#[derive(Debug)]
struct Work {
    lines: Mutex<Lines<BufReader<File>>>,
    bytes: u64,
    policy: String,
    nodes: Vec<NodeUrl>,
    sent: AtomicU64,
}

impl Work {
    fn progress(&self) -> String {
        let sent = self.sent.load(Ordering::Relaxed);
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let percent = lines.position().saturating_mul(100) / self.bytes.max(1);
        format!("{sent} checks sent, {percent} % of the log")
    }

    /// The next line and its number.
    fn next(&self) -> std::io::Result<Option<(u64, String)>> {
        self.lines
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .next_line()
    }
}

async fn send_all(work: &Arc<Work>) -> Result<Report, Failure> {
    let mut lanes = JoinSet::new();
    for _ in 0..IN_FLIGHT {
        lanes.spawn(lane(Arc::clone(work)));
    }
    let mut report = Report::default();
    while let Some(lane) = lanes.join_next().await {
        let lane = lane.map_err(|error| Failure::Runtime(format!("a lane ended: {error}")))?;
        report.add(lane.map_err(|error| Failure::Runtime(format!("the log: {error}")))?);
    }
    Ok(report)
}

/// Sends one check after the other until the log ends.
async fn lane(work: Arc<Work>) -> std::io::Result<Report> {
    let mut report = Report::default();
    let mut nodes: Vec<Connection> = work.nodes.iter().cloned().map(Connection::new).collect();
    while let Some((number, line)) = work.next()? {
        let Some(entry) = Entry::parse(&line) else {
            report.unreadable += 1;
            continue;
        };
        let body = CheckBody::new(&work.policy, entry.attributes()).bytes();
        let turn = usize::try_from(number).unwrap_or(0) % nodes.len().max(1);
        let Some(node) = nodes.get_mut(turn) else {
            break;
        };
        work.sent.fetch_add(1, Ordering::Relaxed);
        match node.call(Call::post("/v1/check", body)).await {
            Ok(answer) => match serde_json::from_slice::<CheckAnswer>(&answer.body) {
                Ok(parsed) => report.answered(entry.client, &parsed),
                Err(_) => report.failed(entry.client, refusal_text(answer.status, &answer.body)),
            },
            Err(error) => report.failed(entry.client, error.to_string()),
        }
    }
    Ok(report)
}

/// What a node said instead of an answer.
fn refusal_text(status: StatusCode, body: &[u8]) -> String {
    format!("{status}: {}", String::from_utf8_lossy(body).trim())
}
