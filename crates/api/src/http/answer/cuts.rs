//! Body and header values of an answer, written into one buffer and cut out of it.
//!
//! Each thread keeps its buffer: the answers before have left by the time that it is full, so that as a
//! rule nothing is allocated. Headers are copied from those of an answer of the same families, which
//! costs a fraction of what a map that is filled name by name does; the values are then put in their
//! places.

use std::{cell::RefCell, sync::LazyLock};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::JSON;
use crate::families::{Family, HeaderFamilies};

/// Bytes that the usual answer fits in, header values included.
const USUAL_LENGTH: usize = 768;
/// Bytes of a thread's buffer.
const BUFFER_LENGTH: usize = 8 * USUAL_LENGTH;

static X_RATE_LIMIT: [HeaderName; 3] = [
    HeaderName::from_static("x-ratelimit-limit"),
    HeaderName::from_static("x-ratelimit-remaining"),
    HeaderName::from_static("x-ratelimit-reset"),
];
const DRAFT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
static DRAFT_6: [HeaderName; 4] = [
    DRAFT_POLICY,
    HeaderName::from_static("ratelimit-limit"),
    HeaderName::from_static("ratelimit-remaining"),
    HeaderName::from_static("ratelimit-reset"),
];
/// Of revision 7 and of all later ones.
static DRAFT_7: [HeaderName; 2] = [DRAFT_POLICY, HeaderName::from_static("ratelimit")];

thread_local! {
    static BUFFER: RefCell<BytesMut> = RefCell::new(BytesMut::with_capacity(BUFFER_LENGTH));
}

/// The headers of an answer, by its families, with `Content-Type` alone filled in.
static TEMPLATES: LazyLock<[HeaderMap; HeaderFamilies::SETS]> =
    LazyLock::new(|| HeaderFamilies::all().map(template));

fn template(families: HeaderFamilies) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(12);
    headers.insert(header::CONTENT_TYPE, JSON);
    for name in Family::ALL
        .into_iter()
        .filter(|family| families.contains(*family))
        .flat_map(names_of)
    {
        headers.insert(name, HeaderValue::from_static(""));
    }
    headers
}

/// The headers of a family, in the order that their values are written in.
fn names_of(family: Family) -> &'static [HeaderName] {
    match family {
        Family::XRateLimit => &X_RATE_LIMIT,
        Family::Draft6 => &DRAFT_6,
        Family::Draft7 | Family::Draft10 => &DRAFT_7,
    }
}

/// Lets `write` write the pieces of an answer: its body, then the header values of its families, in
/// their order. Gives body and headers.
pub(super) fn cut(families: HeaderFamilies, write: impl FnOnce(&mut Cuts)) -> (Bytes, HeaderMap) {
    let mut cuts = Cuts {
        buffer: BUFFER.take(),
        ends: [0; Cuts::MAX_PIECES],
        count: 0,
    };
    cuts.buffer.reserve(USUAL_LENGTH);
    write(&mut cuts);
    let bytes = cuts.buffer.split().freeze();
    BUFFER.set(cuts.buffer);
    let mut headers = TEMPLATES[families.index()].clone();
    let mut start = cuts.ends[0];
    let body = bytes.slice(..start);
    // `Content-Type` stands first.
    let values = headers.values_mut().skip(1);
    let ends = cuts.ends.iter().take(cuts.count).skip(1);
    debug_assert_eq!(values.size_hint().0, ends.len(), "a value for each name");
    for (value, end) in values.zip(ends) {
        match HeaderValue::from_maybe_shared(bytes.slice(start..*end)) {
            Ok(written) => *value = written,
            Err(error) => debug_assert!(false, "{error}"),
        }
        start = *end;
    }
    (body, headers)
}

/// One buffer with the body first, then one header value after the other.
pub(super) struct Cuts {
    pub(super) buffer: BytesMut,
    /// Where each piece ends; the first is the body.
    ends: [usize; Self::MAX_PIECES],
    count: usize,
}

impl Cuts {
    /// The body, and the header values of the largest set of families.
    const MAX_PIECES: usize = 8;

    /// Ends a piece.
    pub(super) fn end(&mut self) {
        if let Some(end) = self.ends.get_mut(self.count) {
            *end = self.buffer.len();
            self.count = self.count.saturating_add(1);
        }
    }
}
