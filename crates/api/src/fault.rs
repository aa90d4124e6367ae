//! What is wrong with a check, in words that both protocols say: the field, what is wrong, what is right.
//!
//! Knows nothing of statuses or frames.

use std::borrow::Cow;

use tollgate_limit::{AttributeError, CheckError};

/// What an attribute's value must be.
const ATTRIBUTE: &str = "text without control characters, at most 1024 bytes, each name once";
const VALUE: &str = "a value that is not empty";

/// What gives out permits, and takes them back.
pub(crate) const ACQUIRE: &str =
    "`POST /v1/acquire` for permits, `POST /v1/release` to give them back";

/// A field that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The field, from the body's root: `limit.window`.
    pub(crate) field: String,
    /// What is wrong.
    pub(crate) wrong: String,
    /// What would be right.
    pub(crate) right: Cow<'static, str>,
}

/// What a faulty check fails by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    /// A field of it.
    Field,
    /// It names a policy that is not configured.
    UnknownPolicy,
    /// Inline limits are switched off.
    InlineOff,
}

impl Fault {
    pub(crate) fn new(
        field: impl Into<String>,
        wrong: impl Into<String>,
        right: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            field: field.into(),
            wrong: wrong.into(),
            right: right.into(),
        }
    }

    /// The fault of an attribute below `parent`.
    pub(crate) fn attribute(parent: &str, error: &AttributeError) -> Self {
        let field = match error.attribute() {
            Some(name) => format!("{parent}.{name}"),
            None => parent.to_owned(),
        };
        Self::new(field, error.to_string(), ATTRIBUTE)
    }

    /// What the checker found.
    pub(crate) fn of_check(error: CheckError) -> (Blame, Self) {
        let wrong = error.to_string();
        match error {
            CheckError::UnknownPolicy { .. } => {
                let right = "the name of a configured policy";
                (Blame::UnknownPolicy, Self::new("policy", wrong, right))
            }
            CheckError::InlineOff => {
                let right = "name a configured `policy` instead";
                (Blame::InlineOff, Self::new("limit", wrong, right))
            }
            CheckError::Attribute(error) => (Blame::Field, Self::attribute("attributes", &error)),
            CheckError::Required { attribute, .. } => {
                let field = format!("attributes.{attribute}");
                (Blame::Field, Self::new(field, wrong, VALUE))
            }
            CheckError::NoCost { attribute, .. } => {
                let field = format!("attributes.{attribute}");
                let right = "a whole number from 0 to 9007199254740992";
                (Blame::Field, Self::new(field, wrong, right))
            }
            CheckError::OnlyConcurrency => (Blame::Field, Self::new("policy", wrong, ACQUIRE)),
            CheckError::EmptyKey { attribute } => {
                let field = format!("key.{attribute}");
                (Blame::Field, Self::new(field, wrong, VALUE))
            }
            CheckError::Spec(error) => {
                let field = format!("limit.{}", error.field);
                (Blame::Field, Self::new(field, error.wrong, error.right))
            }
        }
    }
}
