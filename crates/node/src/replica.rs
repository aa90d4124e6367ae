//! Counts that survive: the streams by which slots and their counts go from node to node.
//!
//! Each link has a replica stream beside its lanes: there this node follows the peer (`follow`). A peer's
//! own such stream is served by `source`. The [`Mover`] carries out what `cluster`'s motion says, in its
//! order; the `pump` sends what has changed, and reports what was counted without an owner.
//!
//! Knows nothing of checks. Invariants: what the motion wants done is done in its order, under one lock;
//! a series is merged before the motion hears of what it completes; a source forgets nothing that its
//! follower has not acknowledged.

mod follow;
mod followers;
mod mover;
mod orders;
mod pump;
mod report;
mod seen;
mod shared;
mod source;

pub(crate) use self::{
    follow::follow,
    mover::Mover,
    pump::{motion_timer, run as pump},
    source::serve_follower,
};
