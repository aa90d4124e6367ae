//! One compiled limit.
//!
//! Invariant: the prefix of its key is hashed from just the parts that rule 6 names, so that a
//! changed `limit` or `hard` keeps the counter and a changed window starts a new one.

mod address;
mod compile;
mod prefix;
mod tiers;

use std::{borrow::Cow, sync::Arc};

pub use self::address::parse_address;
use self::tiers::Tiers;
use crate::{
    attributes::Attributes,
    key::{HashKey, KeyHash, KeyHasher},
    policy::{Pattern, Tally},
    question::CheckError,
    rule::{Algorithm, Rule},
    spec::{CostSource, Counted, Fallback, LimitSpec, SpecError},
    units::Cost,
};

/// The most key attributes of a limit.
const MAX_KEY_ATTRIBUTES: usize = 16;
/// The key attribute that holds a client's address.
const ADDRESS: &str = "ip";

/// A compiled limit.
#[derive(Debug)]
pub struct Limit {
    name: String,
    policy: String,
    kind: Kind,
    matches: Vec<(String, Vec<Pattern>)>,
    key: Vec<String>,
    ipv6_prefix: u8,
    tiers: Tiers,
    /// The attribute and the values that a share is set aside for.
    set_aside: Option<(String, Vec<String>)>,
    cost: CostSource,
    counted: Counted,
    fallback: Fallback,
    fingerprint: u64,
    prefix: KeyHasher,
    tally: Arc<Tally>,
}

/// Where a limit comes from, and so what an absent key attribute means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// From the policies: it does not apply.
    Configured,
    /// From the policies, `required`: the check is faulty.
    Required,
    /// From the check itself: the check is faulty.
    Inline,
}

/// How a limit applies to a check: its counter, its rule, and what the check costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Application {
    /// The counter.
    pub key: KeyHash,
    /// The rule of the check's tier.
    pub rule: Rule,
    /// What the check costs on this limit; with [`Cost::ZERO`] it is admitted and not counted.
    pub cost: Cost,
}

impl Limit {
    /// Compiles a limit of a configured policy.
    ///
    /// # Errors
    /// [`SpecError`] names the first field that is wrong.
    pub fn new(policy: &str, spec: LimitSpec, hash_key: &HashKey) -> Result<Self, SpecError> {
        let kind = if spec.required {
            Kind::Required
        } else {
            Kind::Configured
        };
        Self::compile(policy, kind, spec, hash_key)
    }

    /// Compiles a limit that came with a check. It can never touch a configured limit's counter.
    ///
    /// # Errors
    /// [`SpecError`] names the first field that is wrong.
    pub fn inline(spec: LimitSpec, hash_key: &HashKey) -> Result<Self, SpecError> {
        Self::compile("", Kind::Inline, spec, hash_key)
    }

    /// Compiles a limit of the node itself. `policy` must be no legal name, so that no other limit can
    /// touch its counters.
    ///
    /// # Errors
    /// [`SpecError`] names the first field that is wrong.
    pub fn internal(policy: &str, spec: LimitSpec, hash_key: &HashKey) -> Result<Self, SpecError> {
        Self::compile(policy, Kind::Inline, spec, hash_key)
    }

    fn compile(
        policy: &str,
        kind: Kind,
        spec: LimitSpec,
        hash_key: &HashKey,
    ) -> Result<Self, SpecError> {
        compile::check_name("name", &spec.name)?;
        compile::check_key(&spec.key)?;
        let tiers = compile::tiers_of(&spec)?;
        let mut prefix = prefix::prefix_of(policy, kind, &spec.name, &tiers, hash_key);
        if let Some(first) = spec.key.first() {
            prefix.part(first.as_bytes());
        }
        let fingerprint = fingerprint_of(&spec);
        let matches = spec.matches.into_iter().map(|(attribute, patterns)| {
            (
                attribute,
                patterns
                    .iter()
                    .map(|pattern| Pattern::new(pattern))
                    .collect(),
            )
        });
        Ok(Self {
            name: spec.name,
            policy: policy.to_owned(),
            kind,
            matches: matches.collect(),
            key: spec.key,
            ipv6_prefix: spec.ipv6_prefix,
            tiers,
            set_aside: spec.set_aside.map(|share| (share.attribute, share.values)),
            cost: spec.cost,
            counted: spec.count,
            fallback: spec.fallback,
            fingerprint,
            prefix,
            tally: Arc::default(),
        })
    }

    /// Its name, unique in its policy.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its policy; empty for an inline limit.
    #[must_use]
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// Whether it came with a check.
    #[must_use]
    pub fn is_inline(&self) -> bool {
        self.kind == Kind::Inline && self.policy.is_empty()
    }

    /// Whether what it matches meets no limit of the policy at all.
    #[must_use]
    pub const fn exempts(&self) -> bool {
        matches!(self.tiers, Tiers::Exempt)
    }

    /// The attributes that it counts by.
    #[must_use]
    pub fn key(&self) -> &[String] {
        &self.key
    }

    /// The attributes that it looks at, in no order; one may stand twice.
    pub fn attributes(&self) -> impl Iterator<Item = &str> {
        let matched = self.matches.iter().map(|(attribute, _)| attribute.as_str());
        let cost = match &self.cost {
            CostSource::Request => None,
            CostSource::Attribute(attribute) => Some(attribute.as_str()),
        };
        let set_aside = self
            .set_aside
            .iter()
            .map(|(attribute, _)| attribute.as_str());
        matched
            .chain(self.tiers.attribute())
            .chain(set_aside)
            .chain(cost)
            .chain(self.key.iter().map(String::as_str))
    }

