//! Tiers: which rule holds for a check, by the value of an attribute.
//!
//! Knows nothing of keys: checks of different tiers may share a counter, each judged by its own numbers.

use std::collections::HashMap;

use crate::{attributes::Attributes, rule::Rule};

/// The rules of one tier.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// For those that a share is set aside for, and for all where none is.
    pub(super) named: Rule,
    /// For the others.
    pub(super) others: Rule,
}

/// The rules of a limit.
#[derive(Debug)]
pub(super) enum Tiers {
    /// The same for all.
    One(Rules),
    /// By an attribute.
    By {
        attribute: String,
        /// `None` is unlimited.
        values: HashMap<String, Option<Rules>>,
        default: Option<Rules>,
    },
    /// None: what matches is exempt from the whole policy.
    Exempt,
}

impl Tiers {
    /// The rules by an attribute.
    pub(super) fn by(
        attribute: String,
        values: Vec<(String, Option<Rules>)>,
        default: Option<Rules>,
    ) -> Self {
        let all = values.iter().map(|(_, rules)| rules).chain([&default]);
        let capacities = all.flatten().map(|rules| rules.named.capacity());
        let ceiling = capacities.max().unwrap_or(0);
        let below = |rules: Rules| Rules {
            named: Rule {
                ceiling,
                ..rules.named
            },
            others: Rule {
                ceiling,
                ..rules.others
            },
        };
        let default = default.map(below);
        let values = values
            .into_iter()
            .map(|(value, rules)| (value, rules.map(below)));
        Self::By {
            attribute,
            values: values.collect(),
            default,
        }
    }

    /// The rules of a check; `None` where the limit does not apply.
    pub(super) fn rules(&self, attributes: &Attributes<'_>) -> Option<&Rules> {
        match self {
            Self::One(rules) => Some(rules),
            Self::By {
                attribute,
                values,
                default,
            } => {
                let value = attributes.value(attribute);
                let tier = value.and_then(|value| values.get(value));
                tier.unwrap_or(default).as_ref()
            }
            Self::Exempt => None,
        }
    }

    /// The attribute that tells the tier.
    pub(super) fn attribute(&self) -> Option<&str> {
        match self {
            Self::By { attribute, .. } => Some(attribute),
            Self::One(_) | Self::Exempt => None,
        }
    }

    /// The rules of the default tier, or of any: what the limit is told by where there is no check.
    pub(super) fn usual(&self) -> Option<&Rules> {
        match self {
            Self::One(rules) => Some(rules),
            Self::By {
                values, default, ..
            } => default
                .as_ref()
                .or_else(|| values.values().flatten().next()),
            Self::Exempt => None,
        }
    }
}
