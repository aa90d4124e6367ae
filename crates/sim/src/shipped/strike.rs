//! Carries a plan out on a rig, and writes down what was done and when.
//!
//! A step that would leave fewer than two nodes, or that finds its node gone, is passed over. Planned
//! changes are carried out by tasks of their own: faults may strike them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};
use tollgate_limit::{Nanos, NodeId};

use super::plan::{FAULTS_UNTIL, Plan, SPARE_SEATS, Step, What};
use crate::{
    LinkConditions,
    history::Fault,
    rig::{Rig, RigError, Seat},
};

/// Fewer nodes are never left over.
const FEWEST: usize = 2;
/// How long a rolling restart waits for one placement before it goes on to the next node.
const PATIENCE: Duration = Duration::from_secs(5);
/// Up to this one-way delay a link is as good as any other: replies come before the forward timeout.
const SHORT_DELAY: Duration = Duration::from_millis(8);
/// By how much datagrams overtake each other.
const REORDERING: Duration = Duration::from_millis(4);
/// So many of a thousand are doubled.
const COPIES: u16 = 200;

/// What was done.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// How often, by kind.
    pub(super) kinds: BTreeMap<&'static str, u64>,
    /// What went wrong.
    pub(super) faults: Vec<Fault>,
    /// When planned changes began and ended.
    pub(super) changes: Vec<Nanos>,
    /// What could not be done.
    pub(super) trouble: Vec<String>,
}

/// Carries plans out.
#[derive(Clone, Debug)]
pub(super) struct Striker {
    rig: Rig,
    last_seat: u8,
    done: Arc<Mutex<Done>>,
    conditions: Arc<Mutex<LinkConditions>>,
}

impl Striker {
    /// For that plan's rig.
    pub(super) fn new(rig: &Rig, plan: &Plan) -> Self {
        Self {
            rig: rig.clone(),
            // Joining seats come after the first ones.
            last_seat: plan.nodes + SPARE_SEATS,
            done: Arc::default(),
            conditions: Arc::default(),
        }
    }

    /// Carries out a plan from now on; ends when all is over.
    pub(super) async fn run(&self, plan: &Plan) {
        let mut steps = JoinSet::new();
        // A run without faults is as long.
        steps.spawn(sleep(FAULTS_UNTIL));
        for step in plan.steps.clone() {
            let striker = self.clone();
            steps.spawn(async move { striker.step(step).await });
        }
        let _ended: Vec<()> = steps.join_all().await;
        self.rig.network().heal_all();
        self.rig.network().reset_links();
        self.rig.network().set_conditions(LinkConditions::default());
    }

    /// What was done until now.
    pub(super) fn done(&self) -> Done {
        std::mem::take(&mut *self.done.lock())
    }

    async fn step(&self, step: Step) {
        sleep(step.at).await;
        if !self.can(step.what) {
            return;
        }
        *self.done.lock().kinds.entry(step.what.kind()).or_default() += 1;
        let length = step.over.saturating_sub(step.at);
        match step.what {
            What::Reorder => {
                let usual = LinkConditions::default().jitter;
                let jitter = |is_on| if is_on { REORDERING } else { usual };
                self.with(length, |it, is_on| it.jitter = jitter(is_on))
                    .await;
            }
            What::Copy => {
                let copies = |is_on| if is_on { COPIES } else { 0 };
                self.with(length, |it, is_on| it.copies_per_mille = copies(is_on))
                    .await;
            }
            What::Lose(loss) => {
                let since = self.now();
                let loss = |is_on| if is_on { loss } else { 0 };
                self.with(length, |it, is_on| it.loss_per_mille = loss(is_on))
                    .await;
                self.cuts(&self.every_pair(), since);
            }
            What::Slow(from, to, millis) => {
                self.slow((from, to), Duration::from_millis(millis), length)
                    .await;
            }
            What::CutOneWay(from, to) => self.cut(vec![(from, to)], length).await,
            What::Cut(one, other) => self.cut(vec![(one, other), (other, one)], length).await,
            What::Partition(last) => {
                let mut pairs = self.across(last);
                pairs.extend(self.across(last).iter().map(|(from, to)| (*to, *from)));
                self.cut(pairs, length).await;
            }
            What::PartitionOneWay(last) => self.cut(self.across(last), length).await,
            What::Suspend(seat) => self.suspend(seat, length).await,
            What::Crash(seat) => {
                self.crash(seat);
                sleep(length).await;
                self.start(seat);
            }
            What::Leave(seat) => self.leave(seat).await,
            What::Join(seat) => self.start(seat),
            What::Restart(seat) => {
                self.leave(seat).await;
                sleep(length).await;
                self.start(seat);
            }
            What::RollingRestart => self.roll().await,
        }
    }

