//! The body of one check.

use std::borrow::Cow;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess};
use tollgate_limit::{Cost, DEFAULT_POLICY, Mode};

use super::{
    Ask, AskSubject,
    field::{cost, keep, not_an_object, set, text, truth, unknown},
    inline::InlineBody,
    pairs::Pairs,
};
use crate::{
    fault::Fault,
    http::json::{Members, Object},
};

const FIELDS: &str = "`policy`, `attributes`, `limit`, `key`, `cost` and `peek` are the fields";

/// The members of one check, as they come. What is rare is boxed, since a check is moved about.
#[derive(Default)]
struct AskBody<'a> {
    policy: Option<Cow<'a, str>>,
    attributes: Option<Pairs<'a>>,
    limit: Option<Box<InlineBody<'a>>>,
    key: Option<Box<Pairs<'a>>>,
    cost: Option<Cost>,
    peek: Option<bool>,
    fault: Option<Box<Fault>>,
}

impl<'a> AskBody<'a> {
    fn finish(self) -> Result<Ask<'a>, Fault> {
        if let Some(fault) = self.fault {
            return Err(*fault);
        }
        let cost = self.cost.unwrap_or(Cost::ONE);
        let mode = match self.peek {
            Some(true) => Mode::Peek,
            Some(false) | None => Mode::Consume,
        };
        let subject = match self.limit {
            Some(limit) => {
                let wrong = "stands beside `limit`";
                if self.policy.is_some() {
                    return Err(Fault::new("policy", wrong, "either `policy` or `limit`"));
                }
                if self.attributes.is_some() {
                    return Err(Fault::new(
                        "attributes",
                        wrong,
                        "with `limit`, give `key` instead",
                    ));
                }
                let Some(key) = self.key.filter(|key| !key.is_empty()) else {
                    let right = "an object with at least one attribute, such as {\"user\": \"42\"}";
                    return Err(Fault::new("key", "missing or empty", right));
                };
                let spec = Box::new(limit.finish(key.names())?);
                AskSubject::Inline {
                    spec,
                    key: key.finish(),
                }
            }
            None if self.key.is_some() => {
                let right = "`attributes` for a policy, `key` beside `limit` alone";
                return Err(Fault::new("key", "stands without `limit`", right));
            }
            None => AskSubject::Policy {
                name: self.policy.unwrap_or(Cow::Borrowed(DEFAULT_POLICY)),
                attributes: self.attributes.unwrap_or_default().finish(),
            },
        };
        Ok(Ask {
            subject,
            cost,
            mode,
        })
    }
}

impl<'a> Members<'a> for AskBody<'a> {
    fn member<A: MapAccess<'a>>(
        &mut self,
        name: Cow<'a, str>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        let put = match name.as_ref() {
            "policy" => set(
                &mut self.policy,
                "policy",
                text("policy", map.next_value()?),
            ),
            "attributes" => {
                let pairs = Pairs::read("attributes", map)?;
                set(&mut self.attributes, "attributes", pairs)
            }
            "limit" => set(
                &mut self.limit,
                "limit",
                InlineBody::read(map)?.map(Box::new),
            ),
            "key" => set(&mut self.key, "key", Pairs::read("key", map)?.map(Box::new)),
            "cost" => set(&mut self.cost, "cost", cost(&map.next_value()?)),
            "peek" => set(&mut self.peek, "peek", truth("peek", &map.next_value()?)),
            other => {
                map.next_value::<IgnoredAny>()?;
                Err(unknown("", other, FIELDS))
            }
        };
        keep(&mut self.fault, put);
        Ok(())
    }
}

/// Reads one check; the inner error is its first fault.
pub(super) struct AskSeed;

impl<'a> DeserializeSeed<'a> for AskSeed {
    type Value = Result<Ask<'a>, Fault>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let mut body = AskBody::default();
        Ok(match Object(&mut body).deserialize(deserializer)? {
            Ok(()) => body.finish(),
            Err(value) => Err(not_an_object("body", &value)),
        })
    }
}
