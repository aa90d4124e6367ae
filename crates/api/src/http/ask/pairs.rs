//! Attributes as JSON gives them: strings, numbers and booleans, in canonical form.
//!
//! Invariant: two whole numbers never become one value, and one number has one form, however it is
//! written.

use std::borrow::Cow;

use serde::de::MapAccess;
use tollgate_limit::Attributes;

use crate::{
    fault::Fault,
    http::json::{Members, Object, Value},
};

const VALUE: &str = "a string, a number or a boolean";
const NUMBER: &str = "a number below 2^53, a whole one below 2^64, or a string";
/// 2^53: below it every whole number is told apart.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Attributes, as they come.
#[derive(Debug, Default)]
pub(super) struct Pairs<'a> {
    parent: &'static str,
    attributes: Attributes<'a>,
    fault: Option<Box<Fault>>,
}

impl<'a> Pairs<'a> {
    /// Reads the object that is the next value of `map`.
    pub(super) fn read<A: MapAccess<'a>>(
        parent: &'static str,
        map: &mut A,
    ) -> Result<Result<Self, Fault>, A::Error> {
        let mut pairs = Self {
            parent,
            ..Self::default()
        };
        let shape = map.next_value_seed(Object(&mut pairs))?;
        Ok(match (shape, pairs.fault.take()) {
            (Err(value), _) => Err(super::field::not_an_object(parent, &value)),
            (Ok(()), Some(fault)) => Err(*fault),
            (Ok(()), None) => Ok(pairs),
        })
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.attributes.iter().next().is_none()
    }

    /// The names, sorted: the order of JSON members has no meaning, so it must not make a key.
    pub(super) fn names(&self) -> Vec<String> {
        let names = self.attributes.iter().map(|(name, _)| name.to_owned());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names
    }

    /// The attributes.
    pub(super) fn finish(self) -> Attributes<'a> {
        self.attributes
    }

    fn add(&mut self, name: Cow<'a, str>, value: Value<'a>) -> Result<(), Fault> {
        let value = canonical(value).map_err(|(wrong, right)| {
            let short: String = name.chars().take(64).collect();
            Fault::new(format!("{}.{short}", self.parent), wrong, right)
        })?;
        let added = self.attributes.insert(name, value);
        added.map_err(|error| Fault::attribute(self.parent, &error))
    }
}

impl<'a> Members<'a> for Pairs<'a> {
    fn member<A: MapAccess<'a>>(
        &mut self,
        name: Cow<'a, str>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        let value = map.next_value()?;
        let added = self.add(name, value);
        super::field::keep(&mut self.fault, added);
        Ok(())
    }
}

fn canonical(value: Value<'_>) -> Result<Cow<'_, str>, (String, &'static str)> {
    match value {
        Value::Text(text) => Ok(text),
        Value::Bool(true) => Ok(Cow::Borrowed("true")),
        Value::Bool(false) => Ok(Cow::Borrowed("false")),
        Value::Unsigned(number) => Ok(Cow::Owned(number.to_string())),
        Value::Negative(number) => Ok(Cow::Owned(number.to_string())),
        // Rust writes a whole f64 as JSON writes the whole number: 1.0 and 1e0 are `1`.
        Value::Fraction(0.0) => Ok(Cow::Borrowed("0")),
        Value::Fraction(number) if number.abs() < EXACT => Ok(Cow::Owned(number.to_string())),
        other @ Value::Fraction(_) => Err((other.describe(), NUMBER)),
        other @ (Value::Null | Value::Array | Value::Object) => Err((other.describe(), VALUE)),
    }
}
