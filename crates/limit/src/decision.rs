//! The answer to one check: what each limit said, and who decided it.
//!
//! Pure merging (rule 5): which limit makes the headline. Knows nothing of HTTP, frames or peers.

use std::{fmt, sync::Arc};

use crate::{
    key::KeyHash,
    policy::Limit,
    rule::Rule,
    units::{Cost, Nanos},
    verdict::Verdict,
};

/// The name of a node, stable over its restarts: `[A-Za-z0-9._-]{1,64}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(Arc<str>);

impl NodeId {
    /// The longest name, in bytes.
    pub const MAX_LENGTH: usize = 64;

    /// The node of this name; `None` if it is not `[A-Za-z0-9._-]{1,64}`.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let fits = (1..=Self::MAX_LENGTH).contains(&name.len());
        (fits && name.bytes().all(legal)).then(|| Self(name.into()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DecidedBy {
    /// The key's owner.
    Owner,
    /// Its standby, on its copy.
    Standby,
    /// The entry node, from a denial that the owner gave before.
    Cached,
    /// The entry node, by the limit's fallback: local share, allow or deny.
    Fallback,
    /// The kill switch.
    Switch,
}

impl DecidedBy {
    /// Its name in answers and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Standby => "standby",
            Self::Cached => "cached",
            Self::Fallback => "fallback",
            Self::Switch => "switch",
        }
    }
}

/// What one limit said, and who decided it.
#[derive(Clone, Debug)]
pub struct LimitDecision {
    /// The limit.
    pub limit: Arc<Limit>,
    /// The counter.
    pub key: KeyHash,
    /// The rule that it was decided by.
    pub rule: Rule,
    /// What the check charged to it, as the answer stands: [`Cost::ZERO`] of a refused check.
    pub charged: Cost,
    /// What it said.
    pub verdict: Verdict,
    /// Who decided.
    pub decided_by: DecidedBy,
    /// The node that decided.
    pub node: NodeId,
    /// The boot of that node: the counters of another boot do not hold the charge.
    pub boot: u64,
    /// Whether the answer may miss counts that the cluster has.
    pub degraded: bool,
}

impl LimitDecision {
    /// Whether it refuses, and its refusal holds.
    #[must_use]
    pub const fn refuses(&self) -> bool {
        !self.verdict.is_allowed() && self.rule.is_enforced()
    }
}

/// The id of a check: the entry node's boot and its running number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CheckId {
    /// The boot of the entry node.
    pub boot: u64,
    /// The number of the check in that boot.
    pub number: u64,
}

impl fmt::Display for CheckId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.boot, self.number)
    }
}

/// The answer to one check.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Names the check.
    pub id: CheckId,
    /// The limits that were asked; empty if none applies.
    pub limits: Vec<LimitDecision>,
}

