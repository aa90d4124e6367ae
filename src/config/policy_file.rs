//! `policies.toml`: which limits there are.
//!
//! Knows the file's form only; what a limit may be is for `tollgate-limit` to say, whose words are
//! shown at the place in the file that they are about.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
    path::Path,
};

use serde::Deserialize;
use tollgate_api::{Family, HeaderFamilies};
use tollgate_limit::{
    AlgorithmSpec, CostSource, Counted, DEFAULT_IPV6_PREFIX, DEFAULT_POLICY, DEFAULT_SLICES,
    Fallback, HashKey, Limit, LimitNumber, LimitSpec, Policies, PolicyError,
};
use toml::Spanned;

use super::{
    error::ConfigError,
    raw::{Span, Texts, Whole},
    source::Source,
};

/// Header families by policy; a policy that is absent has the default ones.
pub type HeadersByPolicy = HashMap<String, HeaderFamilies>;

/// The validated `policies.toml`.
#[derive(Debug)]
pub struct PolicyFile {
    /// The compiled policies.
    pub policies: Policies,
    /// The header families of the policies that name some.
    pub headers: HeadersByPolicy,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    policy: Vec<RawPolicy>,
    #[serde(default)]
    limit: Vec<Spanned<RawLimit>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPolicy {
    name: Spanned<String>,
    headers: Option<Vec<Spanned<String>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLimit {
    policy: Option<Spanned<String>>,
    name: Spanned<String>,
    #[serde(rename = "match", default)]
    matches: BTreeMap<String, Texts>,
    #[serde(default)]
    key: Option<Spanned<Vec<String>>>,
    algorithm: Option<Spanned<String>>,
    limit: Spanned<Whole>,
    window: Spanned<Span>,
    slices: Option<Spanned<Whole>>,
    hard: Option<Spanned<bool>>,
    fallback: Option<Spanned<String>>,
    share: Option<Spanned<String>>,
    #[serde(default)]
    required: bool,
}

impl PolicyFile {
    /// Reads and compiles the file.
    ///
    /// # Errors
    /// [`ConfigError`]: the operator's fault.
    pub fn load(file: &Path, hash_key: &HashKey) -> Result<Self, ConfigError> {
        Self::compile(&Source::read(file)?, hash_key)
    }

    /// Compiles a text that stands for a file.
    ///
    /// # Errors
    /// [`ConfigError`]: the writer's fault.
    pub fn parse(file: &Path, text: &str, hash_key: &HashKey) -> Result<Self, ConfigError> {
        Self::compile(&Source::new(file, text), hash_key)
    }

    fn compile(source: &Source, hash_key: &HashKey) -> Result<Self, ConfigError> {
        let raw: RawFile = source.parse()?;
        let mut policies = Policies::new();
        let mut lines = HashMap::new();
        for limit in raw.limit {
            add_limit(source, limit, hash_key, &mut policies, &mut lines)?;
        }
        let headers = headers_of(source, raw.policy, &policies)?;
        Ok(Self { policies, headers })
    }
}

fn add_limit(
    source: &Source,
    raw: Spanned<RawLimit>,
    hash_key: &HashKey,
    policies: &mut Policies,
    lines: &mut HashMap<(String, String), usize>,
) -> Result<(), ConfigError> {
    let table = raw.span();
    let raw = raw.into_inner();
    let spans = LimitSpans::of(&raw, table);
    let policy = raw
        .policy
        .as_ref()
        .map_or(DEFAULT_POLICY, |name| name.get_ref());
    check_policy_name(source, policy, spans.policy.clone())?;
    let policy = policy.to_owned();
    let name = raw.name.get_ref().clone();
    let spec = spec_of(source, raw)?;
    let limit = Limit::new(&policy, spec, hash_key)
        .map_err(|error| source.spec_mistake(spans.field(&error.field), error))?;
    policies.add(&policy, limit).map_err(|error| {
        let first = lines.get(&(policy.clone(), name.clone())).copied();
        let right = match (error, first) {
            (PolicyError::NameTwice, Some(line)) => format!("the first is in line {line}"),
            (PolicyError::NameTwice | PolicyError::TooManyLimits, _) => String::new(),
        };
        source.mistake(&spans.name, "name", error.to_string(), right)
    })?;
    lines.insert((policy, name), source.line_of(&spans.name));
    Ok(())
}

fn spec_of(source: &Source, raw: RawLimit) -> Result<LimitSpec, ConfigError> {
    check_algorithm(source, raw.algorithm.as_ref())?;
    Ok(LimitSpec {
        fallback: fallback_of(source, raw.fallback.as_ref(), raw.share.as_ref())?,
        name: raw.name.into_inner(),
        matches: raw
            .matches
            .into_iter()
            .map(|(name, texts)| (name, texts.0))
            .collect(),
        key: raw.key.map(Spanned::into_inner).unwrap_or_default(),
        limit: LimitNumber::One(raw.limit.get_ref().0),
        algorithm: AlgorithmSpec::SlidingWindow {
            window: raw.window.get_ref().0,
            slices: raw
                .slices
                .map_or(DEFAULT_SLICES, |slices| slices.get_ref().0),
            hard: raw.hard.is_some_and(Spanned::into_inner),
        },
        required: raw.required,
        ipv6_prefix: DEFAULT_IPV6_PREFIX,
        cost: CostSource::Request,
        count: Counted::Requests,
        ban: None,
        set_aside: None,
        shadow: false,
    })
}

/// Algorithms that the design names and that this version does not have.
const LATER_ALGORITHMS: [&str; 5] = [
    "sliding-log",
    "fixed-window",
    "token-bucket",
    "leaky-bucket",
    "concurrency",
];

fn check_algorithm(source: &Source, raw: Option<&Spanned<String>>) -> Result<(), ConfigError> {
    let Some(algorithm) = raw.filter(|name| name.get_ref() != "sliding-window") else {
        return Ok(());
    };
    let name = algorithm.get_ref();
    let wrong = if LATER_ALGORITHMS.contains(&name.as_str()) {
        format!("{name:?} is not available in this version")
    } else {
        format!("{name:?} is not an algorithm")
    };
    let right = "write \"sliding-window\", or leave it out";
    Err(source.mistake(&algorithm.span(), "algorithm", wrong, right))
}

fn fallback_of(
    source: &Source,
    fallback: Option<&Spanned<String>>,
    share: Option<&Spanned<String>>,
) -> Result<Fallback, ConfigError> {
    let kind = match fallback.map(|text| (text.get_ref().as_str(), text.span())) {
        None | Some(("local", _)) => Fallback::LocalFull,
        Some(("allow", _)) => Fallback::Allow,
        Some(("deny", _)) => Fallback::Deny,
        Some((other, span)) => {
            let wrong = format!("{other:?} is not a fallback");
            let right = "write \"local\", \"allow\" or \"deny\"";
            return Err(source.mistake(&span, "fallback", wrong, right));
        }
    };
    let Some((share, span)) = share.map(|text| (text.get_ref().as_str(), text.span())) else {
        return Ok(kind);
    };
    if kind != Fallback::LocalFull {
        let right = "write fallback = \"local\", or leave share out";
        return Err(source.mistake(&span, "share", "is only for the local fallback", right));
    }
    match share {
        "full" => Ok(Fallback::LocalFull),
        "fair" => Ok(Fallback::LocalFair),
        other => {
            let wrong = format!("{other:?} is not a share");
            Err(source.mistake(&span, "share", wrong, "write \"full\" or \"fair\""))
        }
    }
}

fn headers_of(
    source: &Source,
    raw: Vec<RawPolicy>,
    policies: &Policies,
) -> Result<HeadersByPolicy, ConfigError> {
    let mut headers = HashMap::new();
    for policy in raw {
        let (name, span) = (policy.name.get_ref().clone(), policy.name.span());
        if policies.policy(&name).is_none() {
            let right = "give it a [[limit]] with this policy, or remove it";
            return Err(source.mistake(
                &span,
                "name",
                format!("policy {name:?} has no limit"),
                right,
            ));
        }
        let families = families_of(source, policy.headers)?;
        if headers.insert(name.clone(), families).is_some() {
            let right = "write one [[policy]] for each";
            return Err(source.mistake(
                &span,
                "name",
                format!("policy {name:?} stands twice"),
                right,
            ));
        }
    }
    Ok(headers)
}

fn families_of(
    source: &Source,
    raw: Option<Vec<Spanned<String>>>,
) -> Result<HeaderFamilies, ConfigError> {
    let Some(names) = raw else {
        return Ok(HeaderFamilies::default());
    };
    let alone = names.len() == 1;
    let mut families = HeaderFamilies::NONE;
    for name in names {
        if alone && name.get_ref() == "none" {
            break;
        }
        let Some(family) = Family::from_name(name.get_ref()) else {
            let wrong = format!(
                "{:?} is not a family of headers in this version",
                name.get_ref()
            );
            let right = "write \"x-ratelimit\", \"draft-10\", or \"none\" alone";
            return Err(source.mistake(&name.span(), "headers", wrong, right));
        };
        families = families.with(family);
    }
    Ok(families)
}

fn check_policy_name(source: &Source, name: &str, span: Range<usize>) -> Result<(), ConfigError> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if (1..=64).contains(&name.len()) && name.bytes().all(legal) {
        return Ok(());
    }
    let right = "1 to 64 characters of A-Z, a-z, 0-9, '.', '_' and '-'";
    Err(source.mistake(&span, "policy", format!("{name:?} is not a name"), right))
}

/// Where the fields of a limit stand; those that are absent, where the table starts.
#[derive(Debug)]
struct LimitSpans {
    table: Range<usize>,
    policy: Range<usize>,
    name: Range<usize>,
    key: Range<usize>,
    limit: Range<usize>,
    window: Range<usize>,
    slices: Range<usize>,
    hard: Range<usize>,
}

impl LimitSpans {
    fn of(raw: &RawLimit, table: Range<usize>) -> Self {
        fn span<T>(field: Option<&Spanned<T>>, table: &Range<usize>) -> Range<usize> {
            field.map_or_else(|| table.clone(), Spanned::span)
        }
        Self {
            policy: span(raw.policy.as_ref(), &table),
            name: raw.name.span(),
            key: span(raw.key.as_ref(), &table),
            limit: raw.limit.span(),
            window: raw.window.span(),
            slices: span(raw.slices.as_ref(), &table),
            hard: span(raw.hard.as_ref(), &table),
            table,
        }
    }

    fn field(&self, name: &str) -> &Range<usize> {
        match name {
            "name" => &self.name,
            "key" => &self.key,
            "limit" => &self.limit,
            "window" => &self.window,
            "slices" => &self.slices,
            "hard" => &self.hard,
            _ => &self.table,
        }
    }
}
