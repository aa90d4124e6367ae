//! What a limit says beside its algorithm: how much, what it counts, what follows, what happens without
//! the owner.

use tollgate_limit::{
    BanSpec, CostSource, Counted, DEFAULT_IPV6_PREFIX, Fallback, LimitNumber, SetAsideSpec,
};
use toml::Spanned;

use super::raw_limit::{Places, RawBan, RawLimit, RawNumber, RawSetAside};
use crate::config::{error::ConfigError, source::Source};

/// The attribute whose values are grouped by network.
const ADDRESS: &str = "ip";

/// How much: `limit`, or `unlimited` in its place.
pub(super) fn number_of(
    source: &Source,
    places: &Places,
    raw: &RawLimit,
) -> Result<LimitNumber, ConfigError> {
    let unlimited = raw.unlimited.as_ref().is_some_and(|it| *it.get_ref());
    match raw.limit.as_ref().map(Spanned::get_ref) {
        Some(_) if unlimited => {
            let right = "remove one of the two";
            let wrong = "stands beside unlimited = true";
            Err(source.mistake(places.place("limit"), "limit", wrong, right))
        }
        None if unlimited => Ok(LimitNumber::Unlimited),
        None => {
            let right = "write limit = 100, or unlimited = true";
            Err(source.mistake(places.place("limit"), "limit", "is missing", right))
        }
        Some(RawNumber::One(limit)) => Ok(LimitNumber::One(*limit)),
        Some(RawNumber::By(tiers)) => {
            let values = tiers.values.iter();
            Ok(LimitNumber::By {
                attribute: tiers.by.get_ref().clone(),
                values: values
                    .map(|(value, number)| (value.clone(), number.get_ref().0))
                    .collect(),
                default: tiers.default.get_ref().0,
            })
        }
    }
}

/// How addresses are grouped, which only a limit by address can say.
pub(super) fn ipv6_prefix_of(source: &Source, raw: &RawLimit) -> Result<u8, ConfigError> {
    let Some(prefix) = &raw.ipv6_prefix else {
        return Ok(DEFAULT_IPV6_PREFIX);
    };
    let mistake =
        |wrong: String, right| Err(source.mistake(&prefix.span(), "ipv6_prefix", wrong, right));
    let key = raw.key.as_ref().map(|key| key.get_ref().as_slice());
    if !key.unwrap_or_default().iter().any(|name| name == ADDRESS) {
        let wrong = format!("is for limits by the attribute {ADDRESS:?}");
        return mistake(wrong, "set key = [\"ip\"], or remove it");
    }
    match u8::try_from(prefix.get_ref().0) {
        Ok(bits @ 1..=128) => Ok(bits),
        Ok(_) | Err(_) => mistake(
            format!("{} is out of range", prefix.get_ref().0),
            "a whole number from 1 to 128",
        ),
    }
}

pub(super) fn cost_of(raw: Option<&Spanned<String>>) -> CostSource {
    raw.map_or(CostSource::Request, |attribute| {
        CostSource::Attribute(attribute.get_ref().clone())
    })
}

pub(super) fn counted_of(
    source: &Source,
    raw: Option<&Spanned<String>>,
) -> Result<Counted, ConfigError> {
    match raw.map(|text| (text.get_ref().as_str(), text.span())) {
        None | Some(("requests", _)) => Ok(Counted::Requests),
        Some(("failures", _)) => Ok(Counted::Failures),
        Some((other, span)) => {
            let wrong = format!("{other:?} cannot be counted");
            let right = "write \"requests\" or \"failures\"";
            Err(source.mistake(&span, "count", wrong, right))
        }
    }
}

pub(super) fn ban_of(raw: &RawBan) -> BanSpec {
    BanSpec {
        length: raw.length.get_ref().0,
        escalate: raw.escalate.as_ref().map_or(1.0, |by| by.get_ref().0),
        longest: raw.max.as_ref().map(|max| max.get_ref().0),
    }
}

pub(super) fn set_aside_of(raw: &RawSetAside) -> SetAsideSpec {
    SetAsideSpec {
        attribute: raw.by.get_ref().clone(),
        values: raw.values.get_ref().0.clone(),
        share: raw.share.get_ref().0,
    }
}

pub(super) fn fallback_of(
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