impl Decision {
    /// Whether every limit that is enforced admits the check.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        !self.limits.iter().any(LimitDecision::refuses)
    }

    /// How long the caller should hold the request back: the longest of all limits.
    #[must_use]
    pub fn delay(&self) -> Nanos {
        let enforced = self.limits.iter().filter(|limit| limit.rule.is_enforced());
        let delays = enforced.map(|limit| limit.verdict.delay);
        delays.max().unwrap_or(Nanos::ZERO)
    }

    /// The limit whose numbers stand for the whole answer; `None` if none applies that is enforced.
    ///
    /// Of an allowed check the one with the least remaining, of several the one that is empty last. Of
    /// a refused check the refusing one with the longest wait; waiting for ever is the longest.
    #[must_use]
    pub fn headline(&self) -> Option<&LimitDecision> {
        let enforced = || self.limits.iter().filter(|one| one.rule.is_enforced());
        let refusing = enforced().filter(|one| one.refuses());
        let longest = refusing.reduce(|kept, one| {
            let (kept_wait, wait) = (kept.verdict.retry_after, one.verdict.retry_after);
            let longer = match (kept_wait, wait) {
                (None, _) => false,
                (Some(_), None) => true,
                (Some(kept_wait), Some(wait)) => wait > kept_wait,
            };
            if longer { one } else { kept }
        });
        longest.or_else(|| {
            enforced().reduce(|kept, one| {
                let tighter = one.verdict.remaining < kept.verdict.remaining;
                let equal = one.verdict.remaining == kept.verdict.remaining;
                let later = one.verdict.reset_after > kept.verdict.reset_after;
                if tighter || (equal && later) {
                    one
                } else {
                    kept
                }
            })
        })
    }

    /// Whether any of its limits was decided without all counts.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.limits.iter().any(|limit| limit.degraded)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{CheckId, DecidedBy, Decision, LimitDecision, NodeId};
    use crate::{
        key::{HashKey, KeyHash},
        policy::Limit,
        rule::Enforcement,
        spec::{AlgorithmSpec, LimitNumber, LimitSpec},
        units::{Cost, Nanos},
        verdict::{Outcome, Reason, Verdict},
    };

    fn limit(name: &str, verdict: Verdict) -> LimitDecision {
        let algorithm = AlgorithmSpec::SlidingWindow {
            window: Nanos::from_millis(60_000),
            slices: 10,
            hard: false,
        };
        let spec = LimitSpec::new(name, LimitNumber::One(100), algorithm);
        let limit = Limit::new("p", spec, &HashKey::new([0; 16])).unwrap();
        LimitDecision {
            key: KeyHash::from_halves(0, 0),
            rule: *limit.usual_rule().unwrap(),
            charged: Cost::ZERO,
            limit: Arc::new(limit),
            verdict,
            decided_by: DecidedBy::Owner,
            node: NodeId::new("n1").unwrap(),
            boot: 1,
            degraded: false,
        }
    }

    fn verdict(outcome: Outcome, remaining: u64, wait: Option<u64>, reset: u64) -> Verdict {
        Verdict {
            outcome,
            used: 0,
            remaining,
            retry_after: wait.map(Nanos::from_millis),
            more_after: Nanos::ZERO,
            reset_after: Nanos::from_millis(reset),
            delay: Nanos::ZERO,
            charged_slice: 0,
        }
    }

    fn check(verdicts: &[Verdict], headline: Option<&str>) {
        let names = ["a", "b", "c"].iter().zip(verdicts);
        let decision = Decision {
            id: CheckId { boot: 0, number: 0 },
            limits: names.map(|(name, verdict)| limit(name, *verdict)).collect(),
        };
        let found = decision.headline().map(|limit| limit.limit.name());
        assert_eq!(found, headline, "{verdicts:?}");
    }

    #[test]
    fn the_most_restrictive_limit_makes_the_headline() {
        let allow = |remaining, reset| verdict(Outcome::Allow, remaining, Some(0), reset);
        let exceeded = Outcome::Refuse(Reason::LimitExceeded);
        let refuse = |wait| verdict(exceeded, 9, wait, 1);
        check(&[], None);
        check(&[allow(5, 1), allow(3, 1), allow(4, 9)], Some("b"));
        check(&[allow(3, 1), allow(3, 7), allow(3, 2)], Some("b"));
        check(&[allow(0, 1), refuse(Some(5)), refuse(Some(4))], Some("b"));
        check(&[refuse(Some(5)), refuse(None), refuse(Some(9))], Some("b"));
        check(&[refuse(None), refuse(Some(9)), allow(0, 99)], Some("a"));
    }

    /// Rule 10.
    #[test]
    fn a_shadow_limit_never_denies_and_makes_no_headline() {
        let refused = verdict(Outcome::Refuse(Reason::LimitExceeded), 0, Some(5), 1);
        let mut shadow = limit("shadow", refused);
        shadow.rule.enforcement = Enforcement::Shadow;
        let other = limit("other", verdict(Outcome::Allow, 50, Some(0), 1));
        let mut decision = Decision {
            id: CheckId { boot: 0, number: 0 },
            limits: vec![shadow, other],
        };
        assert!(decision.is_allowed());
        let headline = decision.headline().map(|limit| limit.limit.name());
        assert_eq!(headline, Some("other"));
        decision.limits.pop();
        assert!(decision.is_allowed() && decision.headline().is_none());
    }

    #[test]
    fn a_node_id_has_few_characters() {
        for name in ["n1", "A-b_c.9", &"n".repeat(64)] {
            assert_eq!(NodeId::new(name).unwrap().as_str(), name);
        }
        for name in ["", "n 1", "n/1", "é", &"n".repeat(65)] {
            assert_eq!(NodeId::new(name), None, "{name:?}");
        }
    }

    #[test]
    fn a_check_id_is_of_fixed_length() {
        let id = CheckId {
            boot: 0xab,
            number: 1,
        };
        assert_eq!(id.to_string(), "00000000000000ab0000000000000001");
    }
}
