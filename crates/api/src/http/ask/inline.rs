//! A limit that comes with a check, read into the spec that TOML fills too.

use std::borrow::Cow;

use serde::de::{IgnoredAny, MapAccess};
use tollgate_limit::{AlgorithmSpec, DEFAULT_SLICES, Fallback, LimitNumber, LimitSpec, Nanos};

use super::field::{UNITS, keep, not_an_object, one_of, set, text, truth, units, unknown, whole};
use crate::{
    duration,
    fault::Fault,
    http::json::{Members, Object, Value},
};

const FIELDS: &str = "`name`, `limit`, `window`, `algorithm`, `slices`, `hard`, `fallback` and `share` are the fields";
const WINDOW: &str = "a duration from \"1ms\" to \"3660d\", such as \"1m\" or \"1h30m\"";

/// The members of `limit`, as they come.
#[derive(Debug, Default)]
pub(super) struct InlineBody<'a> {
    name: Option<Cow<'a, str>>,
    limit: Option<u64>,
    window: Option<Nanos>,
    algorithm: Option<()>,
    slices: Option<u64>,
    hard: Option<bool>,
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
        let window = self.window.ok_or_else(|| missing("limit.window", WINDOW))?;
        Ok(LimitSpec {
            key,
            fallback: fallback_of(self.fallback, self.share)?,
            ..LimitSpec::new(
                &name,
                LimitNumber::One(limit),
                AlgorithmSpec::SlidingWindow {
                    window,
                    slices: self.slices.unwrap_or(DEFAULT_SLICES),
                    hard: self.hard.unwrap_or(false),
                },
            )
        })
    }
}

impl<'a> Members<'a> for InlineBody<'a> {
    fn member<A: MapAccess<'a>>(
        &mut self,
        name: Cow<'a, str>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        let put = match name.as_ref() {
            "name" => {
                let name = text("limit.name", map.next_value()?);
                set(&mut self.name, "limit.name", name)
            }
            "limit" => {
                let limit = units("limit.limit", &map.next_value()?);
                set(&mut self.limit, "limit.limit", limit)
            }
            "window" => set(&mut self.window, "limit.window", window(&map.next_value()?)),
            "algorithm" => {
                let names = [("sliding-window", ())];
                let named = one_of(
                    "limit.algorithm",
                    &map.next_value()?,
                    &names,
                    "\"sliding-window\"",
                );
                set(&mut self.algorithm, "limit.algorithm", named)
            }
            "slices" => {
                let slices = whole(
                    "limit.slices",
                    &map.next_value()?,
                    "a whole number from 1 to 60",
                );
                set(&mut self.slices, "limit.slices", slices)
            }
            "hard" => {
                let hard = truth("limit.hard", &map.next_value()?);
                set(&mut self.hard, "limit.hard", hard)
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
        };
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

fn window(value: &Value<'_>) -> Result<Nanos, Fault> {
    let Value::Text(text) = value else {
        return Err(Fault::new("limit.window", value.describe(), WINDOW));
    };
    duration::parse(text).map_err(|error| {
        Fault::new(
            "limit.window",
            format!("{}: {error}", value.describe()),
            WINDOW,
        )
    })
}
