//! Why a check was not answered: what could not be understood, is wrong, or cannot be served now.

use std::fmt;

use crate::{client::answer::RawReply, codec::CodecError};

/// The answer to what cannot be understood, is wrong or cannot be served. Nothing was counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What kind of fault.
    pub kind: FaultKind,
    /// The field that is at fault, where there is one.
    pub field: Option<String>,
    /// What is wrong, and what would be right. For people.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some(field) => write!(f, "{field}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// What kind of fault; grows at the end only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The bytes are no message. The client's fault.
    Malformed,
    /// The node does not speak the version of the frame. The client's fault.
    UnsupportedVersion,
    /// A field is out of its bounds or missing. The client's fault.
    BadRequest,
    /// No such policy is configured. The client's fault, or the operator's.
    UnknownPolicy,
    /// Inline limits are switched off on the node. The operator's choice.
    InlineOff,
    /// The message is above the cap. The client's fault.
    TooLarge,
    /// The node cannot serve it now. Ask again, or another node.
    Unavailable,
    /// A kind that this version does not know.
    Other,
}

impl FaultKind {
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Malformed => 0,
            Self::UnsupportedVersion => 1,
            Self::BadRequest => 2,
            Self::UnknownPolicy => 3,
            Self::InlineOff => 4,
            Self::TooLarge => 5,
            Self::Unavailable => 6,
            Self::Other => u8::MAX,
        }
    }

    pub(super) const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Malformed,
            1 => Self::UnsupportedVersion,
            2 => Self::BadRequest,
            3 => Self::UnknownPolicy,
            4 => Self::InlineOff,
            5 => Self::TooLarge,
            6 => Self::Unavailable,
            _ => Self::Other,
        }
    }
}

/// Appends a fault to a body.
///
/// # Errors
/// [`CodecError::TooLarge`] if it does not fit into a frame.
pub fn put_fault(body: &mut Vec<u8>, fault: &Fault) -> Result<(), CodecError> {
    super::put_bounded(
        body,
        &RawReply::Fault {
            kind: fault.kind.code(),
            field: fault.field.as_deref(),
            message: &fault.message,
        },
    )
}
