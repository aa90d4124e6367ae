//! What a caller says.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use tollgate_limit::{Change, Mode, Rule};

use super::{CheckHead, MAX_ASKS, PeerAsk, Switches, Way};
use crate::{
    codec::{self, CodecError},
    identity::BootId,
    rule::RawRule,
};

/// The first message of every stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The cluster's name.
    #[serde(deserialize_with = "codec::text")]
    pub cluster: String,
    /// A hash of what must be equal on all nodes for the cluster's life: name, slots, hash key.
    pub cluster_fingerprint: u64,
    /// The caller.
    #[serde(deserialize_with = "codec::text")]
    pub node: String,
    /// This start of it.
    pub boot: BootId,
    /// Which of its ways to this owner, counted from 0 in each boot: with boot and request id it names
    /// a check for ever, and with boot and sequence an amendment.
    pub link: u64,
}

/// Changes a counter, once, whatever is lost and sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amend {
    /// Running number of the caller's link towards this owner, without gaps: tells repetitions.
    pub sequence: u64,
    /// Key, rule and cost.
    pub ask: PeerAsk,
    /// How.
    pub change: Change,
}

/// The bytes of an [`Amend`].
#[derive(Clone, Copy, Serialize, Deserialize)]
struct RawAmend {
    sequence: u64,
    ask: PeerAsk,
    change: RawChange,
}

/// The bytes of a [`Change`]; grows at the end only.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum RawChange {
    GiveBack { slice: u64 },
    Refund,
    Charge,
    Failure,
    Reset,
}

impl From<&Amend> for RawAmend {
    fn from(amend: &Amend) -> Self {
        Self {
            sequence: amend.sequence,
            ask: amend.ask,
            change: match amend.change {
                Change::GiveBack { slice } => RawChange::GiveBack { slice },
                Change::Refund => RawChange::Refund,
                Change::Charge => RawChange::Charge,
                Change::Failure => RawChange::Failure,
                Change::Reset => RawChange::Reset,
            },
        }
    }
}

impl From<RawAmend> for Amend {
    fn from(raw: RawAmend) -> Self {
        Self {
            sequence: raw.sequence,
            ask: raw.ask,
            change: match raw.change {
                RawChange::GiveBack { slice } => Change::GiveBack { slice },
                RawChange::Refund => Change::Refund,
                RawChange::Charge => Change::Charge,
                RawChange::Failure => Change::Failure,
                RawChange::Reset => Change::Reset,
            },
        }
    }
}

/// What a caller says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Who is speaking. First on every stream, never answered.
    Hello(Hello),
    /// A rule, and its number from here on. Never answered.
    Shape {
        /// The number.
        number: u16,
        /// The rule.
        rule: Rule,
    },
    /// A check; [`read_ask`] takes its asks off the rest of the body.
    Check(CheckHead),
    /// A counter to be changed.
    Amend(Amend),
    /// Asks for the state of a counter; the ask's cost means nothing.
    Read(PeerAsk),
    /// Asks for a sign of life.
    Ping,
    /// From here on the stream is a replica stream: see [`replica`](crate::replica). Never answered.
    Follow,
    /// How the caller's switches stand, when it has connected and whenever they change.
    Switches(Switches),
}

