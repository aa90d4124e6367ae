//! Batches of series on the wire.
//!
//! Their number, and then one after the other. A counter is written out where it first comes and named by
//! its number in the batch from then on: the few limits of a cluster have many keys. Invariant: whatever
//! numbers a batch claims, a list is made for as many as its bytes can hold, and for [`MAX_BATCH`] at most.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use tollgate_limit::{
    Algorithm, Alignment, Body, Counter, KeyHash, MAX_LOG_LIMIT, Nanos, Series, SeriesWords, Writer,
};

use super::{MAX_BATCH, counter::RawCounter};
use crate::codec::{self, CodecError};

/// The most words of one series: two rings of the largest limit, with three for each entry, because a series
/// tells beside its own entries which ones of others it gave back.
pub const MAX_WORDS: usize = 2 * (2 + 3 * 10_000);
const _: () = assert!(MAX_LOG_LIMIT == 10_000);

/// Versions are below it.
const VERSIONS: u64 = 1 << 48;
/// The fewest bytes of a series: its counter's number, six numbers of one byte, and what it is.
const LEAST_BYTES: usize = 7;
/// The most bytes of a number.
const NUMBER: usize = 9;
/// The most bytes of a counter but for the name of its time zone: two variants, three numbers, two bytes.
const COUNTER: usize = 2 + 3 * NUMBER + 2;
/// The most bytes of the rest but for the words: the counter's number, six others, and what it is.
const HEAD: usize = 3 + 8 * NUMBER + 1;

/// What a series takes of a batch at most, in bytes.
#[must_use]
pub fn size_of(series: &Series) -> usize {
    let zone = match &series.counter {
        Counter::Charges(Algorithm::FixedWindow(rule))
        | Counter::Failures(Algorithm::FixedWindow(rule)) => match rule.alignment {
            Alignment::Calendar(_, zone) => zone.name().len(),
            Alignment::Epoch(_) => 0,
        },
        Counter::Charges(_) | Counter::Failures(_) | Counter::Ban => 0,
    };
    let words = match &series.body {
        Body::Counts { words, .. } => words.iter().copied().map(size_of_word).sum(),
        Body::Void => 0,
    };
    [COUNTER, HEAD, zone, words]
        .into_iter()
        .fold(0, usize::saturating_add)
}

/// Appends series.
pub(super) fn put_batch(body: &mut Vec<u8>, batch: &[Series]) -> Result<(), CodecError> {
    if batch.len() > MAX_BATCH {
        return Err(CodecError::TooLarge);
    }
    codec::put(body, &batch.len())?;
    let mut counters = HashMap::new();
    batch.iter().try_for_each(|series| {
        let next = counters.len();
        let number = *counters.entry(series.counter).or_insert(next);
        codec::put(body, &number)?;
        if number == next {
            codec::put(body, &RawCounter::from(&series.counter))?;
        }
        put_series(body, series)
    })
}

/// Takes series off a body.
pub(super) fn read_batch(body: &mut &[u8]) -> Result<Vec<Series>, CodecError> {
    let count: usize = codec::take(body)?;
    if count > MAX_BATCH || count > body.len() / LEAST_BYTES {
        return Err(CodecError::Malformed);
    }
    let mut counters = Vec::new();
    let mut batch = Vec::with_capacity(count);
    for _ in 0..count {
        let number: usize = codec::take(body)?;
        if number == counters.len() {
            counters.push(codec::take::<RawCounter<'_>>(body)?.try_into()?);
        }
        let counter = counters.get(number).ok_or(CodecError::Malformed)?;
        batch.push(read_series(body, *counter)?);
    }
    Ok(batch)
}

/// The bytes of a [`Series`] behind its counter; the words of counts follow.
#[derive(Serialize, Deserialize)]
struct RawSeries {
    key_high: u64,
    key_low: u64,
    writer: u64,
    version: u64,
    clock: u64,
    body: RawBody,
}

/// The bytes of a [`Body`]; grows at the end only.
#[derive(Serialize, Deserialize)]
enum RawBody {
    Void,
    Counts {
        seen: u64,
        latest_nanos: u64,
        words: usize,
    },
}

fn put_series(out: &mut Vec<u8>, series: &Series) -> Result<(), CodecError> {
    if series.version >= VERSIONS {
        return Err(CodecError::TooLarge);
    }
    let (body, words) = match &series.body {
        Body::Void => (RawBody::Void, &[][..]),
        Body::Counts {
            seen,
            latest,
            words,
        } => {
            let body = RawBody::Counts {
                seen: *seen,
                latest_nanos: latest.as_nanos(),
                words: words.len(),
            };
            (body, words.as_slice())
        }
    };
    if words.len() > MAX_WORDS {
        return Err(CodecError::TooLarge);
    }
    let raw = RawSeries {
        key_high: series.key.high(),
        key_low: series.key.low(),
        writer: series.writer.number(),
        version: series.version,
        clock: series.clock,
        body,
    };
    codec::put(out, &raw)?;
    words.iter().try_for_each(|word| codec::put(out, word))
}

fn read_series(bytes: &mut &[u8], counter: Counter) -> Result<Series, CodecError> {
    let raw: RawSeries = codec::take(bytes)?;
    if raw.version >= VERSIONS {
        return Err(CodecError::Malformed);
    }
    let body = match raw.body {
        RawBody::Void => Body::Void,
        RawBody::Counts {
            seen,
            latest_nanos,
            words,
        } => Body::Counts {
            seen,
            latest: Nanos::new(latest_nanos),
            words: read_words(bytes, words)?,
        },
    };
    Ok(Series {
        key: KeyHash::from_halves(raw.key_high, raw.key_low),
        counter,
        writer: Writer::new(raw.writer),
        version: raw.version,
        clock: raw.clock,
        body,
    })
}

/// Each word takes a byte at least.
fn read_words(bytes: &mut &[u8], count: usize) -> Result<SeriesWords, CodecError> {
    if count > MAX_WORDS || count > bytes.len() {
        return Err(CodecError::Malformed);
    }
    let mut words = SeriesWords::with_capacity(count);
    for _ in 0..count {
        words.push(codec::take(bytes)?);
    }
    Ok(words)
}

/// What bincode makes of a number.
const fn size_of_word(word: u64) -> usize {
    match word {
        0..251 => 1,
        251..0x1_0000 => 3,
        0x1_0000..0x1_0000_0000 => 5,
        0x1_0000_0000.. => NUMBER,
    }
}
