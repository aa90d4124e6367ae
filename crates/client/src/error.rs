//! Why a check has no answer.

use std::{sync::Arc, time::Duration};

use thiserror::Error;
use tollgate_wire::{
    CodecError,
    client::{Fault, FaultKind},
};

/// A check without an answer. Where it may have been counted, the error is towards refusing.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CheckError {
    /// There is no connection, so nothing was sent or counted. The client dials by itself.
    #[error("not connected to a node: {cause}")]
    Disconnected {
        /// Why not, for people.
        cause: Arc<str>,
    },
    /// The connection was lost before the answer came; it may have been counted.
    #[error("the connection was lost: {cause}")]
    ConnectionLost {
        /// Why, for people.
        cause: Arc<str>,
    },
    /// No answer came in time; it may have been counted.
    #[error("no answer within {} ms", deadline.as_millis())]
    DeadlineExceeded {
        /// The time that it had.
        deadline: Duration,
    },
    /// The client's bound on checks in flight, or on unsent bytes, is reached. Nothing was sent.
    #[error("too many checks in flight, at most {max}")]
    TooManyInFlight {
        /// The bound on checks in flight.
        max: usize,
    },
    /// The check cannot be written: the caller's fault, nothing was sent.
    #[error("the check cannot be sent: {0}")]
    Unsendable(CodecError),
    /// The node says what is wrong; nothing was counted.
    #[error("the node refuses the check as faulty: {0}")]
    Fault(Fault),
}

impl CheckError {
    /// Whether the same check may get an answer later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Disconnected { .. }
            | Self::ConnectionLost { .. }
            | Self::DeadlineExceeded { .. }
            | Self::TooManyInFlight { .. } => true,
            Self::Unsendable(_) => false,
            Self::Fault(fault) => matches!(fault.kind, FaultKind::Unavailable),
        }
    }
}