/// The bytes of a [`Request`]; grows at the end only.
#[derive(Serialize, Deserialize)]
enum RawRequest<'a> {
    Hello(Cow<'a, Hello>),
    Shape {
        number: u16,
        #[serde(borrow)]
        rule: RawRule<'a>,
    },
    Check {
        budget_micros: u32,
        peek: bool,
        asks: u8,
    },
    Amend(RawAmend),
    Read(PeerAsk),
    Ping,
    StandbyCheck {
        budget_micros: u32,
        peek: bool,
        asks: u8,
        link: u64,
        number: u64,
    },
    RelayedCheck {
        budget_micros: u32,
        peek: bool,
        asks: u8,
        boot: BootId,
        link: u64,
        number: u64,
    },
    Follow,
    Switches(Cow<'a, Switches>),
}

/// Appends a request to a body. A check needs [`put_check`].
///
/// # Errors
/// [`CodecError::TooLarge`] if it does not fit into a frame.
#[inline]
pub fn put_request(body: &mut Vec<u8>, request: &Request) -> Result<(), CodecError> {
    let raw = match request {
        Request::Hello(hello) => RawRequest::Hello(Cow::Borrowed(hello)),
        Request::Shape { number, rule } => RawRequest::Shape {
            number: *number,
            rule: rule.into(),
        },
        Request::Check(head) => raw_check(head),
        Request::Amend(amend) => RawRequest::Amend(amend.into()),
        Request::Read(ask) => RawRequest::Read(*ask),
        Request::Ping => RawRequest::Ping,
        Request::Follow => RawRequest::Follow,
        Request::Switches(switches) => RawRequest::Switches(Cow::Borrowed(switches)),
    };
    codec::put(body, &raw)
}

/// Appends a check and its asks to a body; `head.asks` must be their number.
///
/// # Errors
/// [`CodecError::TooLarge`] if it does not fit into a frame.
#[inline]
pub fn put_check(
    body: &mut Vec<u8>,
    head: &CheckHead,
    asks: impl IntoIterator<Item = PeerAsk>,
) -> Result<(), CodecError> {
    codec::put(body, &raw_check(head))?;
    asks.into_iter().try_for_each(|ask| codec::put(body, &ask))
}

const fn raw_check(head: &CheckHead) -> RawRequest<'static> {
    let CheckHead {
        budget_micros,
        mode,
        asks,
        way,
    } = *head;
    let peek = matches!(mode, Mode::Peek);
    match way {
        Way::Owner => RawRequest::Check {
            budget_micros,
            peek,
            asks,
        },
        Way::Standby { link, number } => RawRequest::StandbyCheck {
            budget_micros,
            peek,
            asks,
            link,
            number,
        },
        Way::Relayed { boot, link, number } => RawRequest::RelayedCheck {
            budget_micros,
            peek,
            asks,
            boot,
            link,
            number,
        },
    }
}

/// Takes a request off a body, which must end there unless it is a check.
///
/// # Errors
/// [`CodecError`]: the peer's fault.
#[inline]
pub fn read_request(body: &mut &[u8]) -> Result<Request, CodecError> {
    let request = match codec::take(body)? {
        RawRequest::Hello(hello) => Request::Hello(hello.into_owned()),
        RawRequest::Shape { number, rule } => Request::Shape {
            number,
            rule: rule.try_into()?,
        },
        RawRequest::Check {
            budget_micros,
            peek,
            asks,
        } => return check_head((budget_micros, peek, asks), Way::Owner),
        RawRequest::StandbyCheck {
            budget_micros,
            peek,
            asks,
            link,
            number,
        } => return check_head((budget_micros, peek, asks), Way::Standby { link, number }),
        RawRequest::RelayedCheck {
            budget_micros,
            peek,
            asks,
            boot,
            link,
            number,
        } => {
            let way = Way::Relayed { boot, link, number };
            return check_head((budget_micros, peek, asks), way);
        }
        RawRequest::Amend(amend) => Request::Amend(amend.into()),
        RawRequest::Read(ask) => Request::Read(ask),
        RawRequest::Ping => Request::Ping,
        RawRequest::Follow => Request::Follow,
        RawRequest::Switches(switches) => Request::Switches(switches.into_owned()),
    };
    codec::end(body)?;
    Ok(request)
}

#[inline]
fn check_head(
    (budget_micros, peek, asks): (u32, bool, u8),
    way: Way,
) -> Result<Request, CodecError> {
    if asks == 0 || usize::from(asks) > MAX_ASKS {
        return Err(CodecError::Malformed);
    }
    Ok(Request::Check(CheckHead {
        budget_micros,
        mode: if peek { Mode::Peek } else { Mode::Consume },
        asks,
        way,
    }))
}

/// Takes the next ask of a check off its body, which must be empty after the last.
///
/// # Errors
/// [`CodecError`]: the peer's fault.
#[inline]
pub fn read_ask(body: &mut &[u8]) -> Result<PeerAsk, CodecError> {
    codec::take(body)
}
