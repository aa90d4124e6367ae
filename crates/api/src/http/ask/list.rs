//! The body of a list of checks.

use std::borrow::Cow;

use serde::de::{DeserializeSeed as _, Deserializer, IgnoredAny, MapAccess, SeqAccess};

use super::{
    Item, List,
    field::{keep, not_an_object, set, unknown},
    one::AskSeed,
};
use crate::{
    fault::Fault,
    http::{
        MAX_CHECKS,
        json::{Members, Object, Value},
    },
};

const LIST: &str = "an array of at most 1000 checks";

/// The members of a list of checks.
#[derive(Default)]
pub(super) struct ListBody<'a> {
    checks: Option<Vec<Item<'a>>>,
    fault: Option<Box<Fault>>,
}

impl<'a> ListBody<'a> {
    /// Reads the object that holds the list.
    pub(super) fn read<D: Deserializer<'a>>(deserializer: D) -> Result<List<'a>, D::Error> {
        let mut list = Self::default();
        let shape = Object(&mut list).deserialize(deserializer)?;
        let missing = || Fault::new("checks", "missing", LIST);
        Ok(match (shape, list.fault) {
            (Err(value), _) => Err(not_an_object("body", &value)),
            (Ok(()), Some(fault)) => Err(*fault),
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
            "checks" => {
                let mut read = Elements::default();
                let shape = map.next_value_seed(Object(&mut read))?;
                let checks = match (shape, read.fault) {
                    (Err(value), _) => Err(Fault::new("checks", value.describe(), LIST)),
                    (Ok(()), Some(fault)) => Err(*fault),
                    (Ok(()), None) => Ok(read.checks),
                };
                set(&mut self.checks, "checks", checks)
            }
            other => {
                map.next_value::<IgnoredAny>()?;
                Err(unknown("", other, "`checks` is the only field"))
            }
        };
        keep(&mut self.fault, put);
        Ok(())
    }
}

/// The elements of a list of checks.
#[derive(Default)]
struct Elements<'a> {
    checks: Vec<Item<'a>>,
    fault: Option<Box<Fault>>,
}

impl<'a> Members<'a> for Elements<'a> {
    fn member<A: MapAccess<'a>>(&mut self, _: Cow<'a, str>, map: &mut A) -> Result<(), A::Error> {
        map.next_value::<IgnoredAny>()?;
        keep(
            &mut self.fault,
            Err(Fault::new("checks", "an object", LIST)),
        );
        Ok(())
    }

    fn elements<A: SeqAccess<'a>>(
        &mut self,
        mut seq: A,
    ) -> Result<Result<(), Value<'a>>, A::Error> {
        while let Some(check) = seq.next_element_seed(AskSeed)? {
            if self.checks.len() == MAX_CHECKS {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                let wrong = format!("more than {MAX_CHECKS} checks");
                self.fault = Some(Box::new(Fault::new("checks", wrong, LIST)));
                break;
            }
            self.checks.push(check);
        }
        Ok(Ok(()))
    }
}
