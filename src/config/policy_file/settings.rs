//! `[[policy]]`: what all limits of a policy share.

use std::collections::HashMap;

use http::StatusCode;
use tollgate_api::{Family, HeaderFamilies};
use tollgate_limit::Policies;
use toml::Spanned;

use super::raw_limit::RawPolicy;
use crate::config::{error::ConfigError, raw::Whole, source::Source};

/// What all limits of a policy share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicySettings {
    /// The families of rate limit headers that answers carry.
    pub headers: HeaderFamilies,
    /// The status of a refusal that a proxy is told, 400 to 599.
    pub deny_status: StatusCode,
}

impl Default for PolicySettings {
    fn default() -> Self {
        Self {
            headers: HeaderFamilies::default(),
            deny_status: StatusCode::TOO_MANY_REQUESTS,
        }
    }
}

/// The settings of all policies. At most one entry for each policy that has a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    by_policy: HashMap<String, PolicySettings>,
}

impl Settings {
    /// Those of a policy; the default ones if the file says nothing of it.
    #[must_use]
    pub fn of(&self, policy: &str) -> PolicySettings {
        self.by_policy.get(policy).copied().unwrap_or_default()
    }

    pub(super) fn compile(
        source: &Source,
        raw: Vec<RawPolicy>,
        policies: &Policies,
    ) -> Result<Self, ConfigError> {
        let mut by_policy = HashMap::new();
        for policy in raw {
            let (name, span) = (policy.name.get_ref().clone(), policy.name.span());
            if policies.policy(&name).is_none() {
                let right = "give it a [[limit]] with this policy, or remove it";
                let wrong = format!("policy {name:?} has no limit");
                return Err(source.mistake(&span, "name", wrong, right));
            }
            let settings = PolicySettings {
                headers: families_of(source, policy.headers)?,
                deny_status: deny_status_of(source, policy.deny_status.as_ref())?,
            };
            if by_policy.insert(name.clone(), settings).is_some() {
                let right = "write one [[policy]] for each";
                let wrong = format!("policy {name:?} stands twice");
                return Err(source.mistake(&span, "name", wrong, right));
            }
        }
        Ok(Self { by_policy })
    }
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
            let wrong = format!("{:?} is not a family of headers", name.get_ref());
            let right =
                "write \"x-ratelimit\", \"draft-6\", \"draft-7\", \"draft-10\", or \"none\" alone";
            return Err(source.mistake(&name.span(), "headers", wrong, right));
        };
        families = families.with(family).map_err(|error| {
            let right = "write one of \"draft-6\", \"draft-7\" and \"draft-10\"";
            source.mistake(&name.span(), "headers", error.to_string(), right)
        })?;
    }
    Ok(families)
}

fn deny_status_of(
    source: &Source,
    raw: Option<&Spanned<Whole>>,
) -> Result<StatusCode, ConfigError> {
    let Some(raw) = raw else {
        return Ok(PolicySettings::default().deny_status);
    };
    let number = raw.get_ref().0;
    let status = u16::try_from(number).ok().and_then(|number| {
        let status = StatusCode::from_u16(number).ok()?;
        (400..600).contains(&number).then_some(status)
    });
    status.ok_or_else(|| {
        let wrong = format!("{number} is not the status of a refusal");
        source.mistake(&raw.span(), "deny_status", wrong, "from 400 to 599")
    })
}
