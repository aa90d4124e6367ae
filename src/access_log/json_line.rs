//! One line of JSON: an object whose scalar members are a request's parts.
//!
//! Members stay as they are written until they are asked for, so that no digit of a number is lost.

use std::{borrow::Cow, collections::HashMap};

use serde_json::{Number, value::RawValue};

use super::fields::{Fault, Fields, TIME_NAMES, is_time};
use super::request::Request;

/// Reads a line.
pub(super) fn request(line: u64, text: &str, fields: &Fields) -> Result<Request, Fault> {
    let members: HashMap<String, &RawValue> =
        serde_json::from_str(text).map_err(|error| Fault::NotJson(error.to_string()))?;
    let part = |name: &str| scalar(members.get(name)?.get());
    let time = match &fields.time {
        Some(name) => {
            written(&members, name).ok_or_else(|| Fault::Absent { name: name.clone() })?
        }
        None => usual_time(&members).ok_or_else(|| Fault::Absent {
            name: "time".to_owned(),
        })?,
    };
    fields.request(line, &time, part)
}

/// The first of the usual names that is there, in their order.
fn usual_time<'a>(members: &HashMap<String, &'a RawValue>) -> Option<Cow<'a, str>> {
    let exact = TIME_NAMES.iter().find_map(|name| written(members, name));
    exact.or_else(|| {
        let mut others: Vec<_> = members.keys().filter(|name| is_time(name)).collect();
        others.sort_unstable();
        others.into_iter().find_map(|name| written(members, name))
    })
}

/// A member as it is written, without quotes.
fn written<'a>(members: &HashMap<String, &'a RawValue>, name: &str) -> Option<Cow<'a, str>> {
    let raw = members.get(name)?.get();
    if raw.starts_with('"') {
        return scalar(raw);
    }
    raw.starts_with(|first: char| first.is_ascii_digit() || first == '-')
        .then_some(Cow::Borrowed(raw))
}

/// A scalar as the value of an attribute: numbers and booleans in canonical form. `None` of all else.
fn scalar(raw: &str) -> Option<Cow<'_, str>> {
    match raw.bytes().next()? {
        b'"' => {
            let plain = raw.get(1..raw.len().saturating_sub(1))?;
            if plain.contains('\\') {
                return serde_json::from_str(raw).ok().map(Cow::Owned);
            }
            Some(Cow::Borrowed(plain))
        }
        b't' | b'f' => Some(Cow::Borrowed(raw)),
        b'-' | b'0'..=b'9' => {
            let number: Number = serde_json::from_str(raw).ok()?;
            let canonical = match number.as_f64().filter(|_| number.is_f64()) {
                Some(fraction) => fraction.to_string(),
                None => number.to_string(),
            };
            Some(Cow::Owned(canonical))
        }
        _ => None,
    }
}
