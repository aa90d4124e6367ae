//! One compiled limit.
//!
//! Invariant: the prefix of its key is hashed from just the parts that rule 6 names, so that a
//! changed `limit` or `hard` keeps the counter and a changed window starts a new one.

use crate::{
    attributes::Attributes,
    key::{HashKey, KeyHash, KeyHasher},
    policy::{Pattern, Tally},
    question::CheckError,
    rule::{MAX_SLICES, OldestSlice, Rule, SlidingWindow},
    spec::{AlgorithmSpec, Fallback, LimitSpec, SpecError},
    units::{MAX_UNITS, Window},
};

/// The most key attributes of a limit.
pub(super) const MAX_KEY_ATTRIBUTES: usize = 16;

/// A compiled limit.
#[derive(Debug)]
pub struct Limit {
    name: String,
    policy: String,
    kind: Kind,
    matches: Vec<(String, Vec<Pattern>)>,
    key: Vec<String>,
    rule: Rule,
    fallback: Fallback,
    fingerprint: u64,
    prefix: KeyHasher,
    tally: Tally,
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

    fn compile(
        policy: &str,
        kind: Kind,
        spec: LimitSpec,
        hash_key: &HashKey,
    ) -> Result<Self, SpecError> {
        check_name("name", &spec.name)?;
        check_key(&spec.key)?;
        let rule = rule_of(&spec.algorithm)?;
        let mut prefix = prefix_of(policy, kind, &spec.name, &rule, hash_key);
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
            rule,
            fallback: spec.fallback,
            fingerprint,
            prefix,
            tally: Tally::default(),
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
        self.kind == Kind::Inline
    }

    /// The attributes that it counts by.
    #[must_use]
    pub fn key(&self) -> &[String] {
        &self.key
    }

    /// The attributes that it looks at: those that must match, then those that it counts by.
    pub fn attributes(&self) -> impl Iterator<Item = &str> {
        let matched = self.matches.iter().map(|(attribute, _)| attribute);
        matched.chain(&self.key).map(String::as_str)
    }

    /// Its algorithm and numbers.
    #[must_use]
    pub const fn rule(&self) -> &Rule {
        &self.rule
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
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Whether the attributes match; an absent attribute does not.
    #[must_use]
    pub fn matches(&self, attributes: &Attributes<'_>) -> bool {
        self.matches.iter().all(|(attribute, patterns)| {
            attributes
                .value(attribute)
                .is_some_and(|value| patterns.iter().any(|pattern| pattern.matches(value)))
        })
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
            hasher.part(value.as_bytes());
        }
        Ok(Some(hasher.finish()))
    }

    fn without(&self, attribute: &str) -> Result<Option<KeyHash>, CheckError> {
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

fn prefix_of(policy: &str, kind: Kind, name: &str, rule: &Rule, hash_key: &HashKey) -> KeyHasher {
    let kind: &[u8] = match kind {
        Kind::Configured | Kind::Required => b"configured",
        Kind::Inline => b"inline",
    };
    let mut hasher = KeyHasher::new(hash_key);
    hasher.part(kind);
    hasher.part(policy.as_bytes());
    hasher.part(name.as_bytes());
    match rule {
        Rule::SlidingWindow(rule) => {
            hasher.part(b"sliding-window");
            hasher.part(&rule.window.span().as_nanos().to_le_bytes());
            hasher.part(&[rule.slices]);
        }
    }
    hasher
}

/// The same on every node of one build: the parts are hashed in order, with their lengths.
fn fingerprint_of(spec: &LimitSpec) -> u64 {
    let mut hasher = KeyHasher::new(&HashKey::new(*b"a limit's fields"));
    hasher.part(format!("{spec:?}").as_bytes());
    hasher.finish().high()
}

fn rule_of(spec: &AlgorithmSpec) -> Result<Rule, SpecError> {
    let AlgorithmSpec::SlidingWindow {
        limit,
        window,
        slices,
        hard,
    } = *spec;
    if limit > MAX_UNITS {
        return Err(error(
            "limit",
            format!("{limit} is too large"),
            "at most 2^53",
        ));
    }
    let Some(window) = Window::new(window) else {
        let wrong = format!("{} ns is out of range", window.as_nanos());
        return Err(error("window", wrong, "from 1ms to 3660d"));
    };
    let slices = u8::try_from(slices)
        .ok()
        .filter(|slices| (1..=MAX_SLICES).contains(slices));
    let Some(slices) = slices else {
        return Err(error(
            "slices",
            "out of range",
            "a whole number from 1 to 60",
        ));
    };
    if hard && slices < 2 {
        return Err(error(
            "hard",
            "needs two slices at least",
            "set slices = 2 or more",
        ));
    }
    let oldest = if hard {
        OldestSlice::Full
    } else {
        OldestSlice::Weighted
    };
    Ok(Rule::SlidingWindow(SlidingWindow {
        limit,
        window,
        slices,
        oldest,
    }))
}

fn check_name(field: &str, name: &str) -> Result<(), SpecError> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if (1..=64).contains(&name.len()) && name.bytes().all(legal) {
        return Ok(());
    }
    let right = "1 to 64 characters of A-Z, a-z, 0-9, '.', '_' and '-'";
    Err(error(field, format!("{name:?} is not a name"), right))
}

fn check_key(key: &[String]) -> Result<(), SpecError> {
    if key.len() > MAX_KEY_ATTRIBUTES {
        return Err(error("key", "too many attributes", "at most 16"));
    }
    if key.iter().any(String::is_empty) {
        return Err(error(
            "key",
            "an attribute has no name",
            "names of attributes",
        ));
    }
    let twice = key
        .iter()
        .enumerate()
        .find(|(at, name)| key.iter().take(*at).any(|k| k == *name));
    match twice {
        Some((_, name)) => Err(error(
            "key",
            format!("{name:?} stands twice"),
            "each name once",
        )),
        None => Ok(()),
    }
}

fn error(field: &str, wrong: impl Into<String>, right: &str) -> SpecError {
    SpecError {
        field: field.to_owned(),
        wrong: wrong.into(),
        right: right.to_owned(),
    }
}

#[cfg(test)]
mod tests;