    /// The rule that holds where no check says which tier: that of the default one. `None` if there is
    /// none since all is unlimited.
    #[must_use]
    pub fn usual_rule(&self) -> Option<&Rule> {
        self.tiers.usual().map(|rules| &rules.named)
    }

    /// Whether it is about permits, which checks pass by.
    #[must_use]
    pub fn is_concurrency(&self) -> bool {
        let rule = self.usual_rule();
        rule.is_some_and(|rule| matches!(rule.algorithm, Algorithm::Concurrency(_)))
    }

    /// Where the cost of a check comes from.
    #[must_use]
    pub const fn cost_source(&self) -> &CostSource {
        &self.cost
    }

    /// What it counts.
    #[must_use]
    pub const fn counted(&self) -> Counted {
        self.counted
    }

    /// What decides when its owner does not answer.
    #[must_use]
    pub const fn fallback(&self) -> Fallback {
        self.fallback
    }

    /// A hash of all that it was compiled from.
    pub(super) const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// What became of its checks on this node.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Goes on with the tally of the limit that it takes the place of.
    pub(super) fn inherit(&mut self, before: &Self) {
        self.tally = Arc::clone(&before.tally);
    }

    /// Whether the attributes match; an absent attribute does not.
    #[must_use]
    pub fn matches(&self, attributes: &Attributes<'_>) -> bool {
        self.mismatch(attributes).is_none()
    }

    /// The first attribute that does not match; `None` if all do.
    #[must_use]
    pub fn mismatch(&self, attributes: &Attributes<'_>) -> Option<&str> {
        let mismatched = self.matches.iter().find(|(attribute, patterns)| {
            let value = attributes.value(attribute);
            !value.is_some_and(|value| patterns.iter().any(|pattern| pattern.matches(value)))
        });
        mismatched.map(|(attribute, _)| attribute.as_str())
    }

    /// What a value of a key attribute counts as: an address as its network, all else as itself.
    #[must_use]
    pub fn counted_value<'v>(&self, attribute: &str, value: &'v str) -> Cow<'v, str> {
        if attribute == ADDRESS {
            address::bucket(value, self.ipv6_prefix)
        } else {
            Cow::Borrowed(value)
        }
    }

    /// The rule that holds for these attributes; `None` where all is unlimited.
    #[must_use]
    pub fn rule_of(&self, attributes: &Attributes<'_>) -> Option<Rule> {
        let rules = self.tiers.rules(attributes)?;
        let Some((attribute, values)) = &self.set_aside else {
            return Some(rules.named);
        };
        let value = attributes.value(attribute);
        let is_named = value.is_some_and(|value| values.iter().any(|one| one == value));
        Some(if is_named { rules.named } else { rules.others })
    }

    /// How the limit applies to a check of that cost with these attributes; `None`, tallied, if it does
    /// not since an attribute is absent that it needs, and untallied if the check's tier is unlimited.
    ///
    /// # Errors
    /// [`CheckError`] if the absence, or a cost that is none, is the caller's fault.
    pub fn apply(
        &self,
        attributes: &Attributes<'_>,
        cost: Cost,
    ) -> Result<Option<Application>, CheckError> {
        let Some(rule) = self.rule_of(attributes) else {
            return Ok(None);
        };
        let Some(key) = self.key_of(attributes)? else {
            return Ok(None);
        };
        let cost = match &self.cost {
            CostSource::Request => Some(cost),
            CostSource::Attribute(name) => self.cost_of(name, attributes)?,
        };
        Ok(cost.map(|cost| Application { key, rule, cost }))
    }

    /// The counter that these attributes belong to; `None`, tallied, if one is absent and the limit
    /// then does not apply.
    ///
    /// # Errors
    /// [`CheckError::Required`] or [`CheckError::EmptyKey`] if the absence is the caller's fault.
    pub fn key_of(&self, attributes: &Attributes<'_>) -> Result<Option<KeyHash>, CheckError> {
        let mut hasher = self.prefix.clone();
        for (at, attribute) in self.key.iter().enumerate() {
            let Some(value) = attributes.value(attribute) else {
                return self.without(attribute);
            };
            // The name of the first is the end of the prefix.
            if at > 0 {
                hasher.part(attribute.as_bytes());
            }
            hasher.part(self.counted_value(attribute, value).as_bytes());
        }
        Ok(Some(hasher.finish()))
    }

    fn cost_of(
        &self,
        attribute: &str,
        attributes: &Attributes<'_>,
    ) -> Result<Option<Cost>, CheckError> {
        let Some(value) = attributes.value(attribute) else {
            return self.without(attribute);
        };
        let cost = value.parse().ok().and_then(|units| Cost::new(units).ok());
        match cost {
            Some(cost) => Ok(Some(cost)),
            // Nothing about a proxied request is an error.
            None if attributes.are_proxied() => self.without(attribute),
            None => Err(CheckError::NoCost {
                limit: self.name.clone(),
                attribute: attribute.to_owned(),
            }),
        }
    }

    fn without<T>(&self, attribute: &str) -> Result<Option<T>, CheckError> {
        match self.kind {
            Kind::Configured => {
                self.tally.skip();
                Ok(None)
            }
            Kind::Required => Err(CheckError::Required {
                limit: self.name.clone(),
                attribute: attribute.to_owned(),
            }),
            Kind::Inline => Err(CheckError::EmptyKey {
                attribute: attribute.to_owned(),
            }),
        }
    }
}

/// The same on every node of one build: the parts are hashed in order, with their lengths.
fn fingerprint_of(spec: &LimitSpec) -> u64 {
    let mut hasher = KeyHasher::new(&HashKey::new(*b"a limit's fields"));
    hasher.part(format!("{spec:?}").as_bytes());
    hasher.finish().high()
}

#[cfg(test)]
mod tests;
