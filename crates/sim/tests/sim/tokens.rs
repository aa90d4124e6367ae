//! Reserve and settle over real traffic: the tokens of a language model, an hour of it in virtual time.
//!
//! The independent model beside it knows fixed windows of a minute and nothing else: a reservation is
//! admitted if what its minute has used leaves room for it; a settlement adds what was used beyond the
//! reservation to the minute that it comes in, whether there is room or not.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use tokio::time::sleep;
use tollgate_limit::{ActionError, AlgorithmSpec, DecidedBy, Nanos, Receipt};
use tollgate_node::{Clock as _, Timeouts};
use tollgate_sim::Simulation;

use crate::{
    asking::{act, ask, limit, receipt, settling, used_in},
    cluster::Cluster,
};

const NODES: u8 = 3;
const OWNER: usize = 1;
/// Tokens for each minute: less than the busiest ones ask for.
const LIMIT: u64 = 500_000;
/// How long after its reservation a request is settled.
const ANSWER_AFTER: Duration = Duration::from_secs(1);
/// Of so many settlements one is repeated.
const REPEATED: usize = 7;
const MINUTE_MILLIS: u64 = 60_000;
/// Longer than any event takes: none begins so shortly before the edge of a minute.
const EDGE_MILLIS: u64 = 200;
/// The virtual time of all of it, and to spare.
const LONGEST: Duration = Duration::from_secs(2 * 3600);

/// One request: when it came after the first, what it asks with, and what it is answered with.
struct Request {
    at: Duration,
    context: u64,
    generated: u64,
}

/// What happens next.
enum Event {
    Reserve(usize),
    Settle(usize),
}

/// What was used in each minute.
#[derive(Default)]
struct Minutes {
    used: BTreeMap<u64, u64>,
}

impl Minutes {
    fn reserve(&mut self, minute: u64, units: u64) -> bool {
        let used = self.used.entry(minute).or_default();
        let fits = *used + units <= LIMIT;
        *used += if fits { units } else { 0 };
        fits
    }

    fn settle(&mut self, minute: u64, more: u64) {
        *self.used.entry(minute).or_default() += more;
    }
}

#[test]
fn settled_debts_of_an_hour_of_real_traffic_count_against_later_requests() {
    let Some(requests) = requests() else { return };
    let run = Simulation::run_for(30, LONGEST, async |simulation| {
        let algorithm = AlgorithmSpec::FixedWindow {
            window: Nanos::from_millis(60_000),
        };
        let limits = [limit("model", LIMIT, algorithm)];
        let timeouts = Timeouts::default();
        let cluster = Cluster::start_limits(simulation, NODES, timeouts, &limits).await;
        replay(&cluster, &requests).await;
    });
    run.unwrap();
}

