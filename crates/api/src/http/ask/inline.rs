//! A limit that comes with a check, read into the spec that TOML fills too.
//!
//! What belongs to policies alone has no field here: `match`, `key`, tiers, `cost`, `count`, `ban`,
//! `set_aside`. Knows nothing of the bounds of numbers.

mod numbers;

use std::borrow::Cow;

use serde::de::{IgnoredAny, MapAccess};
use tollgate_limit::{CalendarUnit, Fallback, LimitNumber, LimitSpec, Nanos};

use self::numbers::{ALGORITHM, ALGORITHMS, CALENDAR, CALENDARS, Numbers, SLICES, TTL, WINDOW};
use super::field::{UNITS, keep, not_an_object, one_of, set, text, truth, units, unknown, whole};
use crate::{
    duration,
    fault::Fault,
    http::json::{Members, Object, Value},
};

const FIELDS: &str = "`name`, `limit`, `algorithm`, `window`, `calendar`, `time_zone`, `slices`, `hard`, `burst`, `queue`, `ttl`, `shadow`, `fallback` and `share` are the fields";

/// The members of `limit`, as they come.
#[derive(Debug, Default)]
pub(super) struct InlineBody<'a> {
    name: Option<Cow<'a, str>>,
    limit: Option<u64>,
    numbers: Numbers<'a>,
    shadow: Option<bool>,
    fallback: Option<FallbackName>,
    share: Option<Share>,
    fault: Option<Box<Fault>>,
}

#[derive(Clone, Copy, Debug)]
enum FallbackName {
    Local,
    Allow,
    Deny,
}

#[derive(Clone, Copy, Debug)]
enum Share {
    Full,
    Fair,
}

impl<'a> InlineBody<'a> {
    /// Reads the object that is the next value of `map`.
    pub(super) fn read<A: MapAccess<'a>>(map: &mut A) -> Result<Result<Self, Fault>, A::Error> {
        let mut limit = Self::default();
        let shape = map.next_value_seed(Object(&mut limit))?;
        Ok(match (shape, limit.fault.take()) {
            (Err(value), _) => Err(not_an_object("limit", &value)),
            (Ok(()), Some(fault)) => Err(*fault),
            (Ok(()), None) => Ok(limit),
        })
    }

    /// The spec of a limit that counts by `key`.
    pub(super) fn finish(self, key: Vec<String>) -> Result<LimitSpec, Fault> {
        let missing = |field: &str, right: &'static str| Fault::new(field, "missing", right);
        let name = self
            .name
            .ok_or_else(|| missing("limit.name", "a name such as \"login\""))?;
        let limit = self.limit.ok_or_else(|| missing("limit.limit", UNITS))?;
        Ok(LimitSpec {
            key,
            shadow: self.shadow.unwrap_or(false),
            fallback: fallback_of(self.fallback, self.share)?,
            ..LimitSpec::new(&name, LimitNumber::One(limit), self.numbers.finish()?)
        })
    }

    /// Reads the value of one member.
    fn put<A: MapAccess<'a>>(
        &mut self,
        name: &str,
        map: &mut A,
    ) -> Result<Result<(), Fault>, A::Error> {
        let numbers = &mut self.numbers;
        Ok(match name {
            "name" => {
                let name = text("limit.name", map.next_value()?);
                set(&mut self.name, "limit.name", name)
            }
            "limit" => {
                let limit = units("limit.limit", &map.next_value()?);
                set(&mut self.limit, "limit.limit", limit)
            }
            "algorithm" => {
                let field = "limit.algorithm";
                let named = one_of(field, &map.next_value()?, &ALGORITHMS, ALGORITHM);
                set(&mut numbers.algorithm, field, named)
            }
            "window" => {
                let window = span("limit.window", &map.next_value()?, WINDOW);
                set(&mut numbers.window, "limit.window", window)
            }
            "calendar" => {
                let unit = calendar(&map.next_value()?);
                set(&mut numbers.calendar, "limit.calendar", unit)
            }
            "time_zone" => {
                let zone = text("limit.time_zone", map.next_value()?);
                set(&mut numbers.time_zone, "limit.time_zone", zone)
            }
            "slices" => {
                let slices = whole("limit.slices", &map.next_value()?, SLICES);
                set(&mut numbers.slices, "limit.slices", slices)
            }
            "hard" => {
                let hard = truth("limit.hard", &map.next_value()?);
                set(&mut numbers.hard, "limit.hard", hard)
            }
            "burst" => {
                let burst = units("limit.burst", &map.next_value()?);
                set(&mut numbers.burst, "limit.burst", burst)
            }
            "queue" => {
                let queue = units("limit.queue", &map.next_value()?);
                set(&mut numbers.queue, "limit.queue", queue)
            }
            "ttl" => {
                let ttl = span("limit.ttl", &map.next_value()?, TTL);
                set(&mut numbers.ttl, "limit.ttl", ttl)
            }
            other => return self.put_term(other, map),
        })
    }

    /// Reads the value of a member that is no number.
    fn put_term<A: MapAccess<'a>>(
        &mut self,
        name: &str,
        map: &mut A,
    ) -> Result<Result<(), Fault>, A::Error> {
        Ok(match name {
            "shadow" => {
                let shadow = truth("limit.shadow", &map.next_value()?);
                set(&mut self.shadow, "limit.shadow", shadow)
            }
            "fallback" => {
                let named = one_of("limit.fallback", &map.next_value()?, &FALLBACKS, FALLBACK);
                set(&mut self.fallback, "limit.fallback", named)
            }
            "share" => {
                let named = one_of("limit.share", &map.next_value()?, &SHARES, SHARE);
                set(&mut self.share, "limit.share", named)
            }
            other => {
                map.next_value::<IgnoredAny>()?;
                Err(unknown("limit.", other, FIELDS))
            }
        })
    }
}

