//! `policies.toml`: which limits there are.
//!
//! Knows the file's form only; what a limit may be is for `tollgate-limit` to say, whose words are
//! shown at the place in the file that they are about. Invariant: a file is taken as a whole or not.

mod algorithm;
mod raw_limit;
mod settings;
mod terms;

use std::{collections::HashMap, ops::Range, path::Path};

use tollgate_limit::{
    DEFAULT_POLICY, HashKey, KeyHash, KeyHasher, Limit, LimitNumber, LimitSpec, Policies,
    PolicyError,
};
use toml::Spanned;

use self::raw_limit::{Places, RawFile, RawLimit};
pub use self::settings::{PolicySettings, Settings};
use super::{error::ConfigError, source::Source};

/// The validated `policies.toml`.
#[derive(Debug)]
pub struct PolicyFile {
    /// The compiled policies.
    pub policies: Policies,
    /// What the policies say beside their limits.
    pub settings: Settings,
    /// What it was compiled from.
    pub digest: Digest,
}

/// A hash of a file's bytes: equal for equal files of one build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(KeyHash);

/// The file as it was read at one moment, not compiled yet.
#[derive(Clone, Debug)]
pub struct PolicyText(Source);

impl PolicyText {
    /// Reads the file.
    ///
    /// # Errors
    /// [`ConfigError`]: it is not there, not UTF-8 or too long. The operator's fault.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        Source::read(file).map(Self)
    }

    /// What tells it from other texts.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut hasher = KeyHasher::new(&HashKey::new(*b"a file's content"));
        hasher.part(self.0.text().as_bytes());
        Digest(hasher.finish())
    }

    /// Compiles it.
    ///
    /// # Errors
    /// [`ConfigError`]: the operator's fault.
    pub fn compile(&self, hash_key: &HashKey) -> Result<PolicyFile, ConfigError> {
        let source = &self.0;
        let raw: RawFile = source.parse().map_err(with_form)?;
        let mut policies = Policies::new();
        let mut names = HashMap::new();
        for limit in raw.limit {
            add_limit(source, limit, hash_key, &mut policies, &mut names)?;
        }
        let settings = Settings::compile(source, raw.policy, &policies)?;
        Ok(PolicyFile {
            policies,
            settings,
            digest: self.digest(),
        })
    }
}

impl PolicyFile {
    /// Reads and compiles the file.
    ///
    /// # Errors
    /// [`ConfigError`]: the operator's fault.
    pub fn load(file: &Path, hash_key: &HashKey) -> Result<Self, ConfigError> {
        PolicyText::read(file)?.compile(hash_key)
    }

    /// Compiles a text that stands for a file.
    ///
    /// # Errors
    /// [`ConfigError`]: the writer's fault.
    pub fn parse(file: &Path, text: &str, hash_key: &HashKey) -> Result<Self, ConfigError> {
        PolicyText(Source::new(file, text)).compile(hash_key)
    }
}

/// Adds what a field looks like to the word that it is missing.
fn with_form(error: ConfigError) -> ConfigError {
    let ConfigError::Mistake(mut mistake) = error else {
        return error;
    };
    let missing = mistake.wrong.strip_prefix("missing field `");
    let missing = missing.and_then(|rest| rest.strip_suffix('`'));
    let form = FORMS.iter().find(|(name, _)| Some(*name) == missing);
    if let Some((_, form)) = form {
        (*form).clone_into(&mut mistake.right);
    }
    ConfigError::Mistake(mistake)
}

/// The fields that must be there, and what they look like.
const FORMS: [(&str, &str); 6] = [
    ("name", "write name = \"per-ip\""),
    ("by", "write by = \"plan\", the name of an attribute"),
    ("values", "write values of that attribute"),
    ("default", "write default = 60, for all other values"),
    ("share", "write share = 0.2, what is kept for these values"),
    ("for", "write for = \"1h\""),
];

fn add_limit(
    source: &Source,
    raw: Spanned<RawLimit>,
    hash_key: &HashKey,
    policies: &mut Policies,
    names: &mut HashMap<(String, String), Range<usize>>,
) -> Result<(), ConfigError> {
    let table = raw.span();
    let raw = raw.into_inner();
    let places = Places::of(&raw, table);
    let policy = raw
        .policy
        .as_ref()
        .map_or(DEFAULT_POLICY, |name| name.get_ref());
    check_policy_name(source, policy, places.place("policy"))?;
    let policy = policy.to_owned();
    let name = raw.name.get_ref().clone();
    let spec = spec_of(source, &places, raw)?;
    let limit = Limit::new(&policy, spec, hash_key)
        .map_err(|error| source.spec_mistake(places.place(&error.field), error))?;
    let at = places.place("name");
    policies.add(&policy, limit).map_err(|error| {
        let first = names.get(&(policy.clone(), name.clone()));
        let right = match (error, first) {
            (PolicyError::NameTwice, Some(first)) => {
                format!("the first is in line {}", source.line_of(first))
            }
            (PolicyError::NameTwice | PolicyError::TooManyLimits, _) => String::new(),
        };
        source.mistake(at, "name", error.to_string(), right)
    })?;
    names.insert((policy, name), at.clone());
    Ok(())
}

fn spec_of(source: &Source, places: &Places, raw: RawLimit) -> Result<LimitSpec, ConfigError> {
    let limit = terms::number_of(source, places, &raw)?;
    let unlimited = limit == LimitNumber::Unlimited;
    Ok(LimitSpec {
        algorithm: algorithm::algorithm_of(source, places, &raw, unlimited)?,
        ipv6_prefix: terms::ipv6_prefix_of(source, &raw)?,
        fallback: terms::fallback_of(source, raw.fallback.as_ref(), raw.share.as_ref())?,
        cost: terms::cost_of(raw.cost.as_ref()),
        count: terms::counted_of(source, raw.count.as_ref())?,
        ban: raw.ban.as_ref().map(|ban| terms::ban_of(ban.get_ref())),
        set_aside: raw
            .set_aside
            .as_ref()
            .map(|share| terms::set_aside_of(share.get_ref())),
        limit,
        name: raw.name.into_inner(),
        matches: raw
            .matches
            .into_iter()
            .map(|(name, texts)| (name, texts.0))
            .collect(),
        key: raw.key.map(Spanned::into_inner).unwrap_or_default(),
        required: raw.required,
        shadow: raw.shadow,
    })
}

fn check_policy_name(source: &Source, name: &str, span: &Range<usize>) -> Result<(), ConfigError> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if (1..=64).contains(&name.len()) && name.bytes().all(legal) {
        return Ok(());
    }
    let right = "1 to 64 characters of A-Z, a-z, 0-9, '.', '_' and '-'";
    Err(source.mistake(span, "policy", format!("{name:?} is not a name"), right))
}
