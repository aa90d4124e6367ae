//! The bodies of the calls that act on a check.
//!
//! Knows nothing of what an id holds: to this side it is any text.

use std::borrow::Cow;

use serde::de::{self, DeserializeSeed as _, IgnoredAny, MapAccess};
use tollgate_limit::{Action, Cost, Ending, Settling};

use super::{
    Ask,
    field::{UNITS, cost, keep, not_an_object, one_of, set, text, unknown},
    pairs::Pairs,
};
use crate::{
    fault::Fault,
    http::json::{Members, Object},
};

/// The most characters of a wrong cost that an error repeats.
const MAX_REPEATED: usize = 64;

/// A call that acts on a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum Act {
    Settle,
    Refund,
    Report,
    Release,
}

impl Act {
    /// The field that holds the id.
    pub(in crate::http) const fn id(self) -> &'static str {
        match self {
            Self::Settle | Self::Refund | Self::Report => "id",
            Self::Release => "permit_id",
        }
    }

    /// A body that is right.
    pub(in crate::http) const fn example(self) -> &'static str {
        match self {
            Self::Settle => "a JSON object such as {\"id\": \"...\", \"cost\": 3}",
            Self::Refund => "a JSON object such as {\"id\": \"...\"}, or the body of a check",
            Self::Report => "a JSON object such as {\"id\": \"...\", \"outcome\": \"failure\"}",
            Self::Release => "a JSON object such as {\"permit_id\": \"...\"}",
        }
    }

    /// What an id must hold for it.
    pub(in crate::http) const fn needed(self) -> &'static str {
        match self {
            Self::Settle => {
                "the `id` of an admitted check, with `cost` for limits that take the cost of the request and `attributes` for those that take it from one"
            }
            Self::Refund => "the `id` of a check",
            Self::Report => "the `id` of an admitted check of a limit with `count = \"failures\"`",
            Self::Release => "the `permit_id` of an answer of `POST /v1/acquire`",
        }
    }

    const fn fields(self) -> &'static str {
        match self {
            Self::Settle => "`id`, `cost` and `attributes` are the fields",
            Self::Refund => "either `id` alone, or the fields of a check without it",
            Self::Report => "`id` and `outcome` are the fields",
            Self::Release => "`permit_id` is the only field",
        }
    }
}

/// What is to be done.
#[derive(Debug)]
pub(in crate::http) enum Acting<'a> {
    /// Something with what the check of that id charged.
    Receipt { id: Cow<'a, str>, action: Action },
    /// To give back what such a check would cost.
    Check(Ask<'a>),
}

impl<'a> Acting<'a> {
    /// Reads a body. The outer error is serde's own: not JSON.
    pub(in crate::http) fn read(
        act: Act,
        body: &'a [u8],
    ) -> Result<Result<Self, Fault>, serde_json::Error> {
        let Ok(text) = std::str::from_utf8(body) else {
            return Err(de::Error::custom("not UTF-8"));
        };
        if act == Act::Refund && !has_id(text)? {
            return Ok(Ask::read(body)?.map(Self::Check));
        }
        let mut acting = ActBody::new(act);
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let shape = Object(&mut acting).deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(match shape {
            Ok(()) => acting.finish(),
            Err(value) => Err(not_an_object("body", &value)),
        })
    }
}

/// Whether the body is an object with an `id`: a refund without one is about a check.
fn has_id(text: &str) -> Result<bool, serde_json::Error> {
    let mut probe = Probe { has_id: false };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // What is no object is told by who reads it next.
    Object(&mut probe).deserialize(&mut deserializer)?.ok();
    Ok(probe.has_id)
}

struct Probe {
    has_id: bool,
}

impl<'a> Members<'a> for Probe {
    fn member<A: MapAccess<'a>>(
        &mut self,
        name: Cow<'a, str>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        self.has_id |= name == "id";
        map.next_value::<IgnoredAny>()?;
        Ok(())
    }
}

/// The members, as they come.
struct ActBody<'a> {
    act: Act,
    id: Option<Cow<'a, str>>,
    cost: Option<Cost>,
    attributes: Option<Pairs<'a>>,
    outcome: Option<Ending>,
    fault: Option<Box<Fault>>,
}

impl<'a> ActBody<'a> {
    const fn new(act: Act) -> Self {
        Self {
            act,
            id: None,
            cost: None,
            attributes: None,
            outcome: None,
            fault: None,
        }
    }

    fn finish(self) -> Result<Acting<'a>, Fault> {
        if let Some(fault) = self.fault {
            return Err(*fault);
        }
        let act = self.act;
        let missing = || Fault::new(act.id(), "missing", act.needed());
        let id = self.id.ok_or_else(missing)?;
        let action = match act {
            Act::Refund => Action::Refund,
            Act::Release => Action::Release,
            Act::Report => Action::Report(
                self.outcome
                    .ok_or_else(|| Fault::new("outcome", "missing", OUTCOME))?,
            ),
            Act::Settle => Action::Settle(settling(self.cost, self.attributes)?),
        };
        Ok(Acting::Receipt { id, action })
    }
}

impl<'a> Members<'a> for ActBody<'a> {
    fn member<A: MapAccess<'a>>(
        &mut self,
        name: Cow<'a, str>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        let act = self.act;
        let put = match name.as_ref() {
            id if id == act.id() => {
                let id = text(act.id(), map.next_value()?);
                set(&mut self.id, act.id(), id)
            }
            "cost" if act == Act::Settle => set(&mut self.cost, "cost", cost(&map.next_value()?)),
            "attributes" if act == Act::Settle => {
                let pairs = Pairs::read("attributes", map)?;
                set(&mut self.attributes, "attributes", pairs)
            }
            "outcome" if act == Act::Report => {
                let outcome = one_of("outcome", &map.next_value()?, &OUTCOMES, OUTCOME);
                set(&mut self.outcome, "outcome", outcome)
            }
            other => {
                map.next_value::<IgnoredAny>()?;
                Err(unknown("", other, act.fields()))
            }
        };
        keep(&mut self.fault, put);
        Ok(())
    }
}

const OUTCOME: &str = "\"success\" or \"failure\"";
const OUTCOMES: [(&str, Ending); 2] = [("success", Ending::Success), ("failure", Ending::Failure)];

/// The real costs; each attribute is a whole number, as the limit that takes its cost from it needs it.
fn settling(cost: Option<Cost>, attributes: Option<Pairs<'_>>) -> Result<Settling, Fault> {
    if cost.is_none() && attributes.as_ref().is_none_or(Pairs::is_empty) {
        let right = "the real cost as `cost`, as `attributes`, or as both";
        return Err(Fault::new("cost", "missing", right));
    }
    let attributes = attributes.unwrap_or_default().finish();
    let costs = attributes.iter().map(|(name, value)| {
        let cost = value.parse().ok().and_then(|units| Cost::new(units).ok());
        cost.map(|cost| (name.to_owned(), cost)).ok_or_else(|| {
            let short: String = value.chars().take(MAX_REPEATED).collect();
            Fault::new(format!("attributes.{name}"), format!("{short:?}"), UNITS)
        })
    });
    Ok(Settling {
        cost,
        attributes: costs.collect::<Result<_, _>>()?,
    })
}