async fn replay(cluster: &Cluster, requests: &[Request]) {
    let model_name = cluster.value_at(OWNER, "model", 0);
    let values = &[("model", &*model_name)];
    let mut reserved: Vec<Option<Receipt>> = requests.iter().map(|_| None).collect();
    let (mut model, mut without_settling) = (Minutes::default(), Minutes::default());
    let (mut refused, mut refused_for_debt, mut repeated) = (0, 0, 0);
    let started = cluster.nodes[0].now();
    for (at, event) in events(requests) {
        until(cluster, started, at).await;
        let minute = unix_minute(cluster);
        let used = match event {
            Event::Reserve(number) => {
                let context = requests[number].context;
                let entry = &cluster.nodes[number % 3];
                let decision = ask(entry, values, context).await;
                assert!(!decision.is_degraded());
                let fits = model.reserve(minute, context);
                assert_eq!(decision.is_allowed(), fits, "request {number}");
                let would_fit = without_settling.reserve(minute, context);
                refused += u32::from(!fits);
                refused_for_debt += u32::from(!fits && would_fit);
                reserved[number] = fits.then(|| receipt(entry, &decision));
                let [limit] = &*decision.limits else {
                    panic!("{decision:?}")
                };
                // A refusal from memory tells what was used when it was heard.
                if limit.decided_by == DecidedBy::Cached {
                    assert!(limit.verdict.used <= model.used[&minute]);
                    continue;
                }
                limit.verdict.used
            }
            Event::Settle(number) => {
                let Some(reserved) = reserved[number].take() else {
                    continue;
                };
                let real = settling(requests[number].context + requests[number].generated);
                let other = &cluster.nodes[(number + 1) % 3];
                let settled = act(other, &reserved, real.clone()).await;
                model.settle(minute, requests[number].generated);
                if number.is_multiple_of(REPEATED) {
                    let again = act(&cluster.nodes[number % 3], &reserved, real).await;
                    assert_eq!(again, Err(ActionError::Used));
                    repeated += 1;
                }
                used_in(&settled)
            }
        };
        assert_eq!(unix_minute(cluster), minute, "across an edge");
        // What the counter says after every single event: no total can be right by accident.
        assert_eq!(used, model.used[&minute], "minute {minute}");
    }
    // That the traffic tests anything: minutes in debt, and requests that only debts refuse.
    assert!(model.used.values().any(|used| *used > LIMIT));
    assert!(refused > refused_for_debt && refused_for_debt > 0);
    assert!(repeated > 1_000, "{repeated}");
}

/// Waits until so long after the start; where that is shortly before the edge of a minute, until after it.
async fn until(cluster: &Cluster, started: Nanos, at: Duration) {
    let elapsed = Duration::from(cluster.nodes[0].now().saturating_sub(started));
    sleep(at.saturating_sub(elapsed)).await;
    let left = MINUTE_MILLIS - unix_millis(cluster) % MINUTE_MILLIS;
    if left <= EDGE_MILLIS {
        sleep(Duration::from_millis(left)).await;
    }
}

fn unix_millis(cluster: &Cluster) -> u64 {
    let node = &cluster.nodes[0];
    let origin = node.clock().unix_millis_at_origin();
    origin + node.now().as_nanos() / 1_000_000
}

fn unix_minute(cluster: &Cluster) -> u64 {
    unix_millis(cluster) / MINUTE_MILLIS
}

/// Reservations and settlements in the order of time.
fn events(requests: &[Request]) -> Vec<(Duration, Event)> {
    let mut events = Vec::with_capacity(2 * requests.len());
    for (number, request) in requests.iter().enumerate() {
        events.push((request.at, Event::Reserve(number)));
        events.push((request.at + ANSWER_AFTER, Event::Settle(number)));
    }
    events.sort_by_key(|(at, _event)| *at);
    events
}

/// The requests of the file; `None`, with a word on it, if it is not there.
#[expect(clippy::print_stdout, reason = "a test that is passed by must say so")]
fn requests() -> Option<Vec<Request>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join("../shared/data/llm-tokens.csv");
    let Ok(text) = fs::read_to_string(&path) else {
        println!("passed by: {} is not there", path.display());
        return None;
    };
    let mut requests: Vec<Request> = text.lines().skip(1).map(request).collect();
    let first = requests.first()?.at;
    for request in &mut requests {
        request.at -= first;
    }
    Some(requests)
}

/// `2023-11-16 18:15:46.6805900,374,44`; all are of one day.
fn request(line: &str) -> Request {
    let [time, context, generated] = *line.trim().split(',').collect::<Vec<_>>() else {
        panic!("{line}")
    };
    let (_day, time) = time.split_once(' ').unwrap();
    let [hours, minutes, seconds] = *time.split(':').collect::<Vec<_>>() else {
        panic!("{line}")
    };
    let minutes = hours.parse::<u32>().unwrap() * 60 + minutes.parse::<u32>().unwrap();
    Request {
        at: Duration::from_secs(60) * minutes + Duration::from_secs_f64(seconds.parse().unwrap()),
        context: context.parse().unwrap(),
        generated: generated.parse().unwrap(),
    }
}
