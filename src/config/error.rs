//! What is wrong with a configuration, said so that it can be put right.

use std::{fmt, path::PathBuf};

use thiserror::Error;

/// A configuration that cannot be used. The operator's fault; nothing was started.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("{}: cannot be read: {reason}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// A file is longer than any configuration.
    #[error("{}: longer than {max_bytes} bytes", file.display())]
    TooLong {
        /// The file.
        file: PathBuf,
        /// The bound.
        max_bytes: u64,
    },
    /// A file says something wrong.
    #[error(transparent)]
    Mistake(Box<Mistake>),
    /// An environment variable says something wrong.
    #[error("{name}: {wrong}; {right}")]
    Environment {
        /// The variable.
        name: &'static str,
        /// What is wrong with it.
        wrong: String,
        /// What would be right.
        right: String,
    },
}

impl From<Mistake> for ConfigError {
    fn from(mistake: Mistake) -> Self {
        Self::Mistake(Box::new(mistake))
    }
}

/// A mistake in a file.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub struct Mistake {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The column, in characters from 1.
    pub column: usize,
    /// The field, where one can be named.
    pub field: Option<String>,
    /// What is wrong.
    pub wrong: String,
    /// What would be right; empty where `wrong` says it.
    pub right: String,
    /// The line itself.
    pub excerpt: String,
    /// How many characters of the line are meant, at least 1.
    pub width: usize,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.file.display(), self.line, self.column)?;
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.wrong)?;
        if !self.right.is_empty() {
            write!(f, "; {}", self.right)?;
        }
        let number = self.line.to_string();
        let gutter = " ".repeat(number.len());
        let indent = " ".repeat(self.column.saturating_sub(1));
        write!(f, "\n {number} | {}", self.excerpt)?;
        write!(f, "\n {gutter} | {indent}{}", "^".repeat(self.width))
    }
}
