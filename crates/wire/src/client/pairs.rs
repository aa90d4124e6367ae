//! Attribute names and values in a frame.
//!
//! Invariants: what is read is borrowed from the frame, at most [`MAX_ATTRIBUTES`] pairs, and up to
//! four of them need no allocation.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, SeqAccess, Visitor},
    ser::Error as _,
};
use smallvec::SmallVec;
use tollgate_limit::MAX_ATTRIBUTES;

/// One name and its value.
type Pair<'a> = (Cow<'a, str>, Cow<'a, str>);

/// Attribute names and values, in the order they were added. Not checked: the node does that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs<'a>(SmallVec<[Pair<'a>; 4]>);

impl<'a> Pairs<'a> {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a name and its value. More than [`MAX_ATTRIBUTES`] cannot be sent.
    pub fn push(&mut self, name: impl Into<Cow<'a, str>>, value: impl Into<Cow<'a, str>>) {
        self.0.push((name.into(), value.into()));
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_ref(), value.as_ref()))
    }
}

impl<'a> IntoIterator for Pairs<'a> {
    type Item = Pair<'a>;
    type IntoIter = smallvec::IntoIter<[Pair<'a>; 4]>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, N, V> FromIterator<(N, V)> for Pairs<'a>
where
    N: Into<Cow<'a, str>>,
    V: Into<Cow<'a, str>>,
{
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let pairs = pairs.into_iter();
        Self(pairs.map(|(n, v)| (n.into(), v.into())).collect())
    }
}

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.len() > MAX_ATTRIBUTES {
            return Err(S::Error::custom("too many attributes"));
        }
        serializer.collect_seq(self.iter())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(PairsVisitor(PhantomData))
    }
}

struct PairsVisitor<'a>(PhantomData<&'a str>);

impl<'de: 'a, 'a> Visitor<'de> for PairsVisitor<'a> {
    type Value = Pairs<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {MAX_ATTRIBUTES} names and values")
    }

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, mut pairs: A) -> Result<Pairs<'a>, A::Error> {
        let mut read = Pairs::new();
        while let Some((name, value)) = pairs.next_element::<(&'a str, &'a str)>()? {
            if read.len() == MAX_ATTRIBUTES {
                return Err(A::Error::custom("too many attributes"));
            }
            read.push(name, value);
        }
        Ok(read)
    }
}
