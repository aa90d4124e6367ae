//! The body of a list of checks.

use std::{borrow::Cow, fmt};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{
    Item, List,
    field::{keep, not_an_object, set, unknown},
    one::AskSeed,
};
use crate::{
    fault::Fault,
    http::{
        MAX_CHECKS,
        json::{Members, Object},
    },
};

const LIST: &str = "an array of at most 1000 checks";

/// The members of a list of checks.
#[derive(Default)]
pub(super) struct ListBody<'a> {
    checks: Option<Vec<Item<'a>>>,
    fault: Option<Fault>,
}

impl<'a> ListBody<'a> {
    /// Reads the object that holds the list.
    pub(super) fn read<D: Deserializer<'a>>(deserializer: D) -> Result<List<'a>, D::Error> {
        let mut list = Self::default();
        let shape = Object(&mut list).deserialize(deserializer)?;
        let missing = || Fault::new("checks", "missing", LIST);
        Ok(match (shape, list.fault) {
            (Err(value), _) => Err(not_an_object("body", &value)),
            (Ok(()), Some(fault)) => Err(fault),
            (Ok(()), None) => list.checks.ok_or_else(missing),
        })
    }
}

impl<'a> Members<'a> for ListBody<'a> {
    fn member<A: MapAccess<'a>>(
        &mut self,
        name: Cow<'a, str>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        let put = match name.as_ref() {
            "checks" => set(&mut self.checks, "checks", map.next_value_seed(ListSeed)?),
            other => {
                map.next_value::<IgnoredAny>()?;
                Err(unknown("", other, "`checks` is the only field"))
            }
        };
        keep(&mut self.fault, put);
        Ok(())
    }
}

struct ListSeed;

impl<'a> DeserializeSeed<'a> for ListSeed {
    type Value = List<'a>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'a> Visitor<'a> for ListSeed {
    type Value = List<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(LIST)
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut checks = Vec::new();
        while let Some(check) = seq.next_element_seed(AskSeed)? {
            if checks.len() == MAX_CHECKS {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(Err(Fault::new("checks", "more than 1000 checks", LIST)));
            }
            checks.push(check);
        }
        Ok(Ok(checks))
    }
}
