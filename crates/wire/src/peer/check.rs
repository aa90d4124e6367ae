//! A check between nodes: its head, and one ask for each limit.

use serde::{Deserialize, Serialize};
use tollgate_limit::{Cost, KeyHash, Mode};

use crate::{codec::CodecError, identity::BootId};

/// The most limits of one check that one owner is asked for at once.
pub const MAX_ASKS: usize = 64;

/// The head of a check; its asks follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckHead {
    /// What is left of the time in which an answer is of use, in microseconds.
    pub budget_micros: u32,
    /// Whether it consumes.
    pub mode: Mode,
    /// How many asks follow, 1 to [`MAX_ASKS`].
    pub asks: u8,
    /// As what the node is asked.
    pub way: Way,
}

/// As what a node is asked. The plain way is the shortest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// As the owner.
    #[default]
    Owner,
    /// As the standby, because the owner did not answer the caller.
    Standby {
        /// The caller's link to the owner: what its [`Hello`](super::Hello) there said.
        link: u64,
        /// The request id of the check there; both are 0 if the owner was not asked.
        number: u64,
    },
    /// Passed on for another node, and not to be passed on again.
    Relayed {
        /// The start of the node that the check entered at.
        boot: BootId,
        /// Its link to the owner.
        link: u64,
        /// The request id of the check there: the three name it for ever.
        number: u64,
    },
}

/// One limit of a check, at its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerAsk {
    /// The number of the rule on this stream.
    pub shape: u16,
    key_high: u64,
    key_low: u64,
    cost: u64,
}

impl PeerAsk {
    /// Asks for a key by the rule of this number.
    #[must_use]
    pub const fn new(shape: u16, key: KeyHash, cost: Cost) -> Self {
        Self {
            shape,
            key_high: key.high(),
            key_low: key.low(),
            cost: cost.units(),
        }
    }

    /// The key.
    #[must_use]
    pub const fn key(&self) -> KeyHash {
        KeyHash::from_halves(self.key_high, self.key_low)
    }

    /// The cost.
    ///
    /// # Errors
    /// [`CodecError::Malformed`] if it is out of range.
    pub fn cost(&self) -> Result<Cost, CodecError> {
        Cost::new(self.cost).map_err(|_error| CodecError::Malformed)
    }
}
