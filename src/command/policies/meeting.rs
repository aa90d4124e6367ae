//! How one limit meets a request: with which rule, cost and counter, or why it is passed by.
//!
//! Asks the limit itself, so that it cannot say what a node would not do.

use std::fmt;

use tollgate_limit::{Attributes, Cost, CostSource, Counted, Fallback, Limit, Policy, Rule};

use super::words;

/// How one limit meets a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meeting {
    /// It is asked.
    Applies {
        /// The rule of the request's tier.
        rule: String,
        /// What the request costs on it.
        cost: String,
        /// Which counter.
        counter: String,
    },
    /// No limit of the policy is asked.
    Exempts,
    /// It is not asked.
    PassedBy {
        /// Why.
        because: String,
    },
    /// The request is at fault.
    Faulty {
        /// Why.
        because: String,
    },
}

impl Meeting {
    pub(super) fn of(policy: &Policy, limit: &Limit, attributes: &Attributes<'_>) -> Self {
        let passed_by = |because: String| Self::PassedBy { because };
        if let Some(attribute) = limit.mismatch(attributes) {
            return passed_by(match attributes.value(attribute) {
                Some(value) => format!("{attribute}={value} does not match"),
                None => format!("{attribute} is absent, so that it does not match"),
            });
        }
        if limit.exempts() {
            return Self::Exempts;
        }
        if let Some(other) = policy.exemption(attributes) {
            return passed_by(format!("{} exempts from the policy", other.name()));
        }
        let Some(rule) = limit.rule_of(attributes) else {
            return passed_by("its tier is unlimited".to_owned());
        };
        match limit.apply(attributes, Cost::ONE) {
            Ok(Some(application)) => Self::Applies {
                rule: rule_of(limit, &rule),
                cost: cost_of(limit, application.cost),
                counter: counter_of(limit, attributes),
            },
            Ok(None) => passed_by(absence(limit, attributes)),
            Err(error) => Self::Faulty {
                because: error.to_string(),
            },
        }
    }
}

fn rule_of(limit: &Limit, rule: &Rule) -> String {
    let mut text = words::rule(rule);
    if limit.counted() == Counted::Failures {
        text.push_str(", counts failures");
    }
    if limit.is_concurrency() {
        text.push_str(", asked by acquire alone");
    }
    text.push_str(match limit.fallback() {
        Fallback::LocalFull => "",
        Fallback::LocalFair => ", without its owner: a fair share",
        Fallback::Allow => ", without its owner: allow",
        Fallback::Deny => ", without its owner: deny",
    });
    text
}

fn cost_of(limit: &Limit, cost: Cost) -> String {
    match limit.cost_source() {
        CostSource::Request => "that of the request, else 1".to_owned(),
        CostSource::Attribute(_) if cost == Cost::ZERO => "0: admitted, not counted".to_owned(),
        CostSource::Attribute(name) => format!("{} from {name}", cost.units()),
    }
}

fn counter_of(limit: &Limit, attributes: &Attributes<'_>) -> String {
    if limit.key().is_empty() {
        return "one for all".to_owned();
    }
    let parts = limit.key().iter().map(|name| {
        let value = attributes.value(name).unwrap_or_default();
        format!("{name}={}", limit.counted_value(name, value))
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn absence(limit: &Limit, attributes: &Attributes<'_>) -> String {
    let absent = |name: &&String| attributes.value(name).is_none();
    match (limit.key().iter().find(absent), limit.cost_source()) {
        (Some(name), _) => format!("key attribute {name} is absent"),
        (None, CostSource::Attribute(name)) => format!("{name}, its cost, is absent"),
        (None, CostSource::Request) => "it does not apply".to_owned(),
    }
}

impl fmt::Display for Meeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Applies {
                rule,
                cost,
                counter,
            } => write!(f, "applies: {rule}; cost: {cost}; counter: {counter}"),
            Self::Exempts => f.write_str("applies: unlimited, no limit of this policy is asked"),
            Self::PassedBy { because } => write!(f, "passed by: {because}"),
            Self::Faulty { because } => write!(f, "refuses the check as faulty: {because}"),
        }
    }
}
