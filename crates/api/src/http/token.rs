//! The operators' token.

use std::{fmt, hint::black_box};

use thiserror::Error;

/// A secret that opens the operators' calls.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// The shortest token, in bytes.
    pub const MIN_LENGTH: usize = 16;
    /// The longest token, in bytes.
    pub const MAX_LENGTH: usize = 1024;

    /// The token of this text.
    ///
    /// # Errors
    /// [`TokenError`] if no client could send it, or if it is easily guessed. The operator's fault.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        if !(Self::MIN_LENGTH..=Self::MAX_LENGTH).contains(&text.len()) {
            return Err(TokenError::Length);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Characters);
        }
        Ok(Self(text.to_owned()))
    }

    /// Whether `presented` is the token. Takes as long for any text of the token's length.
    #[must_use]
    pub fn is(&self, presented: &[u8]) -> bool {
        if self.0.len() != presented.len() {
            return false;
        }
        let pairs = self.0.bytes().zip(presented);
        let difference = pairs.fold(0, |found, (ours, theirs)| {
            black_box(found | (ours ^ theirs))
        });
        black_box(difference) == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(secret)")
    }
}

/// A text that cannot be a token. The operator's fault.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum TokenError {
    /// Too short or too long.
    #[error(
        "a token must have {} to {} characters",
        Token::MIN_LENGTH,
        Token::MAX_LENGTH
    )]
    Length,
    /// A character that a header cannot carry.
    #[error("a token must consist of visible ASCII characters")]
    Characters,
}
