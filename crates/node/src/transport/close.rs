//! Why a connection is closed, as the other side is told.
//!
//! The numbers are part of the protocol: they never change their meaning.

use quinn::{Connection, ConnectionError, VarInt};

/// Why a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CloseCode {
    /// The closing node leaves the cluster: a planned end.
    Leaving,
    /// Whoever is at the other end has no business on this protocol. Dialling again changes nothing.
    Refused,
    /// What came on the connection was no message of the protocol, or a lie.
    Malformed,
    /// Another connection to the same node took its place.
    Replaced,
    /// There are too many connections: dial again later.
    Busy,
}

impl CloseCode {
    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> VarInt {
        VarInt::from_u32(match self {
            Self::Leaving => 1,
            Self::Refused => 2,
            Self::Malformed => 3,
            Self::Replaced => 4,
            Self::Busy => 5,
        })
    }

    /// The words beside the number, for logs.
    #[must_use]
    pub const fn reason(self) -> &'static [u8] {
        match self {
            Self::Leaving => b"leaving",
            Self::Refused => b"refused",
            Self::Malformed => b"malformed",
            Self::Replaced => b"replaced",
            Self::Busy => b"busy",
        }
    }

    /// Closes a connection for this reason.
    pub fn close(self, connection: &Connection) {
        connection.close(self.code(), self.reason());
    }

    /// Closes a connection for this reason, in words that let the operator of the other side act.
    pub fn close_saying(self, connection: &Connection, words: &'static str) {
        connection.close(self.code(), words.as_bytes());
    }

    /// Why the other side closed a connection; `None` if it did not, or for another reason.
    #[must_use]
    pub fn of(error: &ConnectionError) -> Option<Self> {
        let ConnectionError::ApplicationClosed(closed) = error else {
            return None;
        };
        [
            Self::Leaving,
            Self::Refused,
            Self::Malformed,
            Self::Replaced,
            Self::Busy,
        ]
        .into_iter()
        .find(|code| code.code() == closed.error_code)
    }
}
