//! Whole runs of shipped nodes: real QUIC and real gossip, faults by seed, and the checker's word on what
//! came of them.
//!
//! A run forms a cluster, lets clients ask while the plan of the seed strikes, then lets all faults stop and
//! waits for one placement. Safety is looked at over the whole run, liveness after the last fault: within
//! [`SETTLE`] all nodes go by one placement, a second later nothing is answered degraded, and every node
//! tells the same count of each key.

mod holders;
mod kill;
mod load;
mod plan;
mod strike;
mod written;

use std::time::Duration;

use tokio::time::{sleep, timeout};
use tollgate_limit::Nanos;
use tollgate_node::Timeouts;

pub use self::kill::{Killed, agreement_bound, kill};
use self::{
    holders::Holders,
    plan::Plan,
    strike::{Done, Striker},
};
use crate::{
    Simulation, check,
    history::{End, History, Terms},
    load::{Answered, Load},
    report::Report,
    rig::{Rig, RigError, Settings},
    worst,
};

/// In virtual time, after the last fault: one placement again.
pub const SETTLE: Duration = Duration::from_secs(20);
/// How long a cluster may take to form.
const FORM: Duration = Duration::from_secs(30);
/// From one placement to where nothing is degraded any more.
const CALM: Duration = Duration::from_secs(1);
/// Longer than a suspicion: who is settled for so long stays so.
const STEADY: Duration = Duration::from_secs(4);
/// How often it is looked whether they are.
const GLANCE: Duration = Duration::from_millis(50);
/// How long it is looked whether anything is.
const LOOK: Duration = Duration::from_secs(2);
/// The longest that a run takes.
const LONGEST: Duration = Duration::from_secs(180);
/// How long after a fault copies may be incomplete: detection, grace, and copying anew.
const RECOVERY: Nanos = Nanos::from_millis(8_000);
/// The longest that a datagram travels on a link that is not said to be cut.
const LONGEST_DELAY: Nanos = Nanos::from_millis(10);
/// The runtime's ticks.
const SLACK: Nanos = Nanos::from_millis(3);

/// What the clients of a run and its watchers saw.
struct Seen {
    history: History,
    done: Done,
    answers: Vec<Answered>,
    settled: Option<Duration>,
    trouble: Vec<String>,
}

/// Runs a seed.
#[must_use]
pub fn run(seed: u64) -> Report {
    let plan = Plan::of(seed);
    let command = format!("cargo run -p tollgate-sim --release -- --quinn --seed {seed}");
    let run = Simulation::run_for(seed, LONGEST, async |simulation| {
        scenario(simulation, &plan).await
    });
    let (finished, hash) = match run {
        Ok(finished) => (
            finished.output.map_err(|error| error.to_string()),
            finished.trace.hash(),
        ),
        Err(error) => (Err(error.to_string()), 0),
    };
    match finished {
        Ok(seen) => Report {
            seed,
            command,
            faults: seen.done.kinds,
            checks: count(seen.answers.len()),
            degraded: count(seen.answers.iter().filter(|it| it.is_degraded()).count()),
            violations: check(&seen.history),
            trouble: seen.trouble,
            settled: seen.settled,
            worst: worst(&seen.history),
            hash,
            history: Some(seen.history),
        },
        Err(trouble) => Report::failed((seed, command), vec![trouble]),
    }
}

async fn scenario(simulation: &Simulation, plan: &Plan) -> Result<Seen, RigError> {
    let settings = Settings {
        limits: load::limits(),
        timeouts: Timeouts::default(),
    };
    let rig = Rig::new(simulation, settings)?;
    rig.start_all(plan.nodes)?;
    rig.settle(FORM).await?;

    let counters = load::counters();
    let keys = counters.iter().filter_map(|(limit, value)| {
        let (key, _rule) = rig.counter(limit, value)?;
        Some((written::name(limit, value), key.slot()))
    });
    let holders = Holders::watch(&rig, keys.collect());
    let spec = load::spec();
    let clients = Load::start(&rig, simulation.seed(), 0, spec.clone());
    let striker = Striker::new(&rig, plan);
    striker.run(plan).await;

    let mut trouble = Vec::new();
    let settled = settle(&rig).await;
    if settled.is_none() {
        trouble.push(format!("not at rest {SETTLE:?} after the last fault"));
    }
    sleep(CALM).await;
    let calm_from = rig.network().now();
    sleep(LOOK).await;
    let answers = clients.stop().await;
    let late = answers
        .iter()
        .filter(|it| it.asked >= calm_from && it.is_degraded());
    match late.count() {
        0 => {}
        late => trouble.push(format!("{late} checks are degraded after the calm")),
    }
    sleep(CALM).await;

    let mut history = History::new(terms(&rig));
    written::rules(&mut history, &rig, &counters);
    written::write(&mut history, &spec.topics, &answers);
    history.ends = ends(&rig, &counters, &mut trouble).await;
    history.holds = holders.stop();
    let done = striker.done();
    history.faults.clone_from(&done.faults);
    history.changes = std::iter::once(Nanos::ZERO)
        .chain(done.changes.iter().copied())
        .collect();
    trouble.extend(done.trouble.iter().cloned());
    Ok(Seen {
        history,
        done,
        answers,
        settled,
        trouble,
    })
}

/// Waits until the nodes are settled and stay so; how long it took until then. What was suspected while there
/// were faults is given up up to a suspicion's length later.
async fn settle(rig: &Rig) -> Option<Duration> {
    let begun = rig.network().now();
    let passed = || rig.network().now().saturating_sub(begun);
    while let Some(left) = SETTLE.checked_sub(passed()) {
        rig.settle(left).await.ok()?;
        let settled = passed();
        let steady = async {
            while rig.is_settled() {
                sleep(GLANCE).await;
            }
        };
        if timeout(STEADY, steady).await.is_err() {
            return Some(settled);
        }
    }
    None
}

fn terms(rig: &Rig) -> Terms {
    Terms {
        deadline: rig.settings().timeouts.check_deadline.into(),
        slack: SLACK,
        longest_delay: LONGEST_DELAY,
        recovery: RECOVERY,
        unix_origin: Rig::unix_origin(),
    }
}

/// What is counted of the keys of which nothing has expired; all nodes must tell the same.
async fn ends(rig: &Rig, counters: &[(String, String)], trouble: &mut Vec<String>) -> Vec<End> {
    let mut ends = Vec::new();
    for (limit, value) in counters.iter().filter(|it| it.0 == load::LASTING) {
        let mut told = Vec::new();
        for seat in rig.entries() {
            let used = rig
                .read(seat, limit, value)
                .await
                .map(|verdict| verdict.used);
            told.extend(used.map_err(|error| trouble.push(format!("{seat}: {error}"))));
        }
        let key = written::name(limit, value);
        if let Some(counted) = told.first().copied() {
            if told.iter().any(|other| *other != counted) {
                trouble.push(format!("{key}: nodes tell different counts: {told:?}"));
            }
            ends.push(End { key, counted });
        }
    }
    ends
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
