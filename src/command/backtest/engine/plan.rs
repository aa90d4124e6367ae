//! Which policies are checked, and which attributes they look at: nothing else of a line is kept.
//!
//! Pure. Bound: [`MAX_WANTED`] attributes over all policies.

use std::{collections::HashMap, sync::Arc};

use thiserror::Error;
use tollgate_limit::{Limit, Policies};

/// The most attributes that all policies look at.
pub(in super::super) const MAX_WANTED: usize = 1024;

/// The policies to check.
#[derive(Debug)]
pub(in super::super) struct Plans {
    /// The attributes that any of them looks at, each once.
    pub(in super::super) wanted: Vec<String>,
    /// The policies by their names.
    pub(in super::super) plans: Vec<Plan>,
}

/// One policy to check.
#[derive(Debug)]
pub(in super::super) struct Plan {
    policy: String,
    limits: Vec<Arc<Limit>>,
    /// The attributes that it looks at, and where among the wanted ones.
    attributes: Vec<(String, usize)>,
    /// For each limit, where the attributes that it counts by are.
    keys: Vec<Vec<usize>>,
}

/// Policies that cannot be checked. The caller's fault.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(in super::super) enum PlanError {
    /// There is no such policy.
    #[error("there is no policy {name:?}; there are: {}", .known.join(", "))]
    UnknownPolicy {
        /// The name.
        name: String,
        /// Those that there are, the first of them.
        known: Vec<String>,
    },
    /// There is no limit.
    #[error("there is no [[limit]]: nothing to test")]
    NoLimit,
    /// Too many attributes.
    #[error(
        "the limits look at more than {MAX_WANTED} attributes; choose one policy with --policy"
    )]
    TooManyAttributes,
}

/// Policies that an error names.
const MAX_NAMED: usize = 20;

impl Plans {
    /// All policies, or the one of this name.
    pub(in super::super) fn new(
        policies: &Policies,
        only: Option<&str>,
    ) -> Result<Self, PlanError> {
        let mut chosen: Vec<_> = policies.iter().collect();
        chosen.sort_unstable_by_key(|(name, _)| *name);
        if let Some(only) = only {
            let known = chosen.iter().take(MAX_NAMED);
            let known = known.map(|(name, _)| (*name).to_owned()).collect();
            chosen.retain(|(name, _)| *name == only);
            if chosen.is_empty() {
                let name = only.to_owned();
                return Err(PlanError::UnknownPolicy { name, known });
            }
        }
        if chosen.is_empty() {
            return Err(PlanError::NoLimit);
        }
        let mut places = HashMap::new();
        let mut plans = Vec::new();
        for (name, policy) in chosen {
            let mut place = |attribute: &str| {
                let next = places.len();
                *places.entry(attribute.to_owned()).or_insert(next)
            };
            let mut attributes: Vec<(String, usize)> = Vec::new();
            let mut keys = Vec::new();
            for limit in policy.limits() {
                for attribute in limit.attributes() {
                    let pair = (attribute.to_owned(), place(attribute));
                    if !attributes.contains(&pair) {
                        attributes.push(pair);
                    }
                }
                keys.push(limit.key().iter().map(|name| place(name)).collect());
            }
            plans.push(Plan {
                policy: name.to_owned(),
                limits: policy.limits().to_vec(),
                attributes,
                keys,
            });
        }
        if places.len() > MAX_WANTED {
            return Err(PlanError::TooManyAttributes);
        }
        let mut wanted: Vec<_> = places.into_iter().collect();
        wanted.sort_unstable_by_key(|(_, place)| *place);
        let wanted = wanted.into_iter().map(|(name, _)| name).collect();
        Ok(Self { wanted, plans })
    }
}

impl Plan {
    /// The policy's name.
    pub(in super::super) fn policy(&self) -> &str {
        &self.policy
    }

    /// Its limits, in the order of the file.
    pub(in super::super) fn limits(&self) -> &[Arc<Limit>] {
        &self.limits
    }

    /// The attributes that it looks at, with their values; absent ones are left out.
    pub(super) fn attributes<'a>(
        &'a self,
        values: &'a [&'a str],
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.attributes.iter().filter_map(|(name, place)| {
            let value = values.get(*place).filter(|value| !value.is_empty())?;
            Some((name.as_str(), *value))
        })
    }

    /// The values that a limit counts by.
    pub(in super::super) fn key_values<'a>(
        &'a self,
        limit: usize,
        values: &'a [&'a str],
    ) -> impl Iterator<Item = &'a str> {
        let places = self.keys.get(limit).into_iter().flatten();
        places.filter_map(|place| values.get(*place).copied())
    }
}
