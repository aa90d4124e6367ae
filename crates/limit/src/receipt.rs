//! What a check charged: all that is needed to give it back, settle it or report on it.
//!
//! A receipt travels as the id of the check, sealed by the cluster's key, so that no node has to remember
//! the checks that it answered and any node can act on any of them. Plain values; knows nothing of bytes.

use smallvec::SmallVec;

use crate::{
    decision::{CheckId, DecidedBy, Decision},
    key::KeyHash,
    rule::{Algorithm, Rule},
    spec::{CostSource, Counted},
    units::{Cost, Nanos, Window},
};

/// The longest life of an id.
const LONGEST_LIFE: Nanos = Nanos::from_millis(3_600_000);

/// A charge, as its counter needs it to be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The counter.
    pub key: KeyHash,
    /// Its rule.
    pub rule: Rule,
    /// What was charged.
    pub cost: Cost,
    /// Where it went, on the clock of the node that charged.
    pub slice: u64,
    /// The boot of the node that charged: no other boot's counters hold the charge.
    pub boot: u64,
}

/// Whose counters a charge went to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChargedAt {
    /// The owner's.
    Owner,
    /// The local shares of the entry node, in the boot of the receipt's id.
    Local,
}

/// What one limit was charged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptItem {
    /// The limit's name.
    pub limit: String,
    /// Where its cost came from.
    pub cost_source: CostSource,
    /// What it counts.
    pub counted: Counted,
    /// Where the charge is.
    pub at: ChargedAt,
    /// The charge.
    pub charge: Charge,
}

impl ReceiptItem {
    /// Whether it is a permit.
    #[must_use]
    pub const fn is_permit(&self) -> bool {
        matches!(self.charge.rule.algorithm, Algorithm::Concurrency(_))
    }
}

/// What was charged to each limit.
pub type ReceiptItems = SmallVec<[ReceiptItem; 2]>;

/// What a check charged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Names the check.
    pub id: CheckId,
    /// When it was made, in Unix seconds of the entry node.
    pub made: u64,
    /// What it charged; empty if it was refused or peeked.
    pub items: ReceiptItems,
}

impl Receipt {
    /// The receipt of a decision that was made then.
    #[must_use]
    pub fn of(decision: &Decision, made: u64) -> Self {
        let charged = decision
            .limits
            .iter()
            .filter(|limit| limit.charged > Cost::ZERO);
        let items = charged.filter_map(|limit| {
            let at = match limit.decided_by {
                DecidedBy::Owner | DecidedBy::Standby => ChargedAt::Owner,
                DecidedBy::Fallback => ChargedAt::Local,
                DecidedBy::Cached | DecidedBy::Switch => return None,
            };
            Some(ReceiptItem {
                limit: limit.limit.name().to_owned(),
                cost_source: limit.limit.cost_source().clone(),
                counted: limit.limit.counted(),
                at,
                charge: Charge {
                    key: limit.key,
                    rule: limit.rule,
                    cost: limit.charged,
                    slice: limit.verdict.charged_slice,
                    boot: limit.boot,
                },
            })
        });
        Self {
            id: decision.id,
            made,
            items: items.collect(),
        }
    }

    /// How long the id lives: as long as the longest window, at most an hour. A permit's own life is its
    /// time to live.
    #[must_use]
    pub fn life(&self) -> Nanos {
        let windows = self.items.iter().map(|item| item.charge.rule.window());
        let longest = windows.map(Window::span).max().unwrap_or(Nanos::ZERO);
        longest.min(LONGEST_LIFE)
    }
}
