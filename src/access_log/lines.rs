//! The lines of a log, one at a time.
//!
//! Bound: a line of at most [`MAX_LINE`] bytes in memory.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read as _},
    path::Path,
};

use super::MAX_LINE;

/// A log that is read line by line.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    position: u64,
    number: u64,
}

impl Lines<BufReader<File>> {
    /// Opens a log; its length in bytes, 0 if it is a pipe, comes with it.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(path: &Path) -> io::Result<(Self, u64)> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok((Self::new(BufReader::new(file)), length))
    }
}

impl<R: BufRead> Lines<R> {
    /// The lines of a text.
    pub const fn new(reader: R) -> Self {
        Self {
            reader,
            position: 0,
            number: 0,
        }
    }

    /// How many bytes were read.
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// The next line that is not empty, and its number in the log, from 1; `None` at the end. What is
    /// longer than [`MAX_LINE`] is cut off.
    ///
    /// # Errors
    /// What the system says.
    pub fn next_line(&mut self) -> io::Result<Option<(u64, String)>> {
        loop {
            let mut line = Vec::new();
            let read = (&mut self.reader)
                .take(MAX_LINE as u64)
                .read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(None);
            }
            self.number = self.number.saturating_add(1);
            self.position = self.position.saturating_add(read as u64);
            if line.last() != Some(&b'\n') {
                let skipped = self.reader.skip_until(b'\n')?;
                self.position = self.position.saturating_add(skipped as u64);
            }
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_end_matches(['\r', '\n']);
            if !text.is_empty() {
                return Ok(Some((self.number, text.to_owned())));
            }
        }
    }
}
