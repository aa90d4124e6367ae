//! Questions to nodes, as any client of a node would ask them.

use std::sync::Arc;

use tollgate_limit::{
    AlgorithmSpec, AttributeError, Attributes, Call, CheckError, Cost, Decision, LimitNumber,
    LimitSpec, Mode, Nanos, Question, Receipt, Subject,
};
use tollgate_node::{Clock as _, Node};

use super::POLICY;

/// Attributes and their values.
pub type Values<'a> = &'a [(&'a str, &'a str)];

/// A limit that applies to checks with the attribute of its name, and counts by it.
#[must_use]
pub fn limit(name: &str, units: u64, algorithm: AlgorithmSpec) -> LimitSpec {
    LimitSpec {
        matches: vec![(name.to_owned(), vec!["*".to_owned()])],
        key: vec![name.to_owned()],
        ..LimitSpec::new(name, LimitNumber::One(units), algorithm)
    }
}

/// A hard sliding window of ten slices.
#[must_use]
pub const fn window(window: Nanos) -> AlgorithmSpec {
    AlgorithmSpec::SlidingWindow {
        window,
        slices: 10,
        hard: true,
    }
}

/// Those attributes.
///
/// # Errors
/// [`AttributeError`].
pub fn attributes<'a>(values: Values<'a>) -> Result<Attributes<'a>, AttributeError> {
    let mut attributes = Attributes::new();
    for (name, value) in values {
        attributes.insert(*name, *value)?;
    }
    Ok(attributes)
}

/// A question of that cost under [`POLICY`].
///
/// # Errors
/// [`AttributeError`].
pub fn question(
    call: Call,
    values: Values<'_>,
    cost: Cost,
) -> Result<Question<'_>, AttributeError> {
    Ok(Question {
        subject: Subject::Policy {
            name: POLICY,
            attributes: attributes(values)?,
        },
        cost,
        mode: Mode::Consume,
        call,
    })
}

/// A check of that cost.
///
/// # Errors
/// [`CheckError`]: the scenario's fault.
pub async fn ask(node: &Arc<Node>, values: Values<'_>, cost: Cost) -> Result<Decision, CheckError> {
    let checked = node.check(node.now(), &question(Call::Check, values, cost)?)?;
    Ok(checked.decision().await)
}

/// What a decision of that node is known by to all nodes.
#[must_use]
pub fn receipt(entry: &Arc<Node>, decision: &Decision) -> Receipt {
    Receipt::of(decision, entry.clock().unix_seconds(entry.now()))
}
