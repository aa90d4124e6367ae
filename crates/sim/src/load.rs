//! Clients of a rig: they ask its nodes at random times for a few keys, and write down what they hear.
//!
//! Must not know of faults. Invariants: what is asked, of whom and when is a function of the run's seed and of which nodes run;
//! an answer of a node that was taken away meanwhile was heard by nobody; a client waits for its answer
//! before it asks again.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::{task::JoinSet, time::sleep};
use tollgate_limit::{Action, Cost, Decision, LimitDecision};
use tollgate_node::Node;

use crate::{
    rig::{Rig, Seat, ask},
    simulation::part_seed,
};

/// Parts of a run's randomness that belong to clients begin here.
const FIRST_PART: u64 = 1 << 32;

/// What clients do.
#[derive(Clone, Debug)]
pub struct LoadSpec {
    /// What they ask for, each as often as the others: attributes and their values.
    pub topics: Vec<Vec<(String, String)>>,
    /// How many clients there are.
    pub clients: u64,
    /// How many milliseconds a client waits between an answer and its next question.
    pub pause_ms: Range<u64>,
    /// The cost of a check.
    pub cost: Range<u64>,
    /// So many of a thousand admitted checks are refunded a little later.
    pub refunds_per_mille: u32,
    /// Ask just these nodes; empty: any that runs.
    pub entries: Vec<Seat>,
}

/// One check and its answer.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The node that was asked.
    pub entry: Seat,
    /// Its number in [`LoadSpec::topics`].
    pub topic: usize,
    /// What it cost.
    pub cost: u64,
    /// When it was asked, in virtual time.
    pub asked: Duration,
    /// When it was answered.
    pub answered: Duration,
    /// What its limits said; empty: nobody heard.
    pub heard: Vec<LimitDecision>,
    /// When it was given back, if it was: asked and acknowledged.
    pub refund: Option<Refund>,
}

/// A refund of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refund {
    /// When it was asked for.
    pub asked: Duration,
    /// When it was acknowledged; `None`: nobody did.
    pub answered: Option<Duration>,
}

impl Answered {
    /// Whether it was admitted.
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        !self.heard.is_empty() && !self.heard.iter().any(LimitDecision::refuses)
    }

    /// The units that were admitted and not given back.
    #[must_use]
    pub fn kept(&self) -> u64 {
        let is_back = self.refund.is_some_and(|refund| refund.answered.is_some());
        if self.is_admitted() && !is_back {
            self.cost
        } else {
            0
        }
    }

    /// Whether it was answered without all counts.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.heard.iter().any(|limit| limit.degraded)
    }
}

/// Clients that ask until they are stopped.
#[derive(Debug)]
pub struct Load {
    clients: JoinSet<()>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    rig: Rig,
    spec: LoadSpec,
    stopped: AtomicBool,
    answers: Mutex<Vec<Answered>>,
    /// [`admitted`] of each topic, kept up.
    admitted: Mutex<BTreeMap<usize, u64>>,
}

impl Load {
    /// Starts clients; `number` tells them from those of other loads of the run.
    #[must_use]
    pub fn start(rig: &Rig, seed: u64, number: u64, spec: LoadSpec) -> Self {
        let shared = Arc::new(Shared {
            rig: rig.clone(),
            spec,
            stopped: AtomicBool::new(false),
            answers: Mutex::default(),
            admitted: Mutex::default(),
        });
        let mut clients = JoinSet::new();
        for client in 0..shared.spec.clients {
            let part = FIRST_PART | number << 16 | client;
            let random = StdRng::seed_from_u64(part_seed(seed, part));
            clients.spawn(ask_until_stopped(Arc::clone(&shared), random));
        }
        Self { clients, shared }
    }

    /// The units that were admitted until now of what is asked for under this number.
    #[must_use]
    pub fn admitted(&self, topic: usize) -> u64 {
        let admitted = self.shared.admitted.lock();
        admitted.get(&topic).copied().unwrap_or_default()
    }

    /// Lets every client hear its last answer; all of them, in order of the answers.
    pub async fn stop(self) -> Vec<Answered> {
        self.shared.stopped.store(true, Ordering::Relaxed);
        let _ended: Vec<()> = self.clients.join_all().await;
        std::mem::take(&mut *self.shared.answers.lock())
    }
}

/// The units that were admitted of what was asked for under a number, and not given back.
#[must_use]
pub fn admitted(answers: &[Answered], topic: usize) -> u64 {
    let of_topic = answers.iter().filter(|one| one.topic == topic);
    of_topic.map(Answered::kept).sum()
}

async fn ask_until_stopped(shared: Arc<Shared>, mut random: StdRng) {
    while !shared.stopped.load(Ordering::Relaxed) {
        let pause = random.random_range(shared.spec.pause_ms.clone());
        sleep(Duration::from_millis(pause)).await;
        ask_once(&shared, &mut random).await;
    }
}

async fn ask_once(shared: &Shared, random: &mut StdRng) {
    let (rig, spec) = (&shared.rig, &shared.spec);
    let mut entries = rig.entries();
    entries.retain(|seat| spec.entries.is_empty() || spec.entries.contains(seat));
    // Drawn whatever runs, so that a fault does not shift what is asked for later.
    let (which, topic) = (
        random.random::<u32>(),
        random.random_range(0..spec.topics.len()),
    );
    let (cost, luck) = (
        random.random_range(spec.cost.clone()),
        random.random_range(0..1000),
    );
    let wait = random.random_range(0..500);
    let Some(entry) = pick(&entries, which) else {
        return;
    };
    let Some((node, values)) = rig.node(entry).zip(spec.topics.get(topic)) else {
        return;
    };
    let values: Vec<_> = values
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .collect();
    let asked = rig.network().now();
    let decision = ask_node(&node, &values, cost).await;
    let mut answered = Answered {
        entry,
        topic,
        cost,
        asked,
        answered: rig.network().now(),
        heard: Vec::new(),
        refund: None,
    };
    let is_there = rig.hears(entry, &node);
    if let Some(decision) = decision.filter(|_| is_there) {
        answered.heard = decision.limits.clone();
        if answered.is_admitted() && luck < spec.refunds_per_mille {
            sleep(Duration::from_millis(wait)).await;
            answered.refund = Some(refund(rig, &node, &decision).await);
        }
    }
    *shared.admitted.lock().entry(topic).or_default() += answered.kept();
    shared.answers.lock().push(answered);
}

/// The answer to a check; `None`: it is wrong.
async fn ask_node(node: &Arc<Node>, values: ask::Values<'_>, cost: u64) -> Option<Decision> {
    ask::ask(node, values, Cost::new(cost).ok()?).await.ok()
}

/// Gives a check back at the node that answered it.
async fn refund(rig: &Rig, node: &Arc<Node>, decision: &Decision) -> Refund {
    let receipt = ask::receipt(node, decision);
    let asked = rig.network().now();
    let done = node.act(node.now(), receipt, Action::Refund).await;
    Refund {
        asked,
        answered: done.ok().map(|_amended| rig.network().now()),
    }
}

fn pick(entries: &[Seat], which: u32) -> Option<Seat> {
    let index = usize::try_from(which).ok()?.checked_rem(entries.len())?;
    entries.get(index).copied()
}
