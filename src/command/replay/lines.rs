//! The lines of a log, one at a time.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _},
    path::Path,
};

use super::MAX_LINE;

/// A log that is read line by line.
#[derive(Debug)]
pub(super) struct Lines {
    reader: BufReader<File>,
    length: u64,
    position: u64,
    number: u64,
}

impl Lines {
    /// Opens a log.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        Ok(Self {
            length: file.metadata()?.len(),
            reader: BufReader::new(file),
            position: 0,
            number: 0,
        })
    }

    /// Its length in bytes; 0 if it is a pipe.
    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    /// How many bytes were read.
    pub(super) const fn position(&self) -> u64 {
        self.position
    }

    /// The next line that is not empty, and its number among those, from 0; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<(u64, String)>> {
        loop {
            let mut line = Vec::new();
            let read = (&mut self.reader)
                .take(MAX_LINE)
                .read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(None);
            }
            self.position = self.position.saturating_add(read as u64);
            if line.last() != Some(&b'\n') {
                let skipped = self.reader.skip_until(b'\n')?;
                self.position = self.position.saturating_add(skipped as u64);
            }
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_end_matches(['\r', '\n']);
            if !text.is_empty() {
                let number = self.number;
                self.number = self.number.saturating_add(1);
                return Ok(Some((number, text.to_owned())));
            }
        }
    }
}
