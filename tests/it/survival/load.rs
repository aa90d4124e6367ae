//! Load on some nodes by clients that turn to another node when theirs cannot be reached.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use tollgate::http_client::CallError;

use crate::harness::{Answered, Node, now};

/// Connections: so many that a slow check does not hold the others up.
const LANES: u32 = 16;

/// What became of one check.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) at: Instant,
    pub(super) took: Duration,
    pub(super) client: String,
    pub(super) end: End,
}

/// How a check ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    Admitted(Said),
    Refused(Said),
    /// Another answer than a decision.
    Wrong(String),
    /// It was sent, and no answer came.
    Lost(String),
}

/// Who decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) node: String,
    pub(super) by: String,
    pub(super) degraded: bool,
}

impl Sent {
    pub(super) fn is_admitted(&self) -> bool {
        matches!(self.end, End::Admitted(_))
    }

    pub(super) fn is_degraded(&self) -> bool {
        matches!(&self.end, End::Admitted(said) | End::Refused(said) if said.degraded)
    }
}

/// Checks that are asked until the load is ended.
#[derive(Debug)]
pub(super) struct Load {
    stop: Arc<AtomicBool>,
    sent: Arc<Mutex<Vec<Sent>>>,
    lanes: Vec<JoinHandle<()>>,
}

impl Load {
    /// Asks those nodes `per_second` checks together, the n-th for the client `client(n)`.
    pub(super) fn start(
        urls: &[String],
        per_second: u32,
        client: impl Fn(u32) -> String + Clone + Send + 'static,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let sent = Arc::new(Mutex::new(Vec::new()));
        let interval = Duration::from_secs(1) * LANES / per_second;
        let lanes = (0..LANES).map(|lane| {
            let (urls, client) = (urls.to_vec(), client.clone());
            let (stop, sent) = (Arc::clone(&stop), Arc::clone(&sent));
            thread::spawn(move || {
                let mut nodes: Vec<_> = urls.iter().map(|url| Node::new(url)).collect();
                let first = usize::try_from(lane).unwrap() % nodes.len();
                nodes.rotate_left(first);
                let mut due = now() + interval * lane / LANES;
                let mut number = lane;
                while !stop.load(Ordering::Relaxed) {
                    until_due(due);
                    due = now().max(due + interval);
                    let one = ask(&mut nodes, client(number));
                    number = number.wrapping_add(LANES);
                    sent.lock().unwrap().push(one);
                }
            })
        });
        Self {
            lanes: lanes.collect(),
            stop,
            sent,
        }
    }

    /// What was sent so far.
    pub(super) fn so_far(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }

    /// Ends the load and tells of all checks.
    pub(super) fn end(mut self) -> Vec<Sent> {
        self.stop.store(true, Ordering::Relaxed);
        for lane in self.lanes.drain(..) {
            lane.join().unwrap();
        }
        std::mem::take(&mut self.sent.lock().unwrap())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Asks the first node that can be reached; it stays the first.
fn ask(nodes: &mut [Node], client: String) -> Sent {
    let at = now();
    let mut end = End::Lost("no node can be reached".to_owned());
    for _ in 0..nodes.len() {
        match nodes[0].check(&client) {
            Ok(answer) => {
                end = end_of(&answer);
                break;
            }
            Err(CallError::Connect { .. }) => nodes.rotate_left(1),
            Err(error) => {
                end = End::Lost(error.to_string());
                nodes.rotate_left(1);
                break;
            }
        }
    }
    Sent {
        at,
        took: at.elapsed(),
        client,
        end,
    }
}

fn end_of(answer: &Answered) -> End {
    let text = |name: &str| answer.limit()[name].as_str().unwrap_or_default().to_owned();
    let said = Said {
        node: text("node"),
        by: text("decided_by"),
        degraded: answer.is_degraded(),
    };
    match answer.status.as_u16() {
        200 => End::Admitted(said),
        429 => End::Refused(said),
        status => End::Wrong(format!("{status}: {}", answer.text)),
    }
}

/// Keeps the pace of the load.
#[expect(
    clippy::disallowed_methods,
    reason = "the pace of a load is no wait for a condition"
)]
fn until_due(due: Instant) {
    thread::sleep(due.saturating_duration_since(now()));
}

/// What became of one client's checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) sent: u64,
    pub(super) admitted: u64,
    /// Of those admitted.
    pub(super) degraded: u64,
    pub(super) lost: u64,
}

/// By client.
pub(super) fn tallies(sent: &[Sent]) -> BTreeMap<String, Tally> {
    let mut tallies = BTreeMap::<String, Tally>::new();
    for one in sent {
        let tally = tallies.entry(one.client.clone()).or_default();
        tally.sent += 1;
        tally.admitted += u64::from(one.is_admitted());
        tally.degraded += u64::from(one.is_admitted() && one.is_degraded());
        tally.lost += u64::from(matches!(one.end, End::Lost(_)));
    }
    tallies
}

/// The slowest of so many per thousand.
pub(super) fn quantile(sent: &[Sent], thousandth: usize) -> Duration {
    let mut took: Vec<_> = sent.iter().map(|one| one.took).collect();
    took.sort_unstable();
    took[(took.len() - 1) * thousandth / 1000]
}

/// All checks that ended in something else than a decision.
pub(super) fn faulty(sent: &[Sent]) -> Vec<&Sent> {
    let is_faulty = |one: &&Sent| matches!(one.end, End::Wrong(_) | End::Lost(_));
    sent.iter().filter(is_faulty).collect()
}
