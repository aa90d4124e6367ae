//! Policies: compiled limits, which of them apply to a check, and the keys that they count by.
//!
//! A [`Limit`] is compiled once: its rule checked, its patterns parsed, the key's fixed parts already
//! hashed, its tally at hand, so that a check looks nothing up by name but its policy. Knows nothing
//! of files, counters or owners.

mod limit;
mod pattern;
mod tally;

use std::{collections::HashMap, sync::Arc};

use smallvec::SmallVec;

pub use self::{
    limit::{Application, Limit, parse_address},
    pattern::Pattern,
    tally::Tally,
};
use crate::{
    attributes::Attributes,
    key::{HashKey, KeyHash, KeyHasher},
    question::{Call, CheckError},
    rule::Rule,
    store::Ask,
    units::Cost,
};

/// The most limits of one policy.
pub const MAX_LIMITS_PER_POLICY: usize = 64;

/// A limit that applies to a check, and the key of its counter.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The limit.
    pub limit: Arc<Limit>,
    /// The counter.
    pub key: KeyHash,
    /// The rule of the check's tier.
    pub rule: Rule,
    /// What the check costs on this limit.
    pub cost: Cost,
}

impl Applied {
    /// What its owner is asked.
    #[must_use]
    pub const fn ask(&self) -> Ask {
        Ask {
            key: self.key,
            rule: self.rule,
            cost: self.cost,
        }
    }
}

/// The limits that apply to one check.
pub type AppliedLimits = SmallVec<[Applied; 2]>;

/// A named group of limits that are checked together.
#[derive(Debug, Default)]
pub struct Policy {
    limits: Vec<Arc<Limit>>,
    attributes: Vec<String>,
}

impl Policy {
    /// Its limits, in the order of the file.
    #[must_use]
    pub fn limits(&self) -> &[Arc<Limit>] {
        &self.limits
    }

    /// The attributes that its limits look at, each once, in the order of the file.
    #[must_use]
    pub fn attributes(&self) -> &[String] {
        &self.attributes
    }

    /// The limits that apply to a question of that cost with these attributes, in the order of the
    /// file; none where one that exempts matches. A limit of which an attribute is absent that it needs
    /// is passed by and tallied as skipped.
    ///
    /// # Errors
    /// [`CheckError`]: the caller's fault, as [`Limit::apply`] says; [`CheckError::OnlyConcurrency`] if a
    /// check meets no limit but those that it passes by.
    pub fn select(
        &self,
        attributes: &Attributes<'_>,
        cost: Cost,
        call: Call,
    ) -> Result<AppliedLimits, CheckError> {
        let mut applied = AppliedLimits::new();
        // Wherever it stands: what is exempt lacks nothing that another limit needs.
        if self.exemption(attributes).is_some() {
            return Ok(applied);
        }
        let mut passed_by = false;
        for limit in self.limits.iter().filter(|limit| limit.matches(attributes)) {
            if call == Call::Check && limit.is_concurrency() {
                passed_by = true;
                continue;
            }
            if let Some(Application { key, rule, cost }) = limit.apply(attributes, cost)? {
                applied.push(Applied {
                    limit: Arc::clone(limit),
                    key,
                    rule,
                    cost,
                });
            }
        }
        // What a proxied request lacks is no fault of whoever asks for it.
        let meets_others = || self.limits.iter().any(|limit| !limit.is_concurrency());
        let is_fault = !attributes.are_proxied() || !meets_others();
        if passed_by && applied.is_empty() && is_fault {
            return Err(CheckError::OnlyConcurrency);
        }
        Ok(applied)
    }

    /// The limit that exempts these attributes from all of the policy, if one does.
    #[must_use]
    pub fn exemption(&self, attributes: &Attributes<'_>) -> Option<&Limit> {
        let mut exempting = self.limits.iter().filter(|limit| limit.exempts());
        let found = exempting.find(|limit| limit.matches(attributes));
        found.map(AsRef::as_ref)
    }

    /// The limit of this name.
    #[must_use]
    pub fn limit(&self, name: &str) -> Option<&Arc<Limit>> {
        self.limits.iter().find(|limit| limit.name() == name)
    }
}

/// All policies of a node, immutable once made.
#[derive(Debug, Default)]
pub struct Policies {
    policies: HashMap<String, Policy>,
}

impl Policies {
    /// No policy.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a limit to a policy, which is made if it is not there.
    ///
    /// # Errors
    /// [`PolicyError`]: the writer's fault, the limit was not added.
    pub fn add(&mut self, policy: &str, limit: Limit) -> Result<(), PolicyError> {
        let policy = self.policies.entry(policy.to_owned()).or_default();
        let Policy { limits, attributes } = policy;
        if limits.iter().any(|known| known.name() == limit.name()) {
            return Err(PolicyError::NameTwice);
        }
        if limits.len() >= MAX_LIMITS_PER_POLICY {
            return Err(PolicyError::TooManyLimits);
        }
        for name in limit.attributes() {
            if !attributes.iter().any(|known| known == name) {
                attributes.push(name.to_owned());
            }
        }
        limits.push(Arc::new(limit));
        Ok(())
    }

    /// Goes on with the tallies of the policies that these take the place of, limit by limit.
    pub fn inherit(&mut self, before: &Self) {
        for (name, policy) in &mut self.policies {
            let Some(before) = before.policies.get(name) else {
                continue;
            };
            for limit in &mut policy.limits {
                if let Some(known) = before.limit(limit.name())
                    && let Some(limit) = Arc::get_mut(limit)
                {
                    limit.inherit(known);
                }
            }
        }
    }

    /// A hash of all that decides: equal on nodes whose policies are equal.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mut names: Vec<_> = self.policies.keys().collect();
        names.sort_unstable();
        let mut hasher = KeyHasher::new(&HashKey::new(*b"policies of node"));
        for name in names {
            hasher.part(name.as_bytes());
            for limit in self.policies.get(name).into_iter().flat_map(Policy::limits) {
                hasher.part(&limit.fingerprint().to_le_bytes());
            }
        }
        hasher.finish().high()
    }

    /// The policy of this name.
    #[must_use]
    pub fn policy(&self, name: &str) -> Option<&Policy> {
        self.policies.get(name)
    }

    /// All policies, by name, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Policy)> {
        self.policies
            .iter()
            .map(|(name, policy)| (name.as_str(), policy))
    }
}

/// A limit that cannot be added. The writer's fault; nothing was changed.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum PolicyError {
    /// The policy has a limit of that name.
    #[error("two limits of a policy must not have the same name")]
    NameTwice,
    /// The policy is full.
    #[error("a policy must have at most {MAX_LIMITS_PER_POLICY} limits")]
    TooManyLimits,
}

#[cfg(test)]
mod tests;
