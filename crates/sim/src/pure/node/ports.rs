//! What goes into a node and what comes out of it.

use smallvec::SmallVec;
use tollgate_limit::{Ask, Change, DecidedBy, Fallback, Mode, Nanos, NodeId, Verdict};
use tollgate_wire::identity::{BootId, Phase};

use crate::pure::{
    frames::Frame,
    network::{Heading, LinkId},
    oracle::News,
};

/// What happens to a node.
#[derive(Clone, Debug)]
pub(in crate::pure) enum Input {
    /// A connection is up; the boot of the other end.
    Connected(LinkId, BootId),
    /// It is broken.
    Lost(LinkId),
    /// A frame came.
    Frame(LinkId, Frame),
    /// A time has come that was asked for.
    Timer(Timer),
    /// A member has changed.
    News(News),
    /// A client asks.
    Check(ClientCheck),
    /// A client gives back or resets.
    Amend(ClientAmend),
    /// It is told to leave.
    Leave,
    /// It learns that it was taken for dead.
    Renew,
}

/// What it wanted to be told later.
#[derive(Clone, Copy, Debug)]
pub(in crate::pure) enum Timer {
    /// No reply from a peer to a number.
    Timeout(usize, u64),
    /// A held check of this node has waited long enough.
    Held(u64),
    /// A check of another node has.
    Parked(u64),
    /// Members were pulled for a check.
    Pulled(usize, u64),
    Motion,
    Pump,
    Ping(usize),
    Amends,
    Reports,
    Join,
}

/// What a node wants to happen. Instants are of its own clock.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "carried out at once, most are the larger"
)]
pub(in crate::pure) enum Output {
    Send(LinkId, Heading, Frame),
    Timer(Nanos, Timer),
    Answered(u64, Vec<Option<LimitSaid>>),
    Amended(u64),
    /// Its phase is another: all are to know.
    Phase(Phase),
    /// It has left; whether all that it counted was taken over.
    Left(bool),
    /// It wants to know what a peer knows of the members.
    Pull(usize, Timer),
}

/// A check of a client.
#[derive(Clone, Debug)]
pub(in crate::pure) struct ClientCheck {
    pub(in crate::pure) id: u64,
    pub(in crate::pure) limits: SmallVec<[ClientLimit; 2]>,
    pub(in crate::pure) mode: Mode,
}

/// One limit of it.
#[derive(Clone, Copy, Debug)]
pub(in crate::pure) struct ClientLimit {
    pub(in crate::pure) ask: Ask,
    pub(in crate::pure) fallback: Fallback,
}

/// A change of a client.
#[derive(Clone, Copy, Debug)]
pub(in crate::pure) struct ClientAmend {
    pub(in crate::pure) id: u64,
    pub(in crate::pure) ask: Ask,
    pub(in crate::pure) change: Change,
    /// The boot that charged what goes back.
    pub(in crate::pure) boot: Option<BootId>,
    /// How old that charge is at least.
    pub(in crate::pure) age: Nanos,
}

/// What one limit said.
#[derive(Clone, Debug)]
pub(in crate::pure) struct LimitSaid {
    pub(in crate::pure) verdict: Verdict,
    pub(in crate::pure) by: DecidedBy,
    pub(in crate::pure) node: NodeId,
    pub(in crate::pure) boot: BootId,
    pub(in crate::pure) degraded: bool,
    /// When it was decided, on the world's clock.
    pub(in crate::pure) decided: Nanos,
}

/// How a node starts.
#[derive(Clone, Debug)]
pub(in crate::pure) struct Start {
    pub(in crate::pure) me: usize,
    pub(in crate::pure) nodes: usize,
    pub(in crate::pure) boot: BootId,
    pub(in crate::pure) offset: Nanos,
    pub(in crate::pure) unix_origin: Nanos,
    pub(in crate::pure) phase: Phase,
    pub(in crate::pure) known: Vec<News>,
}