impl<'a> Members<'a> for InlineBody<'a> {
    fn member<A: MapAccess<'a>>(
        &mut self,
        name: Cow<'a, str>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        let put = self.put(&name, map)?;
        keep(&mut self.fault, put);
        Ok(())
    }
}

const FALLBACK: &str = "\"local\", \"allow\" or \"deny\"";
const FALLBACKS: [(&str, FallbackName); 3] = [
    ("local", FallbackName::Local),
    ("allow", FallbackName::Allow),
    ("deny", FallbackName::Deny),
];
const SHARE: &str = "\"full\" or \"fair\"";
const SHARES: [(&str, Share); 2] = [("full", Share::Full), ("fair", Share::Fair)];

fn fallback_of(fallback: Option<FallbackName>, share: Option<Share>) -> Result<Fallback, Fault> {
    match (fallback.unwrap_or(FallbackName::Local), share) {
        (FallbackName::Local, Some(Share::Full) | None) => Ok(Fallback::LocalFull),
        (FallbackName::Local, Some(Share::Fair)) => Ok(Fallback::LocalFair),
        (FallbackName::Allow, None) => Ok(Fallback::Allow),
        (FallbackName::Deny, None) => Ok(Fallback::Deny),
        (FallbackName::Allow | FallbackName::Deny, Some(_)) => {
            let wrong = "stands beside a `fallback` that has no share";
            Err(Fault::new(
                "limit.share",
                wrong,
                "`share` with \"fallback\": \"local\" alone",
            ))
        }
    }
}

fn calendar(value: &Value<'_>) -> Result<CalendarUnit, Fault> {
    one_of("limit.calendar", value, &CALENDARS, CALENDAR)
}

fn span(field: &str, value: &Value<'_>, right: &'static str) -> Result<Nanos, Fault> {
    let Value::Text(text) = value else {
        return Err(Fault::new(field, value.describe(), right));
    };
    duration::parse(text)
        .map_err(|error| Fault::new(field, format!("{}: {error}", value.describe()), right))
}
