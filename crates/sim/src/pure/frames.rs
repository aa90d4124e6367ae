//! What nodes of the pure world say to each other: the messages of the protocol as values, without bytes.

use smallvec::SmallVec;
use tollgate_limit::{Ask, Change, Mode, Nanos, Verdict};
use tollgate_wire::{
    identity::BootId,
    peer::{Said, Way},
    replica::{Delivery, Order},
};

/// The limits of a check that one node decides.
pub(super) type Asks = SmallVec<[Ask; 2]>;
/// What they say.
pub(super) type Verdicts = SmallVec<[Verdict; 2]>;

/// One message on a link, which one node dialled to the other.
#[derive(Clone, Debug)]
pub(super) enum Frame {
    /// From the dialler, on a lane.
    Check(CheckFrame),
    /// From the dialler, on a lane.
    Amend(AmendFrame),
    /// From the dialler, on a lane.
    Ping,
    /// To the dialler.
    Reply(Reply),
    /// From the dialler, who follows, on the replica stream.
    Order(Order),
    /// To the dialler, on the replica stream.
    Delivery(Delivery),
}

impl Frame {
    /// The stream of a link that it goes by: what is on one stays in order.
    pub(super) const fn stream(&self) -> usize {
        match self {
            Self::Check(_) | Self::Amend(_) | Self::Ping | Self::Reply(_) => 0,
            Self::Order(_) | Self::Delivery(_) => 1,
        }
    }
}

/// A check.
#[derive(Clone, Debug)]
pub(super) struct CheckFrame {
    pub(super) number: u64,
    pub(super) asks: Asks,
    pub(super) mode: Mode,
    /// How long the caller waits.
    pub(super) budget: Nanos,
    pub(super) way: Way,
}

/// A change of one counter.
#[derive(Clone, Copy, Debug)]
pub(super) struct AmendFrame {
    pub(super) sequence: u64,
    pub(super) ask: Ask,
    pub(super) change: Change,
}

/// An answer.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are the larger")]
pub(super) enum Reply {
    Verdicts {
        number: u64,
        verdicts: Verdicts,
        /// `None`: the answering node, as owner.
        said: Option<Said>,
        /// The instant of the decision, for the history alone.
        decided: Nanos,
    },
    NotOwner {
        number: u64,
    },
    TooLate {
        number: u64,
    },
    Amended {
        sequence: u64,
        /// Whether it is done here; else it is for another owner.
        done: bool,
    },
    Pong,
}

/// The one way of a boot to a peer, by the peer's place: with boot and number it names a check.
pub(super) fn link_to(peer: usize) -> u64 {
    u64::try_from(peer).unwrap_or(u64::MAX).saturating_add(1)
}

/// Who asked, on which link: what an owner remembers its decisions by.
pub(super) type Origin = (BootId, u64);
