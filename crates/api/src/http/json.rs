//! JSON read without intermediate trees: a value that is wrong is told, not thrown.
//!
//! serde's own errors are left for what is not JSON at all, so that one wrong field neither hides which
//! one it was nor spoils its neighbours in a list. Knows nothing of checks. Strings without escapes are
//! borrowed from the body.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

/// The most characters of a wrong value that an error repeats.
const MAX_REPEATED: usize = 64;

/// A value, as far as anything here needs to know it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    Unsigned(u64),
    Negative(i64),
    /// A number with a fraction or an exponent, or one that 64 bits do not hold.
    Fraction(f64),
    Text(Cow<'a, str>),
    Array,
    Object,
}

impl Value<'_> {
    /// The value in an error's words.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Unsigned(value) => value.to_string(),
            Self::Negative(value) => value.to_string(),
            Self::Fraction(value) => value.to_string(),
            Self::Text(value) => {
                let short: String = value.chars().take(MAX_REPEATED).collect();
                format!("{short:?}")
            }
            Self::Array => "an array".to_owned(),
            Self::Object => "an object".to_owned(),
        }
    }
}

impl<'a> Deserialize<'a> for Value<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

/// What an object's members, or an array's elements, are read into.
pub(super) trait Members<'a> {
    /// Reads the value of one member. Errors are serde's own: not JSON.
    fn member<A: MapAccess<'a>>(&mut self, name: Cow<'a, str>, map: &mut A)
    -> Result<(), A::Error>;

    /// Reads an array, if one is right here; the inner error says that none is.
    fn elements<A: SeqAccess<'a>>(&mut self, seq: A) -> Result<Result<(), Value<'a>>, A::Error> {
        ValueVisitor.visit_seq(seq).map(Err)
    }
}

/// Reads an object into its members; the inner error is what stood there instead.
pub(super) struct Object<'m, M>(pub(super) &'m mut M);

impl<'a, M: Members<'a>> DeserializeSeed<'a> for Object<'_, M> {
    type Value = Result<(), Value<'a>>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(ObjectVisitor(self.0, PhantomData))
    }
}

struct ValueVisitor;

impl<'a> Visitor<'a> for ValueVisitor {
    type Value = Value<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Value::Unsigned(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(u64::try_from(value).map_or(Value::Negative(value), Value::Unsigned))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Value::Fraction(value))
    }

    fn visit_borrowed_str<E: de::Error>(self, value: &'a str) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Array)
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Object)
    }
}

struct ObjectVisitor<'m, 'a, M>(&'m mut M, PhantomData<&'a ()>);

impl<'a, M: Members<'a>> Visitor<'a> for ObjectVisitor<'_, 'a, M> {
    type Value = Result<(), Value<'a>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while let Some(name) = map.next_key::<Value<'a>>()? {
            let Value::Text(name) = name else { continue };
            self.0.member(name, &mut map)?;
        }
        Ok(Ok(()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        ValueVisitor.visit_unit().map(Err)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Self::Value, E> {
        ValueVisitor.visit_bool(value).map(Err)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
        ValueVisitor.visit_u64(value).map(Err)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
        ValueVisitor.visit_i64(value).map(Err)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
        ValueVisitor.visit_f64(value).map(Err)
    }

    fn visit_borrowed_str<E: de::Error>(self, value: &'a str) -> Result<Self::Value, E> {
        ValueVisitor.visit_borrowed_str(value).map(Err)
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Self::Value, E> {
        ValueVisitor.visit_str(value).map(Err)
    }

    fn visit_seq<A: SeqAccess<'a>>(self, seq: A) -> Result<Self::Value, A::Error> {
        self.0.elements(seq)
    }
}
