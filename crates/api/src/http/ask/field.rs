//! Fields: given once, of one kind, and what to say otherwise.

use std::borrow::Cow;

use tollgate_limit::{Cost, MAX_UNITS};

use crate::{fault::Fault, http::json::Value};

/// The most characters of an unknown field's name that an error repeats.
const MAX_REPEATED: usize = 64;
/// What is right for units, up to 2^53.
pub(super) const UNITS: &str = "a whole number from 0 to 9007199254740992";

/// Fills a field that may be given once.
pub(super) fn set<T>(
    slot: &mut Option<T>,
    field: &str,
    value: Result<T, Fault>,
) -> Result<(), Fault> {
    let value = value?;
    match slot {
        None => *slot = Some(value),
        Some(_) => return Err(Fault::new(field, "given twice", "each field once")),
    }
    Ok(())
}

/// Keeps the first fault.
pub(super) fn keep(kept: &mut Option<Box<Fault>>, outcome: Result<(), Fault>) {
    if let (None, Err(fault)) = (&kept, outcome) {
        *kept = Some(Box::new(fault));
    }
}

pub(super) fn unknown(parent: &str, field: &str, right: &'static str) -> Fault {
    let short: String = field.chars().take(MAX_REPEATED).collect();
    Fault::new(format!("{parent}{short}"), "unknown field", right)
}

pub(super) fn not_an_object(field: &str, value: &Value<'_>) -> Fault {
    Fault::new(field, value.describe(), "a JSON object")
}

pub(super) fn text<'a>(field: &str, value: Value<'a>) -> Result<Cow<'a, str>, Fault> {
    if let Value::Text(text) = value {
        return Ok(text);
    }
    Err(Fault::new(field, value.describe(), "a string"))
}

pub(super) fn truth(field: &str, value: &Value<'_>) -> Result<bool, Fault> {
    if let Value::Bool(truth) = value {
        return Ok(*truth);
    }
    Err(Fault::new(field, value.describe(), "true or false"))
}

pub(super) fn whole(field: &str, value: &Value<'_>, right: &'static str) -> Result<u64, Fault> {
    if let Value::Unsigned(number) = value {
        return Ok(*number);
    }
    Err(Fault::new(field, value.describe(), right))
}

/// A number of units: a limit, or a cost.
pub(super) fn units(field: &str, value: &Value<'_>) -> Result<u64, Fault> {
    match whole(field, value, UNITS)? {
        units if units <= MAX_UNITS => Ok(units),
        _ => Err(Fault::new(field, value.describe(), UNITS)),
    }
}

pub(super) fn cost(value: &Value<'_>) -> Result<Cost, Fault> {
    let units = units("cost", value)?;
    Cost::new(units).map_err(|_error| Fault::new("cost", value.describe(), UNITS))
}

/// The value of one of these names.
pub(super) fn one_of<T: Copy>(
    field: &str,
    value: &Value<'_>,
    names: &[(&str, T)],
    right: &'static str,
) -> Result<T, Fault> {
    let Value::Text(text) = value else {
        return Err(Fault::new(field, value.describe(), right));
    };
    let named = names.iter().find(|(name, _)| name == text);
    let named = named.map(|(_, value)| *value);
    named.ok_or_else(|| Fault::new(field, value.describe(), right))
}
