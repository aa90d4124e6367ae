//! What is asked of a request: by a description of it, or by a closure.
//!
//! Invariant: a check's values and cost are in the node's bounds whatever the request holds, because
//! a request whose check the node calls faulty passes: see [`fit`].

mod description;
mod fit;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

use http::request::Parts;

pub use self::description::{Description, DescriptionError};
use crate::Check;

/// A closure that asks.
type Asking = dyn for<'a> Fn(&'a Parts) -> Check<'a> + Send + Sync;

/// What is asked of a request. Cheap to clone.
#[derive(Clone)]
pub struct Question(Source);

#[derive(Clone)]
enum Source {
    Described(Arc<Description>),
    Asked(Arc<Asking>),
}

impl Question {
    /// Asks what the closure says of a request's head. Values above 1024 bytes or with control
    /// characters are replaced as [`Description`] says, and a cost above 2^53 by 2^53. More than 64
    /// attributes, a name given twice or a policy that no node knows make faults, and faults pass.
    pub fn from_fn(ask: impl for<'a> Fn(&'a Parts) -> Check<'a> + Send + Sync + 'static) -> Self {
        Self(Source::Asked(Arc::new(ask)))
    }

    pub(super) fn check<'a>(&'a self, request: &'a Parts) -> Check<'a> {
        let mut check = match &self.0 {
            Source::Described(description) => description.check(request),
            Source::Asked(ask) => ask(request),
        };
        fit::fit(&mut check);
        check
    }
}

impl From<Description> for Question {
    fn from(description: Description) -> Self {
        Self(Source::Described(Arc::new(description)))
    }
}

impl Default for Question {
    fn default() -> Self {
        Description::default().into()
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::Described(description) => description.fmt(f),
            Source::Asked(_) => f.debug_struct("Question").finish_non_exhaustive(),
        }
    }
}
