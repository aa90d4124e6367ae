//! Values of the files whose mistakes are told in the words of the files.
//!
//! Each says what it expects, so that a number out of range or of the wrong type names the right form.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, Expected, SeqAccess, Unexpected, Visitor},
};
use tollgate_api::duration;
use tollgate_limit::{MAX_UNITS, Nanos};

/// A whole number from 0 to 2^53.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole(pub(super) u64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(WholeVisitor)
    }
}

struct WholeVisitor;

impl Visitor<'_> for WholeVisitor {
    type Value = Whole;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 0 to 2^53")
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Whole, E> {
        Whole::from_signed(value, &self)
    }
}

impl Whole {
    /// The number, or that it is not what was expected.
    pub(super) fn from_signed<E: serde::de::Error>(
        value: i64,
        expected: &dyn Expected,
    ) -> Result<Self, E> {
        let number = u64::try_from(value).ok();
        let number = number.filter(|number| *number <= MAX_UNITS);
        let wrong = || E::invalid_value(Unexpected::Signed(value), expected);
        number.map(Self).ok_or_else(wrong)
    }
}

/// A duration, such as `1h30m`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span(pub(super) Nanos);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(SpanVisitor)
    }
}

struct SpanVisitor;

impl Visitor<'_> for SpanVisitor {
    type Value = Span;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as \"500ms\", \"30s\" or \"1h30m\"")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Span, E> {
        duration::parse(text)
            .map(Span)
            .map_err(|error| E::custom(format!("{text:?} is not a duration; {error}")))
    }
}

/// A number with or without a fraction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Factor(pub(super) f64);

impl<'de> Deserialize<'de> for Factor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FactorVisitor)
    }
}

struct FactorVisitor;

impl Visitor<'_> for FactorVisitor {
    type Value = Factor;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number such as 2 or 0.2")
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Factor, E> {
        // No factor of ours reaches what 32 bits do not hold.
        let small = i32::try_from(value);
        small
            .map(|value| Factor(value.into()))
            .map_err(|_large| E::invalid_value(Unexpected::Signed(value), &self))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Factor, E> {
        Ok(Factor(value))
    }
}

/// One value of an attribute or a list of them, as the texts that checks bring.
#[derive(Clone, Debug)]
pub(super) struct Texts(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextsVisitor)
    }
}

struct TextsVisitor;

impl<'de> Visitor<'de> for TextsVisitor {
    type Value = Texts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text such as \"/v1/*\", a number, true or false, or a list of these")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Texts, E> {
        TextVisitor.visit_str(text).map(only)
    }

    fn visit_bool<E: serde::de::Error>(self, truth: bool) -> Result<Texts, E> {
        TextVisitor.visit_bool(truth).map(only)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Texts, E> {
        TextVisitor.visit_i64(number).map(only)
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Texts, E> {
        TextVisitor.visit_f64(number).map(only)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Texts, A::Error> {
        let mut texts = Vec::new();
        while let Some(Text(text)) = list.next_element()? {
            texts.push(text);
        }
        if texts.is_empty() {
            return Err(A::Error::custom(
                "an empty list matches nothing; name one value at least",
            ));
        }
        Ok(Texts(texts))
    }
}

fn only(Text(text): Text) -> Texts {
    Texts(vec![text])
}

/// One value of an attribute.
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text such as \"/v1/*\", a number, true or false")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Text, E> {
        if text.is_empty() {
            return Err(E::custom(
                "an empty text matches nothing, since an empty attribute is an absent one; write \
                 \"*\" for any value",
            ));
        }
        Ok(Text(text.to_owned()))
    }

    fn visit_bool<E: serde::de::Error>(self, truth: bool) -> Result<Text, E> {
        Ok(Text(truth.to_string()))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Text, E> {
        Ok(Text(number.to_string()))
    }

    // As the numbers of checks: 1.0 is `1`, and beyond 2^53 a number is not the one that was written.
    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Text, E> {
        if number.abs() >= EXACT || number.is_nan() {
            return Err(E::custom(format!(
                "{number:e} is not exact; write a number below 2^53, or a text"
            )));
        }
        Ok(Text(match number {
            0.0 => "0".to_owned(),
            number => number.to_string(),
        }))
    }
}

/// From here on, 2^53, a fraction cannot tell all whole numbers apart.
const EXACT: f64 = 9_007_199_254_740_992.0;
