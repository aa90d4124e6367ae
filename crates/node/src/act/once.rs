//! That a receipt is used once: a limit of one for its id, decided as any other.
//!
//! So the first use wins wherever it is asked for, and the memory of it is a counter like all others:
//! bounded, owned by one node, forgotten after the longest life of an id.

use std::sync::Arc;

use tollgate_limit::{
    ActionError, AlgorithmSpec, Attributes, Call, CheckId, Cost, HashKey, Limit, LimitNumber,
    LimitSpec, Mode, Nanos, Question, SpecError, Subject,
};

use crate::node::Node;

/// As long as an id may live, and a second more for what is rounded.
const LIFE: Nanos = Nanos::from_millis(3_601_000);
/// The attribute that holds the id.
const ID: &str = "id";

/// The limit that says whether an id is used.
pub(crate) fn limit(hash_key: &HashKey) -> Result<Limit, SpecError> {
    let algorithm = AlgorithmSpec::SlidingWindow {
        window: LIFE,
        slices: 1,
        hard: false,
    };
    // No policy and no check can name this limit: the space is not legal in either.
    Limit::internal(
        "used once",
        LimitSpec {
            key: vec![ID.to_owned()],
            ..LimitSpec::new("ids", LimitNumber::One(1), algorithm)
        },
        hash_key,
    )
}

impl Node {
    /// Uses an id up.
    pub(super) async fn claim(
        self: &Arc<Self>,
        now: Nanos,
        id: CheckId,
    ) -> Result<(), ActionError> {
        let mut key = Attributes::new();
        let unknown = |_fault| ActionError::Unknown;
        key.insert(ID, id.to_string())
            .map_err(|_never| ActionError::Unknown)?;
        let question = Question {
            subject: Subject::Inline {
                limit: Arc::clone(&self.ids),
                key,
            },
            cost: Cost::ONE,
            mode: Mode::Consume,
            call: Call::Check,
        };
        let checked = self.check(now, &question).map_err(unknown)?;
        if checked.decision().await.is_allowed() {
            Ok(())
        } else {
            Err(ActionError::Used)
        }
    }
}
