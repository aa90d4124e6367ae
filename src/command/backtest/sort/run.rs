//! A run: sorted requests in a temporary file that has no name and is gone when it is closed.
//!
//! Each request: time, line, cost and the length of its values as little-endian words, then the values.

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Read as _, Seek as _, Write as _},
};

use tollgate_limit::{Cost, Nanos};

use crate::access_log::Request;

/// The longest values of a request, in bytes: those of the longest line, what is not UTF-8 in it replaced,
/// and what stands between them.
const MAX_VALUES: u64 = 1 << 20;
/// Bytes of a file that are read or written at once.
const AT_ONCE: usize = 64 << 10;

/// A run that is being written.
#[derive(Debug)]
pub(super) struct RunWriter(BufWriter<File>);

impl RunWriter {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(BufWriter::with_capacity(
            AT_ONCE,
            tempfile::tempfile()?,
        )))
    }

    pub(super) fn write(&mut self, request: &Request) -> io::Result<()> {
        let values = request.joined();
        let words = [
            request.time.as_nanos(),
            request.line,
            request.cost.units(),
            values.len() as u64,
        ];
        for word in words {
            self.0.write_all(&word.to_le_bytes())?;
        }
        self.0.write_all(values.as_bytes())
    }

    pub(super) fn finish(self) -> io::Result<Run> {
        let file = self.0.into_inner();
        Ok(Run(file.map_err(io::IntoInnerError::into_error)?))
    }
}

/// A run that was written.
#[derive(Debug)]
pub(super) struct Run(File);

impl Run {
    pub(super) fn open(mut self) -> io::Result<RunReader> {
        self.0.rewind()?;
        Ok(RunReader(BufReader::with_capacity(AT_ONCE, self.0)))
    }
}

/// A run that is being read.
#[derive(Debug)]
pub(super) struct RunReader(BufReader<File>);

impl RunReader {
    pub(super) fn next(&mut self) -> io::Result<Option<Request>> {
        let Some(time) = self.word()? else {
            return Ok(None);
        };
        let mut word = || self.word()?.ok_or_else(broken);
        let (line, cost, length) = (word()?, word()?, word()?);
        if length > MAX_VALUES {
            return Err(broken());
        }
        let mut values = vec![0; usize::try_from(length).map_err(|_long| broken())?];
        self.0.read_exact(&mut values)?;
        let values = String::from_utf8(values).map_err(|_bytes| broken())?;
        let cost = Cost::new(cost).map_err(|_large| broken())?;
        Ok(Some(Request::new(
            Nanos::new(time),
            line,
            cost,
            values.into(),
        )))
    }

    /// The next word; `None` if the file ends before it.
    fn word(&mut self) -> io::Result<Option<u64>> {
        let mut bytes = [0; 8];
        match self.0.read_exact(&mut bytes) {
            Ok(()) => Ok(Some(u64::from_le_bytes(bytes))),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// What was written is not what is read.
fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a temporary file was changed")
}
