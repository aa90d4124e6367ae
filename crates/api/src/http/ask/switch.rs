//! The body of a switch: how it is to stand.

use std::borrow::Cow;

use serde::de::{self, DeserializeSeed as _, IgnoredAny, MapAccess};

use super::field::{keep, not_an_object, set, truth, unknown};
use crate::{
    fault::Fault,
    http::json::{Members, Object},
};

/// A body that is right.
pub(in crate::http) const SWITCH_EXAMPLE: &str = "a JSON object such as {\"on\": true}";

/// Reads a body. The outer error is serde's own: not JSON.
pub(in crate::http) fn read_switch(body: &[u8]) -> Result<Result<bool, Fault>, serde_json::Error> {
    let Ok(text) = std::str::from_utf8(body) else {
        return Err(de::Error::custom("not UTF-8"));
    };
    let mut switch = SwitchBody::default();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let shape = Object(&mut switch).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(match shape {
        Ok(()) => switch.finish(),
        Err(value) => Err(not_an_object("body", &value)),
    })
}

/// The members, as they come.
#[derive(Default)]
struct SwitchBody {
    on: Option<bool>,
    fault: Option<Box<Fault>>,
}

impl SwitchBody {
    fn finish(self) -> Result<bool, Fault> {
        if let Some(fault) = self.fault {
            return Err(*fault);
        }
        let missing = || Fault::new("on", "missing", "true or false");
        self.on.ok_or_else(missing)
    }
}

impl<'a> Members<'a> for SwitchBody {
    fn member<A: MapAccess<'a>>(
        &mut self,
        name: Cow<'a, str>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        let put = if name == "on" {
            set(&mut self.on, "on", truth("on", &map.next_value()?))
        } else {
            map.next_value::<IgnoredAny>()?;
            Err(unknown("", &name, "`on` is the only field"))
        };
        keep(&mut self.fault, put);
        Ok(())
    }
}
