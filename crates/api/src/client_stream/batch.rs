//! One batch of frames: decided where they can be at once, else put among those that wait.

use futures_util::stream::FuturesUnordered;
use tollgate_limit::{
    Attributes, Call, CheckError, Cost, Decision, LimitNumber, LimitSpec, MAX_UNITS, Mode, Nanos,
    Question, Subject,
};
use tollgate_wire::{
    CodecError, OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION,
    client::{self, FaultKind, InlineAlgorithm, InlineLimit, Pairs},
    frame::{self, Frame, FrameError, MAX_CLIENT_FRAME},
};

use super::{MAX_OUTPUT, MAX_WAITING, Waiting};
use crate::{
    checker::{Checked, Checker},
    fault::{Blame, Fault},
};

const KEY: &str = "at least one attribute";
const NO_PERMITS: &str = "another algorithm; permits are asked for with `POST /v1/acquire`";
/// The longest text of a fault, in bytes: what a client sent is quoted in it, and must not make it longer
/// than a frame.
const MAX_FAULT_TEXT: usize = 1024;

/// What became of the bytes at hand.
pub(super) struct Batch {
    /// How many of them are done with.
    pub(super) taken: usize,
    /// Set if what follows is no frame, after that was answered.
    pub(super) error: Option<FrameError>,
}

impl Batch {
    /// Decides the frames of `input` until a bound is reached or no whole frame is left.
    pub(super) fn decide<C: Checker>(
        checker: &C,
        input: &[u8],
        output: &mut Vec<u8>,
        waiting: &FuturesUnordered<Waiting>,
    ) -> Self {
        let mut taken: usize = 0;
        let mut now = None;
        while output.len() < MAX_OUTPUT && waiting.len() < MAX_WAITING {
            let rest = input.get(taken..).unwrap_or_default();
            match frame::split(rest, MAX_CLIENT_FRAME) {
                Ok(Some((frame, length))) => {
                    let now = *now.get_or_insert_with(|| checker.now());
                    match check(checker, now, &frame) {
                        Ok(Checked::Now(decision)) => answer(output, frame.id, &decision),
                        Ok(Checked::Later(decision)) => {
                            let id = frame.id;
                            waiting.push(Box::pin(async move { (id, decision.await) }));
                        }
                        Err(fault) => put_fault(output, frame.id, &fault),
                    }
                    taken = taken.saturating_add(length);
                }
                Ok(None) => break,
                Err(error) => {
                    put_fault(output, claimed_id(rest), &fault_of_frame(error));
                    return Self {
                        taken,
                        error: Some(error),
                    };
                }
            }
        }
        Self { taken, error: None }
    }
}

/// Appends the answer to a check.
pub(super) fn answer(output: &mut Vec<u8>, id: u64, decision: &Decision) {
    let put = frame::put(output, id, |body| client::put_decision(body, decision));
    if let Err(CodecError::TooLarge | CodecError::Malformed | CodecError::TrailingBytes) = put {
        let message = "the answer does not fit into a frame".to_owned();
        put_fault(output, id, &fault(FaultKind::TooLarge, None, message));
    }
}

fn put_fault(output: &mut Vec<u8>, id: u64, fault: &client::Fault) {
    if frame::put(output, id, |body| client::put_fault(body, fault)).is_err() {
        debug_assert!(false, "texts of faults are short");
    }
}

