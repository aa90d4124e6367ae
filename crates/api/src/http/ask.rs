//! The body of a check, read and made a question; and those of what is done with a check later.
//!
//! The first fault of a body is kept and the rest of it is read on, so that in a list one faulty check
//! leaves the others alone. Knows nothing of statuses or of how a check is decided.

mod act;
mod field;
mod inline;
mod list;
mod one;
mod pairs;
mod switch;

use std::borrow::Cow;

use serde::de::{self, DeserializeSeed as _};
use tollgate_limit::{
    Attributes, Call, CheckError, Cost, LimitSpec, Mode, Nanos, Question, SpecError, Subject,
};

pub(super) use self::{
    act::{Act, Acting},
    switch::{SWITCH_EXAMPLE, read_switch},
};
use self::{list::ListBody, one::AskSeed};
use crate::{
    checker::{Acted, Checked, Checker},
    fault::{ACQUIRE, Fault},
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
        spec: Box<LimitSpec>,
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

    /// Asks; a cost of 0 asks for one unit without consuming.
    ///
    /// # Errors
    /// What the checker says.
    pub(super) fn put<C: Checker>(
        mut self,
        call: Call,
        checker: &C,
        now: Nanos,
    ) -> Result<Checked, CheckError> {
        if self.cost == Cost::ZERO {
            self.cost = Cost::ONE;
            self.mode = Mode::Peek;
        }
        self.with_question(call, checker, |question| checker.check(now, question))
    }

    /// Gives back what it would cost.
    ///
    /// # Errors
    /// [`Fault`]: a refund cannot be peeked.
    pub(super) fn refund<C: Checker>(
        self,
        checker: &C,
        now: Nanos,
    ) -> Result<Result<Acted, CheckError>, Fault> {
        if self.mode == Mode::Peek {
            let right = "no `peek` beside a refund";
            return Err(Fault::new("peek", "true", right));
        }
        Ok(self.with_question(Call::Check, checker, |question| {
            checker.refund(now, question)
        }))
    }

    fn with_question<C: Checker, T>(
        self,
        call: Call,
        checker: &C,
        ask: impl FnOnce(&Question<'_>) -> Result<T, CheckError>,
    ) -> Result<T, CheckError> {
        let terms = Terms {
            cost: self.cost,
            mode: self.mode,
            call,
        };
        match self.subject {
            AskSubject::Policy {
                name: Cow::Borrowed(name),
                attributes,
            } => ask(&terms.question(Subject::Policy { name, attributes })),
            AskSubject::Policy {
                name: Cow::Owned(name),
                attributes,
            } => {
                let attributes = shortened(&attributes)?;
                let name = name.as_str();
                ask(&terms.question(Subject::Policy { name, attributes }))
            }
            AskSubject::Inline { spec, key } => {
                let limit = checker.inline_limit(*spec)?;
                ask(&terms.question(Subject::Inline { limit, key })).map_err(of_inline)
            }
        }
    }
}

/// A question but for its subject.
#[derive(Clone, Copy)]
struct Terms {
    cost: Cost,
    mode: Mode,
    call: Call,
}

impl Terms {
    const fn question(self, subject: Subject<'_>) -> Question<'_> {
        Question {
            subject,
            cost: self.cost,
            mode: self.mode,
            call: self.call,
        }
    }
}

/// What is said of permits names the policy; an inline limit has none.
fn of_inline(error: CheckError) -> CheckError {
    if error != CheckError::OnlyConcurrency {
        return error;
    }
    CheckError::Spec(SpecError {
        field: "algorithm".to_owned(),
        wrong: "\"concurrency\" gives out permits, which only an acquisition takes".to_owned(),
        right: ACQUIRE.to_owned(),
    })
}

/// The same attributes with a shorter life: only where the policy's name was written with escapes.
fn shortened<'s>(attributes: &'s Attributes<'_>) -> Result<Attributes<'s>, CheckError> {
    let mut shorter = Attributes::new();
    for (name, value) in attributes.iter() {
        shorter.insert(name, value)?;
    }
    Ok(shorter)
}