    /// Whether a step makes sense now.
    fn can(&self, what: What) -> bool {
        let running = self.rig.entries();
        match what {
            What::Crash(seat) | What::Restart(seat) | What::Leave(seat) | What::Suspend(seat) => {
                running.contains(&seat) && running.len() > FEWEST
            }
            What::Join(seat) => self.rig.node(seat).is_none(),
            What::RollingRestart => running.len() > FEWEST,
            What::Reorder
            | What::Copy
            | What::Lose(_)
            | What::Slow(..)
            | What::CutOneWay(..)
            | What::Cut(..)
            | What::Partition(_)
            | What::PartitionOneWay(_) => true,
        }
    }

    /// Changes all links' conditions for a while. The first of several of a kind that is over ends all.
    async fn with(&self, length: Duration, set: impl Fn(&mut LinkConditions, bool)) {
        self.condition(|conditions| set(conditions, true));
        sleep(length).await;
        self.condition(|conditions| set(conditions, false));
    }

    fn condition(&self, change: impl FnOnce(&mut LinkConditions)) {
        let mut conditions = self.conditions.lock();
        change(&mut conditions);
        self.rig.network().set_conditions(*conditions);
    }

    async fn slow(&self, (from, to): (Seat, Seat), delay: Duration, length: Duration) {
        let since = self.now();
        let slow = LinkConditions {
            delay,
            ..LinkConditions::default()
        };
        let (sender, receiver) = (from.address(), to.address());
        self.rig.network().set_link(sender, receiver, slow);
        sleep(length).await;
        let quick = LinkConditions::default();
        self.rig.network().set_link(sender, receiver, quick);
        if delay > SHORT_DELAY {
            self.cuts(&[(from, to)], since);
        }
    }

    async fn cut(&self, pairs: Vec<(Seat, Seat)>, length: Duration) {
        let since = self.now();
        for (from, to) in &pairs {
            self.rig.network().block(from.address(), to.address());
        }
        sleep(length).await;
        for (from, to) in &pairs {
            self.rig.network().heal(from.address(), to.address());
        }
        self.cuts(&pairs, since);
    }

    async fn suspend(&self, seat: Seat, length: Duration) {
        let since = self.now();
        self.rig.suspend(seat);
        sleep(length).await;
        self.rig.resume(seat);
        let until = self.now();
        let mut others = self.every_pair();
        others.retain(|(from, to)| *from == seat || *to == seat);
        self.cuts(&others, since);
        self.fault(seat, |node| Fault::Pause { node, since, until });
    }

    fn crash(&self, seat: Seat) {
        let at = self.now();
        if let Some(node) = self.rig.crash(seat) {
            let boot = node.view().identity.boot;
            self.fault(seat, |node| Fault::Crash { node, boot, at });
        }
    }

    fn start(&self, seat: Seat) {
        match self.rig.start(seat) {
            // It was started meanwhile, or still leaves.
            Ok(_) | Err(RigError::Running(_) | RigError::Bind(_)) => {}
            Err(error) => self.done.lock().trouble.push(format!("{seat}: {error}")),
        }
        self.change();
    }

    async fn leave(&self, seat: Seat) {
        self.change();
        self.rig.leave(seat).await;
        self.change();
    }

    async fn roll(&self) {
        for seat in self.rig.entries() {
            if !self.can(What::Restart(seat)) {
                continue;
            }
            self.leave(seat).await;
            self.start(seat);
            // A fault may keep it from settling.
            let settled = timeout(PATIENCE, self.rig.settle(PATIENCE)).await;
            let _may_go_on = settled.is_ok();
        }
    }

    /// All that is sent from one side to the other.
    fn across(&self, last: Seat) -> Vec<(Seat, Seat)> {
        let mut pairs = self.every_pair();
        pairs.retain(|(from, to)| *from <= last && *to > last);
        pairs
    }

    fn every_pair(&self) -> Vec<(Seat, Seat)> {
        let seats = || (1..=self.last_seat).map(Seat);
        let pairs = seats().flat_map(|from| seats().map(move |to| (from, to)));
        pairs.filter(|(from, to)| from != to).collect()
    }

    fn now(&self) -> Nanos {
        self.rig.network().now().into()
    }

    fn change(&self) {
        let now = self.now();
        self.done.lock().changes.push(now);
    }

    fn cuts(&self, pairs: &[(Seat, Seat)], since: Nanos) {
        let until = self.now();
        for (from, to) in pairs {
            if let Some(to) = NodeId::new(&to.name()) {
                self.fault(*from, |from| Fault::Cut {
                    from,
                    to,
                    since,
                    until,
                });
            }
        }
    }

    fn fault(&self, seat: Seat, fault: impl FnOnce(NodeId) -> Fault) {
        if let Some(node) = NodeId::new(&seat.name()) {
            self.done.lock().faults.push(fault(node));
        }
    }
}
