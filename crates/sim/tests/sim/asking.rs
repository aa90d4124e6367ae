//! Questions, and what is done with their answers, as any client of a node would.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;
use tollgate_limit::{
    Action, ActionError, AlgorithmSpec, AmendedLimit, Attributes, Call, Cost, Decision, KeyHash,
    LimitNumber, LimitSpec, Mode, Nanos, Question, Receipt, Rule, Settling, Subject, Verdict,
};
use tollgate_node::{Clock as _, CounterUnreachable, Node};

use tollgate_sim::rig::POLICY;

use crate::cluster::Cluster;

/// A window that no scenario sees the end of by accident.
pub(crate) const HOUR: Nanos = Nanos::from_millis(3_600_000);

/// Attributes and their values.
pub(crate) type Values<'a> = &'a [(&'a str, &'a str)];

/// A limit that applies to checks with the attribute of its name, and counts by it.
pub(crate) fn limit(name: &str, units: u64, algorithm: AlgorithmSpec) -> LimitSpec {
    LimitSpec {
        matches: vec![(name.to_owned(), vec!["*".to_owned()])],
        key: vec![name.to_owned()],
        ..LimitSpec::new(name, LimitNumber::One(units), algorithm)
    }
}

/// A sliding window of ten slices.
pub(crate) const fn window(window: Nanos) -> AlgorithmSpec {
    AlgorithmSpec::SlidingWindow {
        window,
        slices: 10,
        hard: true,
    }
}

/// Permits that end after so long.
pub(crate) const fn permits(ttl: Nanos) -> AlgorithmSpec {
    AlgorithmSpec::Concurrency { ttl }
}

pub(crate) fn cost(units: u64) -> Cost {
    Cost::new(units).unwrap()
}

fn question(call: Call, values: Values<'_>, units: u64) -> Question<'_> {
    let mut attributes = Attributes::new();
    for (name, value) in values {
        attributes.insert(*name, *value).unwrap();
    }
    Question {
        subject: Subject::Policy {
            name: POLICY,
            attributes,
        },
        cost: cost(units),
        mode: Mode::Consume,
        call,
    }
}

/// A check of that cost.
pub(crate) async fn ask(node: &Arc<Node>, values: Values<'_>, units: u64) -> Decision {
    let checked = node.check(node.now(), &question(Call::Check, values, units));
    checked.unwrap().decision().await
}

/// The same, permits included.
pub(crate) async fn acquire(node: &Arc<Node>, values: Values<'_>) -> Decision {
    let checked = node.check(node.now(), &question(Call::Acquire, values, 1));
    checked.unwrap().decision().await
}

/// What a decision of that node is known by to all nodes.
pub(crate) fn receipt(entry: &Arc<Node>, decision: &Decision) -> Receipt {
    Receipt::of(decision, entry.clock().unix_seconds(entry.now()))
}

/// What comes of an action.
pub(crate) type Done = Result<Vec<AmendedLimit>, ActionError>;

pub(crate) async fn act(node: &Arc<Node>, receipt: &Receipt, action: Action) -> Done {
    node.act(node.now(), receipt.clone(), action).await
}

/// Settles at that cost.
pub(crate) fn settling(units: u64) -> Action {
    Action::Settle(Settling {
        cost: Some(cost(units)),
        attributes: Vec::new(),
    })
}

/// Refunds what such a check would cost.
pub(crate) async fn refund(node: &Arc<Node>, values: Values<'_>, units: u64) -> Done {
    let question = question(Call::Check, values, units);
    let refund = Arc::clone(node).refund(node.now(), &question);
    refund.unwrap().await
}

/// What the one limit of an answer to an action says that it has used.
pub(crate) fn used_in(done: &Done) -> u64 {
    let Ok([limit]) = done.as_deref() else {
        panic!("{done:?}")
    };
    limit.now.expect("the owner told").used
}

impl Cluster {
    /// The first value of the limit's attribute, from that number on, whose key that node owns.
    pub(crate) fn value_at(&self, owner: usize, limit: &str, from: usize) -> String {
        let node = &self.nodes[owner].config().node;
        let view = self.nodes[0].view();
        (from..)
            .map(|number| format!("v{number}"))
            .find(|value| {
                let slot = self.key_and_rule(limit, value).0.slot();
                let owner = view.placement.owner(slot).unwrap();
                view.placement.member(owner) == Some(node)
            })
            .unwrap()
    }

    /// The counter of a limit for one value.
    pub(crate) fn key_and_rule(&self, limit: &str, value: &str) -> (KeyHash, Rule) {
        let policies = self.nodes[0].policies();
        let limit = policies.policy(POLICY).unwrap().limit(limit).unwrap();
        let mut attributes = Attributes::new();
        attributes.insert(limit.name(), value).unwrap();
        let key = limit.key_of(&attributes).unwrap().unwrap();
        (key, *limit.usual_rule().unwrap())
    }

    /// What a peek would say, as its owner tells that node.
    pub(crate) async fn read(
        &self,
        reader: usize,
        limit: &str,
        value: &str,
    ) -> Result<Verdict, CounterUnreachable> {
        let (key, rule) = self.key_and_rule(limit, value);
        let reading = self.nodes[reader].counter(key, rule).await;
        reading.map(|reading| reading.verdict)
    }

    /// What is used, as its owner tells that node.
    pub(crate) async fn used(&self, reader: usize, limit: &str, value: &str) -> u64 {
        self.read(reader, limit, value).await.unwrap().used
    }

    /// Resets a counter.
    pub(crate) async fn reset(
        &self,
        node: usize,
        limit: &str,
        value: &str,
    ) -> Result<(), CounterUnreachable> {
        let (key, rule) = self.key_and_rule(limit, value);
        self.nodes[node].reset(key, rule).await
    }
}

/// Lets virtual time pass.
pub(crate) async fn pass(time: Nanos) {
    sleep(Duration::from(time)).await;
}
