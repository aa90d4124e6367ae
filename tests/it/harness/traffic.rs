//! Steady traffic on some nodes, and what became of each check.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::{
    node::Node,
    wait::{now, until},
};

/// Connections to each node, so that one slow check does not hold the others up.
const LANES: u32 = 4;
/// How many clients ask: their keys are spread over all nodes.
const CLIENTS: u32 = 1000;

/// One check that was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) at: Instant,
    /// Status, or why there was none.
    pub(crate) status: Result<u16, String>,
    pub(crate) took: Duration,
    pub(crate) is_degraded: bool,
    /// The node that decided.
    pub(crate) node: String,
}

/// Traffic that runs until it is stopped.
#[derive(Debug)]
pub(crate) struct Traffic {
    stop: Arc<AtomicBool>,
    asked: Arc<Mutex<Vec<Asked>>>,
    lanes: Vec<JoinHandle<()>>,
}

impl Traffic {
    /// Asks those nodes `per_second` checks together, by many clients.
    pub(crate) fn start(urls: &[String], per_second: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let lanes = u32::try_from(urls.len()).unwrap() * LANES;
        let interval = Duration::from_secs(1) * lanes / per_second;
        let lanes = (0..lanes).map(|lane| {
            let url = urls[usize::try_from(lane).unwrap() % urls.len()].clone();
            let (stop, asked) = (Arc::clone(&stop), Arc::clone(&asked));
            thread::spawn(move || run_lane(&url, lane, interval, &stop, &asked))
        });
        Self {
            lanes: lanes.collect(),
            stop,
            asked,
        }
    }

    /// What was asked since then.
    pub(crate) fn since(&self, then: Instant) -> Vec<Asked> {
        let asked = self.asked.lock().unwrap();
        asked
            .iter()
            .filter(|asked| asked.at >= then)
            .cloned()
            .collect()
    }

    /// Waits until no answer of one whole second was degraded.
    pub(crate) fn until_not_degraded(&self, within: Duration) {
        let mut since = now();
        until("degraded answers stop", within, || {
            let answers = self.since(since);
            if answers.iter().any(|asked| asked.is_degraded) {
                since = now();
            }
            (since.elapsed() >= Duration::from_secs(1) && !answers.is_empty()).then_some(())
        });
    }

    /// Ends the traffic and tells of all checks.
    pub(crate) fn end(mut self) -> Vec<Asked> {
        self.stop.store(true, Ordering::Relaxed);
        for lane in self.lanes.drain(..) {
            lane.join().unwrap();
        }
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn run_lane(
    url: &str,
    lane: u32,
    interval: Duration,
    stop: &AtomicBool,
    asked: &Mutex<Vec<Asked>>,
) {
    let mut node = Node::new(url);
    let mut due = now();
    let mut number = lane;
    while !stop.load(Ordering::Relaxed) {
        until_due(due);
        due = now().max(due + interval);
        let client = number % CLIENTS;
        number = number.wrapping_add(7);
        let at = now();
        let answer = node.check(&format!("10.0.{}.{}", client / 250, client % 250));
        let took = at.elapsed();
        let one = match answer {
            Ok(answer) => Asked {
                at,
                status: Ok(answer.status.as_u16()),
                took,
                is_degraded: answer.is_degraded(),
                node: answer.limit()["node"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
            },
            Err(error) => Asked {
                at,
                status: Err(error.to_string()),
                took,
                is_degraded: false,
                node: String::new(),
            },
        };
        asked.lock().unwrap().push(one);
    }
}

/// Keeps the pace of the traffic.
#[expect(
    clippy::disallowed_methods,
    reason = "the pace of traffic is no wait for a condition"
)]
fn until_due(due: Instant) {
    thread::sleep(due.saturating_duration_since(now()));
}