fn check<C: Checker>(checker: &C, now: Nanos, frame: &Frame<'_>) -> Result<Checked, client::Fault> {
    if !(OLDEST_PROTOCOL_VERSION..=PROTOCOL_VERSION).contains(&frame.version) {
        let (oldest, newest) = (OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION);
        let message = format!(
            "version {} is not one of {oldest} to {newest}",
            frame.version
        );
        return Err(fault(FaultKind::UnsupportedVersion, None, message));
    }
    let check = client::read_check(frame.body)
        .map_err(|error| fault(FaultKind::Malformed, None, error.to_string()))?;
    if check.cost > MAX_UNITS {
        let right = format!("a whole number from 0 to {MAX_UNITS}");
        return Err(told(Fault::new("cost", check.cost.to_string(), right)));
    }
    let (cost, mode) = match (check.cost, check.peek) {
        (0, _) => (Cost::ONE, Mode::Peek),
        (cost, true) => (cost_of(cost), Mode::Peek),
        (cost, false) => (cost_of(cost), Mode::Consume),
    };
    let decided = match &check.subject {
        client::Subject::Policy { name, attributes } => {
            let attributes = attributes_of("attributes", attributes)?;
            let subject = Subject::Policy { name, attributes };
            checker.check(
                now,
                &Question {
                    subject,
                    cost,
                    mode,
                    call: Call::Check,
                },
            )
        }
        client::Subject::Inline { limit, key } => {
            let spec = spec_of(limit, key)?;
            let key = attributes_of("key", key)?;
            checker.inline_limit(spec).and_then(|limit| {
                let subject = Subject::Inline { limit, key };
                checker.check(
                    now,
                    &Question {
                        subject,
                        cost,
                        mode,
                        call: Call::Check,
                    },
                )
            })
        }
    };
    decided.map_err(fault_of_check)
}

fn cost_of(units: u64) -> Cost {
    Cost::new(units).unwrap_or(Cost::ONE)
}

fn attributes_of<'a>(parent: &str, pairs: &'a Pairs<'_>) -> Result<Attributes<'a>, client::Fault> {
    let mut attributes = Attributes::new();
    for (name, value) in pairs.iter() {
        let added = attributes.insert(name, value);
        added.map_err(|error| told(Fault::attribute(parent, &error)))?;
    }
    Ok(attributes)
}

/// The spec of an inline limit. Key attributes are sorted, as those of HTTP are: the order in which
/// they came must not make a key.
pub(super) fn spec_of(
    limit: &InlineLimit<'_>,
    key: &Pairs<'_>,
) -> Result<LimitSpec, client::Fault> {
    if key.is_empty() {
        return Err(told(Fault::new("key", "empty", KEY)));
    }
    if let InlineAlgorithm::Concurrency { .. } = limit.algorithm {
        let wrong = "is `concurrency`, and nothing of this protocol releases a permit";
        return Err(told(Fault::new("limit.algorithm", wrong, NO_PERMITS)));
    }
    let mut names: Vec<String> = key.iter().map(|(name, _)| name.to_owned()).collect();
    names.sort_unstable();
    Ok(LimitSpec {
        key: names,
        fallback: limit.fallback,
        ..LimitSpec::new(
            limit.name.as_ref(),
            LimitNumber::One(limit.limit),
            (&limit.algorithm).into(),
        )
    })
}

/// The id of a frame whose length is wrong, where its bytes are there; else 0.
fn claimed_id(bytes: &[u8]) -> u64 {
    let id = bytes.get(5..).and_then(|rest| rest.first_chunk());
    id.map_or(0, |id| u64::from_le_bytes(*id))
}

fn fault_of_frame(error: FrameError) -> client::Fault {
    let kind = match error {
        FrameError::TooShort { .. } => FaultKind::Malformed,
        FrameError::TooLong { .. } => FaultKind::TooLarge,
    };
    fault(kind, None, error.to_string())
}

fn fault_of_check(error: CheckError) -> client::Fault {
    let (blame, found) = Fault::of_check(error);
    let kind = match blame {
        Blame::Field => FaultKind::BadRequest,
        Blame::UnknownPolicy => FaultKind::UnknownPolicy,
        Blame::InlineOff => FaultKind::InlineOff,
    };
    client::Fault {
        kind,
        ..told(found)
    }
}

fn told(found: Fault) -> client::Fault {
    let message = format!("{}; right is: {}", cut(found.wrong), found.right);
    fault(FaultKind::BadRequest, Some(cut(found.field)), message)
}

/// Ends a text that quotes what a client sent where it is too long.
fn cut(mut text: String) -> String {
    if text.len() > MAX_FAULT_TEXT {
        text.truncate(text.floor_char_boundary(MAX_FAULT_TEXT));
        text.push_str("...");
    }
    text
}

const fn fault(kind: FaultKind, field: Option<String>, message: String) -> client::Fault {
    client::Fault {
        kind,
        field,
        message,
    }
}
