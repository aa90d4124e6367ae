//! Values of the files whose mistakes are told in the words of the files.
//!
//! Each says what it expects, so that a number out of range or of the wrong type names the right form.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, SeqAccess, Visitor},
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
        match u64::try_from(value) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::invalid_value(
                serde::de::Unexpected::Signed(value),
                &self,
            )),
        }
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Whole, E> {
        if value > MAX_UNITS {
            let unexpected = serde::de::Unexpected::Unsigned(value);
            return Err(E::invalid_value(unexpected, &self));
        }
        Ok(Whole(value))
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

/// One text or a list of texts.
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
        f.write_str("a pattern such as \"/v1/*\", or a list of patterns")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Texts, E> {
        Ok(Texts(vec![text.to_owned()]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Texts, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = list.next_element::<String>()? {
            texts.push(text);
        }
        if texts.is_empty() {
            return Err(A::Error::custom(
                "an empty list matches nothing; name one pattern at least",
            ));
        }
        Ok(Texts(texts))
    }
}
