//! A log of any form, request by request.

use std::{
    fs::File,
    io::{self, BufReader, Chain, Cursor, Read as _},
    path::Path,
};

use thiserror::Error;

use super::{
    MAX_LINE,
    csv_records::{Columns, CsvRecords},
    entry::Entry,
    fields::{Fault, Fields, TIME_NAMES, is_time},
    form::Form,
    json_line,
    lines::Lines,
    request::Request,
};

/// What the form is found by, in bytes.
const HEAD: u64 = MAX_LINE as u64;
/// The mark that some programs write before UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";
/// The one column of an access log that holds a cost.
const BYTES: &str = "bytes";
/// Columns that an error names.
const MAX_NAMED: usize = 20;

type Input = BufReader<Chain<Cursor<Vec<u8>>, File>>;

/// A log that is read from its first line to its last.
#[derive(Debug)]
pub struct Log {
    fields: Fields,
    records: Records,
    length: u64,
}

#[derive(Debug)]
enum Records {
    Entries(Lines<Input>),
    Json(Lines<Input>),
    Csv(Box<CsvRecords<Input>>, Header),
}

/// Where in a CSV record the parts stand.
#[derive(Debug)]
struct Header {
    names: Vec<String>,
    time: usize,
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// A request.
    Request(Request),
    /// Lines that cannot be counted.
    Fault {
        /// The first of them, from 1.
        line: u64,
        /// How many they are.
        lines: u64,
        /// What is wrong.
        why: Fault,
    },
}

/// A log that cannot be read as it was asked for.
#[derive(Debug, Error)]
pub enum OpenError {
    /// What the system says.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// None of the known forms.
    #[error(
        "is not an access log, JSON lines or CSV with a column of times; name its form with --format, or \
         the column with --time"
    )]
    UnknownForm,
    /// CSV without a column that is needed.
    #[error("has no column {wanted}; its columns are {}", .columns.join(", "))]
    NoColumn {
        /// What is needed.
        wanted: String,
        /// The columns that there are, the first of them.
        columns: Vec<String>,
    },
    /// A column that access logs do not have.
    #[error("an access log has no column `{wanted}`; write --cost bytes, or leave it out")]
    NotOfAccessLogs {
        /// What was asked for.
        wanted: String,
    },
}

impl Log {
    /// Opens a log and finds its form, unless it is given.
    ///
    /// # Errors
    /// [`OpenError`]: the file's fault or the caller's.
    pub fn open(path: &Path, form: Option<Form>, fields: Fields) -> Result<Self, OpenError> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut head = Vec::new();
        (&mut file).take(HEAD).read_to_end(&mut head)?;
        if head.starts_with(MARK) {
            head.drain(..MARK.len());
        }
        let text = String::from_utf8_lossy(&head);
        let form = form.or_else(|| Form::of(&text, fields.named()));
        let form = form.ok_or(OpenError::UnknownForm)?;
        let input = BufReader::with_capacity(MAX_LINE, Cursor::new(head).chain(file));
        let records = match form {
            Form::AccessLog => {
                check_entry_fields(&fields)?;
                Records::Entries(Lines::new(input))
            }
            Form::Json => Records::Json(Lines::new(input)),
            Form::Csv => {
                let mut records = Box::new(CsvRecords::new(input));
                let header = Header::read(&mut records, &fields)?;
                Records::Csv(records, header)
            }
        };
        Ok(Self {
            fields,
            records,
            length,
        })
    }

    /// Its form.
    #[must_use]
    pub const fn form(&self) -> Form {
        match self.records {
            Records::Entries(_) => Form::AccessLog,
            Records::Json(_) => Form::Json,
            Records::Csv(..) => Form::Csv,
        }
    }

    /// Its length in bytes; 0 if it is a pipe.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// How many bytes were read.
    #[must_use]
    pub const fn position(&self) -> u64 {
        match &self.records {
            Records::Entries(lines) | Records::Json(lines) => lines.position(),
            Records::Csv(records, _) => records.position(),
        }
    }

    /// The next request, or why there is none in the next lines; `None` at the end.
    ///
    /// # Errors
    /// What the system says.
    pub fn next_reading(&mut self) -> io::Result<Option<Reading>> {
        let fields = &self.fields;
        let (line, lines, request) = match &mut self.records {
            Records::Entries(lines) => match lines.next_line()? {
                Some((line, text)) => (line, 1, entry(line, &text, fields)),
                None => return Ok(None),
            },
            Records::Json(lines) => match lines.next_line()? {
                Some((line, text)) => (line, 1, json_line::request(line, &text, fields)),
                None => return Ok(None),
            },
            Records::Csv(records, header) => match records.next_record()? {
                Some(record) => {
                    let request = record.columns.map_or(Err(Fault::TooLong), |columns| {
                        header.request(record.line, columns, fields)
                    });
                    (record.line, record.lines, request)
                }
                None => return Ok(None),
            },
        };
        Ok(Some(match request {
            Ok(request) => Reading::Request(request),
            Err(why) => Reading::Fault { line, lines, why },
        }))
    }
}

fn entry(line: u64, text: &str, fields: &Fields) -> Result<Request, Fault> {
    let entry = Entry::parse(text).ok_or(Fault::NotAnEntry)?;
    fields.request(line, entry.time, |name| {
        if name == BYTES {
            return Some(entry.bytes.to_string().into());
        }
        entry
            .attributes()
            .find_map(|(known, value)| (known == name).then_some(value))
    })
}

/// The time of an access log is where it is; of its columns only the bytes are a number.
fn check_entry_fields(fields: &Fields) -> Result<(), OpenError> {
    let wrong = fields.named().find(|name| *name != BYTES);
    match wrong.or(fields.time.as_deref()) {
        Some(wanted) => Err(OpenError::NotOfAccessLogs {
            wanted: wanted.to_owned(),
        }),
        None => Ok(()),
    }
}

impl Header {
    fn read(records: &mut CsvRecords<Input>, fields: &Fields) -> Result<Self, OpenError> {
        let columns = records.next_record()?.and_then(|record| record.columns);
        let names: Vec<String> = columns.map_or_else(Vec::new, |columns| {
            let names = (0..columns.count()).filter_map(|at| columns.column(at));
            names.map(|name| name.trim().to_owned()).collect()
        });
        let missing = |wanted: String| OpenError::NoColumn {
            wanted,
            columns: names.iter().take(MAX_NAMED).cloned().collect(),
        };
        if let Some(name) = fields.cost.iter().find(|name| !names.contains(name)) {
            return Err(missing(format!("`{name}`")));
        }
        let time = match &fields.time {
            Some(wanted) => {
                let exact = names.iter().position(|name| name == wanted);
                let same = || {
                    names
                        .iter()
                        .position(|name| name.eq_ignore_ascii_case(wanted))
                };
                exact
                    .or_else(same)
                    .ok_or_else(|| missing(format!("`{wanted}`")))?
            }
            None => names
                .iter()
                .position(|name| is_time(name))
                .ok_or_else(|| missing(format!("of {}", TIME_NAMES.join(", "))))?,
        };
        Ok(Self { names, time })
    }

    fn request(&self, line: u64, columns: Columns<'_>, fields: &Fields) -> Result<Request, Fault> {
        let (found, wanted) = (columns.count(), self.names.len());
        if found != wanted {
            return Err(Fault::Width { found, wanted });
        }
        let time = columns.column(self.time).unwrap_or_default();
        fields.request(line, &time, |name| {
            let at = self.names.iter().position(|known| known == name)?;
            columns.column(at)
        })
    }
}

#[cfg(test)]
mod tests;
