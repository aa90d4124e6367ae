//! Attributes: what a check says of the request, as names and values.
//!
//! Values are UTF-8 without control characters, at most 1 KiB (rule 7); an empty value is an absent
//! one. Knows nothing of limits.

use std::borrow::Cow;

use smallvec::SmallVec;
use thiserror::Error;

/// The most attributes of a check.
pub const MAX_ATTRIBUTES: usize = 64;
/// The longest value, in bytes.
pub const MAX_VALUE_LENGTH: usize = 1024;
/// The longest attribute name, in bytes.
pub const MAX_NAME_LENGTH: usize = 128;

/// The attributes of one check, each name once. Borrowed from the request where it can be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes<'a> {
    pairs: SmallVec<[(Cow<'a, str>, Cow<'a, str>); 4]>,
    proxied: bool,
}

impl<'a> Attributes<'a> {
    /// No attribute.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an attribute.
    ///
    /// # Errors
    /// [`AttributeError`] says which bound is broken; the attribute was not added. The caller's fault.
    pub fn insert(
        &mut self,
        name: impl Into<Cow<'a, str>>,
        value: impl Into<Cow<'a, str>>,
    ) -> Result<(), AttributeError> {
        let (name, value) = (name.into(), value.into());
        if name.is_empty() || name.len() > MAX_NAME_LENGTH || name.chars().any(char::is_control) {
            return Err(AttributeError::IllegalName);
        }
        if value.len() > MAX_VALUE_LENGTH {
            return Err(AttributeError::ValueTooLong {
                name: name.into_owned(),
            });
        }
        if value.chars().any(char::is_control) {
            return Err(AttributeError::ControlCharacter {
                name: name.into_owned(),
            });
        }
        if self.pairs.iter().any(|(known, _)| *known == name) {
            return Err(AttributeError::Twice {
                name: name.into_owned(),
            });
        }
        if self.pairs.len() >= MAX_ATTRIBUTES {
            return Err(AttributeError::TooMany);
        }
        self.pairs.push((name, value));
        Ok(())
    }

    /// Adds what a proxied request has: whatever its value is, it is no error, and `match` sees it as it
    /// is. What does not fit by name or number is left out, as is a second value of a name.
    pub fn insert_proxied(
        &mut self,
        name: impl Into<Cow<'a, str>>,
        value: impl Into<Cow<'a, str>>,
    ) {
        let (name, value) = (name.into(), value.into());
        self.proxied = true;
        let is_legal = !name.is_empty() && name.len() <= MAX_NAME_LENGTH;
        let is_known = self.pairs.iter().any(|(known, _)| *known == name);
        if is_legal && !is_known && self.pairs.len() < MAX_ATTRIBUTES {
            self.pairs.push((name, value));
        }
    }

    /// Whether they are those of a proxied request, of which nothing is the asker's fault.
    #[must_use]
    pub const fn are_proxied(&self) -> bool {
        self.proxied
    }

    /// The value of an attribute; `None` if it is absent or empty.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        let (_, value) = self.pairs.iter().find(|(known, _)| known == name)?;
        (!value.is_empty()).then_some(value.as_ref())
    }

    /// Names and values in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs
            .iter()
            .map(|(name, value)| (name.as_ref(), value.as_ref()))
    }
}

/// An attribute that cannot be taken. The caller's fault; nothing was changed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum AttributeError {
    /// The name is empty, too long or has control characters.
    #[error("an attribute name must have 1 to {MAX_NAME_LENGTH} bytes and no control character")]
    IllegalName,
    /// The value is too long.
    #[error("the value of attribute `{name}` must have at most {MAX_VALUE_LENGTH} bytes")]
    ValueTooLong {
        /// The attribute.
        name: String,
    },
    /// The value has a control character.
    #[error("the value of attribute `{name}` must not contain control characters")]
    ControlCharacter {
        /// The attribute.
        name: String,
    },
    /// The attribute was given before.
    #[error("attribute `{name}` must be given once")]
    Twice {
        /// The attribute.
        name: String,
    },
    /// More than [`MAX_ATTRIBUTES`].
    #[error("a check must have at most {MAX_ATTRIBUTES} attributes")]
    TooMany,
}

impl AttributeError {
    /// The attribute that is at fault, where it has a name that can be told.
    #[must_use]
    pub fn attribute(&self) -> Option<&str> {
        match self {
            Self::ValueTooLong { name }
            | Self::ControlCharacter { name }
            | Self::Twice { name } => Some(name),
            Self::IllegalName | Self::TooMany => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AttributeError, Attributes, MAX_ATTRIBUTES, MAX_NAME_LENGTH, MAX_VALUE_LENGTH};

    #[test]
    fn an_empty_value_is_an_absent_one() {
        let mut attributes = Attributes::new();
        attributes.insert("ip", "::1").expect("legal");
        attributes.insert("user", "").expect("legal");
        assert_eq!(attributes.value("ip"), Some("::1"));
        assert_eq!(attributes.value("user"), None);
        assert_eq!(attributes.value("plan"), None);
        assert_eq!(
            attributes.iter().collect::<Vec<_>>(),
            [("ip", "::1"), ("user", "")]
        );
    }

    #[test]
    fn bounds_are_kept_and_name_the_attribute() {
        let mut attributes = Attributes::new();
        let name = || "a".to_owned();
        let mut insert = |name: String, value: String| attributes.insert(name, value);
        assert_eq!(
            insert(String::new(), name()),
            Err(AttributeError::IllegalName)
        );
        assert_eq!(
            insert("a\nb".to_owned(), name()),
            Err(AttributeError::IllegalName)
        );
        let long = "n".repeat(MAX_NAME_LENGTH + 1);
        assert_eq!(insert(long, name()), Err(AttributeError::IllegalName));
        let long = insert(name(), "v".repeat(MAX_VALUE_LENGTH + 1));
        assert_eq!(long, Err(AttributeError::ValueTooLong { name: name() }));
        let control = insert(name(), "\u{7f}".to_owned());
        assert_eq!(
            control,
            Err(AttributeError::ControlCharacter { name: name() })
        );
        assert_eq!(insert(name(), "v".repeat(MAX_VALUE_LENGTH)), Ok(()));
        let twice = insert(name(), "w".to_owned()).expect_err("twice");
        assert_eq!(twice.attribute(), Some("a"));
        for number in 1..MAX_ATTRIBUTES {
            assert_eq!(insert(format!("n{number}"), name()), Ok(()));
        }
        assert_eq!(
            insert("one more".to_owned(), name()),
            Err(AttributeError::TooMany)
        );
    }
}
