//! That a receipt is used once: a limit of one for its id, decided as any other.
//!
//! So the first use wins wherever it is asked for, and the memory of it is a counter like all others:
//! bounded, owned by one node, forgotten one to two windows of [`LIVES`] and [`SKEW`] after the use, so
//! never before the id's life is over, and at most about two hours and two minutes after the use. Such a
//! counter is at its limit and so among the last to go when memory is short: some millions of used ids
//! in that time push out counters that are below their limit, as so many keys at their limit would (P7).
//! If its owner does not answer, this node decides alone, and another node may do so too.

use std::sync::Arc;

use tollgate_limit::{
    ActionError, AlgorithmSpec, Attributes, Call, Cost, HashKey, Limit, LimitNumber, LimitSpec,
    Mode, Nanos, Question, Receipt, SpecError, Subject,
};

use crate::node::Node;

/// Lives of ids, rounded up so that there are few counters of one id's: one.
const LIVES: [Nanos; 3] = [
    Nanos::from_millis(60_000),
    Nanos::from_millis(600_000),
    Nanos::from_millis(3_600_000),
];
/// How much longer a use is remembered: as far as the clocks of two nodes may differ.
const SKEW: Nanos = Nanos::from_millis(60_000);
/// The attribute that holds the id.
const ID: &str = "id";

/// The limits that say whether an id is used, one for each of [`LIVES`].
#[derive(Debug)]
pub(crate) struct Ids {
    limits: [Arc<Limit>; LIVES.len()],
}

impl Ids {
    pub(crate) fn new(hash_key: &HashKey) -> Result<Self, SpecError> {
        let [short, middle, long] = LIVES;
        Ok(Self {
            limits: [
                limit(short, hash_key)?,
                limit(middle, hash_key)?,
                limit(long, hash_key)?,
            ],
        })
    }

    /// Whether it is one of them.
    pub(crate) fn contains(&self, limit: &Arc<Limit>) -> bool {
        self.limits.iter().any(|one| Arc::ptr_eq(one, limit))
    }

    /// The limit for the ids of that life.
    fn of(&self, life: Nanos) -> &Arc<Limit> {
        let [short, middle, long] = &self.limits;
        let [short_life, middle_life, _] = LIVES;
        if life <= short_life {
            short
        } else if life <= middle_life {
            middle
        } else {
            long
        }
    }
}

fn limit(life: Nanos, hash_key: &HashKey) -> Result<Arc<Limit>, SpecError> {
    let algorithm = AlgorithmSpec::SlidingWindow {
        window: life.saturating_add(SKEW),
        slices: 1,
        hard: false,
    };
    let spec = LimitSpec {
        key: vec![ID.to_owned()],
        ..LimitSpec::new("ids", LimitNumber::One(1), algorithm)
    };
    // No policy and no check can name this limit: the space is not legal in either.
    Limit::internal("used once", spec, hash_key).map(Arc::new)
}

impl Node {
    /// Uses the id of a receipt up.
    pub(super) async fn claim(
        self: &Arc<Self>,
        now: Nanos,
        receipt: &Receipt,
    ) -> Result<(), ActionError> {
        let mut key = Attributes::new();
        key.insert(ID, receipt.id.to_string())
            .map_err(|_never| ActionError::Unknown)?;
        let question = Question {
            subject: Subject::Inline {
                limit: Arc::clone(self.ids.of(receipt.life())),
                key,
            },
            cost: Cost::ONE,
            mode: Mode::Consume,
            call: Call::Check,
        };
        let checked = self
            .check(now, &question)
            .map_err(|_never| ActionError::Unknown)?;
        if checked.decision().await.is_allowed() {
            Ok(())
        } else {
            Err(ActionError::Used)
        }
    }
}
