//! The text of one configuration file, and mistakes at places in it.
//!
//! Invariant: at most [`MAX_FILE_BYTES`] of a file are read.

use std::{
    fs::File,
    io::Read as _,
    ops::Range,
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;
use tollgate_limit::SpecError;

use super::error::{ConfigError, Mistake};

/// The longest configuration file, in bytes.
pub(super) const MAX_FILE_BYTES: u64 = 4 << 20;
/// The longest line that a mistake shows, in characters.
const MAX_EXCERPT: usize = 160;

/// A configuration file that was read.
#[derive(Clone, Debug)]
pub(super) struct Source {
    file: PathBuf,
    text: String,
}

impl Source {
    /// A text that stands for a file.
    pub(super) fn new(file: &Path, text: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            text: text.into(),
        }
    }

    /// Reads a file.
    pub(super) fn read(file: &Path) -> Result<Self, ConfigError> {
        Ok(Self::new(file, read_text(file)?))
    }

    /// What the file says.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The path of a file that this one names, relative to its own folder.
    pub(super) fn resolve(&self, path: &str) -> PathBuf {
        match self.file.parent() {
            Some(folder) => folder.join(path),
            None => PathBuf::from(path),
        }
    }

    /// Reads the file as TOML.
    pub(super) fn parse<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        toml::from_str(&self.text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            let mut mistake = self.place(&span);
            mistake.field = self.field_at(&span);
            mistake.wrong = error.message().trim_end().replace('\n', "; ");
            mistake.into()
        })
    }

    /// A mistake of the field at a place.
    pub(super) fn mistake(
        &self,
        span: &Range<usize>,
        field: &str,
        wrong: impl Into<String>,
        right: impl Into<String>,
    ) -> ConfigError {
        let mut mistake = self.place(span);
        mistake.field = Some(field.to_owned());
        mistake.wrong = wrong.into();
        mistake.right = right.into();
        mistake.into()
    }

    /// What a limit's compiler found, at a place.
    pub(super) fn spec_mistake(&self, span: &Range<usize>, error: SpecError) -> ConfigError {
        self.mistake(span, &error.field, error.wrong, error.right)
    }

    /// The line that a place lies on, from 1.
    pub(super) fn line_of(&self, span: &Range<usize>) -> usize {
        self.place(span).line
    }

    fn place(&self, span: &Range<usize>) -> Mistake {
        let start = floor_boundary(&self.text, span.start);
        let end = floor_boundary(&self.text, span.end);
        let before = self.text.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let rest = self.text.get(line_start..).unwrap_or_default();
        let line = rest.lines().next().unwrap_or_default();
        let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
        let on_line = line.chars().count().saturating_sub(column - 1);
        let meant = self.text.get(start..end).unwrap_or_default();
        let meant = meant.lines().next().unwrap_or_default().chars().count();
        Mistake {
            file: self.file.clone(),
            line: before.matches('\n').count() + 1,
            column,
            field: None,
            wrong: String::new(),
            right: String::new(),
            excerpt: line.chars().take(MAX_EXCERPT).collect(),
            width: meant.min(on_line).clamp(1, MAX_EXCERPT),
        }
    }

    /// The key that is set on the line of a place, if the place is behind its `=`.
    fn field_at(&self, span: &Range<usize>) -> Option<String> {
        let before = self.text.get(..floor_boundary(&self.text, span.start))?;
        let line = before.rsplit('\n').next()?;
        let (key, _) = line.split_once('=')?;
        let key = key.trim();
        (!key.is_empty() && !key.starts_with('#')).then(|| key.to_owned())
    }
}

/// Reads a text file of bounded length.
pub(super) fn read_text(file: &Path) -> Result<String, ConfigError> {
    let unreadable = |error: std::io::Error| ConfigError::Unreadable {
        file: file.to_owned(),
        reason: error.to_string(),
    };
    let mut text = String::new();
    let open = File::open(file).map_err(unreadable)?;
    let read = open.take(MAX_FILE_BYTES + 1).read_to_string(&mut text);
    if u64::try_from(read.map_err(unreadable)?).unwrap_or(u64::MAX) > MAX_FILE_BYTES {
        return Err(ConfigError::TooLong {
            file: file.to_owned(),
            max_bytes: MAX_FILE_BYTES,
        });
    }
    Ok(text)
}

fn floor_boundary(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at)
}
