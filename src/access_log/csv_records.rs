//! CSV: one record at a time, with the line that it starts on.
//!
//! Bounds: a record of at most [`MAX_LINE`] bytes and [`MAX_COLUMNS`] columns; of a longer one the lines
//! are counted and nothing else is kept, whatever quote is never closed.

use std::{
    borrow::Cow,
    io::{self, BufRead},
};

use csv_core::{ReadRecordResult, Reader};

use super::MAX_LINE;

/// The most columns of a record.
const MAX_COLUMNS: usize = 1024;

/// A CSV file that is read record by record.
#[derive(Debug)]
pub(super) struct CsvRecords<R> {
    input: R,
    reader: Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
    /// Lines that are behind.
    lines: u64,
    position: u64,
}

/// A record.
#[derive(Debug)]
pub(super) struct Record<'a> {
    /// The line that it starts on, from 1.
    pub(super) line: u64,
    /// How many lines it takes.
    pub(super) lines: u64,
    /// The columns; `None` if the record is too long.
    pub(super) columns: Option<Columns<'a>>,
}

/// The columns of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns<'a> {
    text: &'a [u8],
    ends: &'a [usize],
}

impl<'a> Columns<'a> {
    /// How many there are.
    pub(super) const fn count(&self) -> usize {
        self.ends.len()
    }

    /// One column, what is not UTF-8 in it replaced.
    pub(super) fn column(&self, at: usize) -> Option<Cow<'a, str>> {
        let start = match at.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        let bytes = self.text.get(start..*self.ends.get(at)?)?;
        Some(String::from_utf8_lossy(bytes))
    }
}

impl<R: BufRead> CsvRecords<R> {
    /// The records of a text.
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            reader: Reader::new(),
            text: vec![0; MAX_LINE],
            ends: vec![0; MAX_COLUMNS],
            lines: 0,
            position: 0,
        }
    }

    /// How many bytes were read.
    pub(super) const fn position(&self) -> u64 {
        self.position
    }

    /// The next record; `None` at the end. Empty lines are passed over.
    pub(super) fn next_record(&mut self) -> io::Result<Option<Record<'_>>> {
        self.skip_empty_lines()?;
        let before = self.lines;
        let (mut text_length, mut count) = (0_usize, 0_usize);
        let mut fits = true;
        loop {
            let input = self.input.fill_buf()?;
            let text = self.text.get_mut(text_length..).unwrap_or_default();
            let ends = self.ends.get_mut(count..).unwrap_or_default();
            let (result, read, written, ended) = self.reader.read_record(input, text, ends);
            self.lines = self.lines.saturating_add(line_ends(input, read));
            self.position = self.position.saturating_add(read as u64);
            self.input.consume(read);
            text_length = text_length.saturating_add(written);
            count = count.saturating_add(ended);
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {
                    fits = false;
                    (text_length, count) = (0, 0);
                }
                ReadRecordResult::End => return Ok(None),
                ReadRecordResult::Record => break,
            }
        }
        let columns = Columns {
            text: self.text.get(..text_length).unwrap_or_default(),
            ends: self.ends.get(..count).unwrap_or_default(),
        };
        Ok(Some(Record {
            line: before.saturating_add(1),
            // The end of its last line may be unread yet.
            lines: self.lines.saturating_sub(before).max(1),
            columns: fits.then_some(columns),
        }))
    }

    /// Passes over ends of lines, so that a record's number is that of the line with its first column.
    fn skip_empty_lines(&mut self) -> io::Result<()> {
        loop {
            let input = self.input.fill_buf()?;
            let ends = input
                .iter()
                .take_while(|byte| matches!(byte, b'\r' | b'\n'));
            let read = ends.count();
            let more = read > 0 && read == input.len();
            self.lines = self.lines.saturating_add(line_ends(input, read));
            self.position = self.position.saturating_add(read as u64);
            self.input.consume(read);
            if !more {
                return Ok(());
            }
        }
    }
}

fn line_ends(input: &[u8], read: usize) -> u64 {
    let input = input.get(..read).unwrap_or_default();
    input.iter().filter(|byte| **byte == b'\n').count() as u64
}
