//! When a file that has changed is at rest.
//!
//! Pure: it is told of each look at the file. A file that is written in place is empty, then half of
//! itself, for a moment; either may be a valid file, and would lift limits. Invariant: a content is
//! taken when two looks in a row have seen it, or when the file does not come to rest at all.

use crate::config::{ConfigError, Digest};

/// How many looks in a row may each see something else before the last is taken as it is.
const MAX_UNSETTLED_LOOKS: u8 = 4;

/// What a look at the file has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Text(Digest),
    Unreadable(ConfigError),
}

/// What to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Nothing: it was taken before.
    Known,
    /// Look again soon.
    Unsettled,
    /// Take it.
    New,
}

/// What was taken last, and what was seen since.
#[derive(Debug)]
pub(super) struct Settling {
    taken: Content,
    seen: Option<Content>,
    unsettled: u8,
}

impl Settling {
    pub(super) fn new(taken: Content) -> Self {
        Self {
            taken,
            seen: None,
            unsettled: 0,
        }
    }

    /// Tells what a look has seen.
    pub(super) fn look(&mut self, content: Content) -> Look {
        if content == self.taken {
            self.seen = None;
            self.unsettled = 0;
            return Look::Known;
        }
        if self.seen.as_ref() != Some(&content) && self.unsettled < MAX_UNSETTLED_LOOKS {
            self.seen = Some(content);
            self.unsettled = self.unsettled.saturating_add(1);
            return Look::Unsettled;
        }
        self.taken = content;
        self.seen = None;
        self.unsettled = 0;
        Look::New
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Content, Look, MAX_UNSETTLED_LOOKS, Settling};
    use crate::config::{ConfigError, PolicyFile};

    fn text(text: &str) -> Content {
        let file = PolicyFile::parse(
            &PathBuf::from("p"),
            &format!("# {text}"),
            &tollgate_limit::HashKey::new([0; 16]),
        );
        Content::Text(file.unwrap().digest)
    }

    fn gone() -> Content {
        Content::Unreadable(ConfigError::Unreadable {
            file: PathBuf::from("p"),
            reason: "not there".to_owned(),
        })
    }

    #[test]
    fn a_content_is_taken_once_when_it_was_seen_twice() {
        let mut file = Settling::new(text("a"));
        assert_eq!(file.look(text("a")), Look::Known);
        assert_eq!(file.look(text("b")), Look::Unsettled);
        assert_eq!(file.look(text("b")), Look::New);
        assert_eq!(file.look(text("b")), Look::Known);
        assert_eq!(file.look(text("a")), Look::Unsettled);
        assert_eq!(file.look(text("a")), Look::New);
    }

    #[test]
    fn a_file_that_is_empty_for_a_moment_is_not_taken() {
        let mut file = Settling::new(text("a"));
        assert_eq!(file.look(text("")), Look::Unsettled);
        assert_eq!(file.look(text("b")), Look::Unsettled);
        assert_eq!(file.look(text("b")), Look::New);
        assert_eq!(file.look(gone()), Look::Unsettled);
        assert_eq!(file.look(text("b")), Look::Known);
        assert_eq!(file.look(gone()), Look::Unsettled);
        assert_eq!(file.look(gone()), Look::New);
        assert_eq!(file.look(gone()), Look::Known);
    }

    #[test]
    fn a_file_that_never_rests_is_taken_as_it_is() {
        let mut file = Settling::new(text("a"));
        for number in 0..MAX_UNSETTLED_LOOKS {
            assert_eq!(file.look(text(&number.to_string())), Look::Unsettled);
        }
        assert_eq!(file.look(text("last")), Look::New);
    }
}
