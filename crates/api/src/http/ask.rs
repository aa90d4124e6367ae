//! The body of a check, read and made a question.
//!
//! The first fault of a body is kept and the rest of it is read on, so that in a list one faulty check
//! leaves the others alone. Knows nothing of statuses or of how a check is decided.

mod field;
mod inline;
mod list;
mod one;
mod pairs;

use std::borrow::Cow;

use serde::de::{self, DeserializeSeed as _};
use tollgate_limit::{
    Attributes, Call, CheckError, Cost, LimitSpec, Mode, Nanos, Question, Subject,
};

use self::{list::ListBody, one::AskSeed};
use crate::{
    checker::{Checked, Checker},
    fault::Fault,
};

/// One check of a list.
pub(super) type Item<'a> = Result<Ask<'a>, Fault>;
/// A list of checks.
pub(super) type List<'a> = Result<Vec<Item<'a>>, Fault>;

/// A check that was read. Whether its policy exists and its limit is sound is not known yet.
#[derive(Debug)]
pub(super) struct Ask<'a> {
    subject: AskSubject<'a>,
    cost: Cost,
    mode: Mode,
}

#[derive(Debug)]
enum AskSubject<'a> {
    Policy {
        name: Cow<'a, str>,
        attributes: Attributes<'a>,
    },
    Inline {
        spec: LimitSpec,
        key: Attributes<'a>,
    },
}

impl<'a> Ask<'a> {
    /// Reads the body of one check. The outer error is serde's own: not JSON.
    pub(super) fn read(body: &'a [u8]) -> Result<Result<Self, Fault>, serde_json::Error> {
        // Checked once here, it is not checked for each string.
        let Ok(text) = std::str::from_utf8(body) else {
            return Err(de::Error::custom("not UTF-8"));
        };
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let ask = AskSeed.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(ask)
    }

    /// Reads the body of a list of checks.
    pub(super) fn read_list(body: &'a [u8]) -> Result<List<'a>, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_slice(body);
        let list = ListBody::read(&mut deserializer)?;
        deserializer.end()?;
        Ok(list)
    }

    /// The policy whose header settings hold; empty for an inline limit.
    pub(super) fn policy(&self) -> &str {
        match &self.subject {
            AskSubject::Policy { name, .. } => name,
            AskSubject::Inline { .. } => "",
        }
    }

    /// Asks.
    ///
    /// # Errors
    /// What the checker says.
    pub(super) fn put<C: Checker>(self, checker: &C, now: Nanos) -> Result<Checked, CheckError> {
        let (cost, mode) = (self.cost, self.mode);
        match self.subject {
            AskSubject::Policy {
                name: Cow::Borrowed(name),
                attributes,
            } => {
                let subject = Subject::Policy { name, attributes };
                checker.check(
                    now,
                    &Question {
                        subject,
                        cost,
                        mode,
                        call: Call::Check,
                    },
                )
            }
            AskSubject::Policy {
                name: Cow::Owned(name),
                attributes,
            } => {
                let attributes = shortened(&attributes)?;
                let subject = Subject::Policy {
                    name: &name,
                    attributes,
                };
                checker.check(
                    now,
                    &Question {
                        subject,
                        cost,
                        mode,
                        call: Call::Check,
                    },
                )
            }
            AskSubject::Inline { spec, key } => {
                let limit = checker.inline_limit(spec)?;
                let subject = Subject::Inline { limit, key };
                checker.check(
                    now,
                    &Question {
                        subject,
                        cost,
                        mode,
                        call: Call::Check,
                    },
                )
            }
        }
    }
}

/// The same attributes with a shorter life: only where the policy's name was written with escapes.
fn shortened<'s>(attributes: &'s Attributes<'_>) -> Result<Attributes<'s>, CheckError> {
    let mut shorter = Attributes::new();
    for (name, value) in attributes.iter() {
        shorter.insert(name, value)?;
    }
    Ok(shorter)
}
