//! What is said on a replica stream: a follower orders what it wants to hold, the source delivers it.
//!
//! A follower opens the stream, says [`Hello`](crate::peer::Hello) and
//! [`Request::Follow`](crate::peer::Request::Follow), and from then on [`Order`]s; the source answers with
//! [`Delivery`]s. Both are in the order in which they were done. Frames as on all streams; the request id
//! means nothing.
//!
//! Invariant: what was read is within the bounds below, and a list was made for no more than the bytes of
//! its frame can hold.

mod batch;
mod counter;
mod delivery;
mod order;
mod slots;

use tollgate_limit::{Series, SlotSet};

use crate::frame::MAX_PEER_FRAME;

pub use self::{
    batch::{MAX_WORDS, size_of},
    delivery::{put_delivery, read_delivery},
    order::{put_order, read_order},
};

/// The most series of one batch or report; above it, it is neither written nor read.
pub const MAX_BATCH: usize = 4_096;
/// A batch or report is closed once its series reach this together, by [`size_of`]: with the longest series
/// on top it still fits into a frame.
pub const BATCH_BYTES: usize = 256 << 10;
const _: () = assert!(BATCH_BYTES + MAX_WORDS * 9 < MAX_PEER_FRAME - 4_096);

/// What a follower says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Copy these slots and tell what changes in them, and nothing of others from now on.
    Subscribe(SlotSet),
    /// Hand these slots over: stop deciding, and send what is not sent yet.
    Take(SlotSet),
    /// The last word on these slots has come and is kept.
    Acked(SlotSet),
    /// The follower decides in these slots and should not: take them.
    Offer(SlotSet),
    /// The follower counted this in slots that it does not hold.
    Report {
        /// Running number on this stream, for the answer.
        number: u64,
        /// What it counted.
        series: Vec<Series>,
    },
}

/// What a source says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// What it holds.
    Batch(Vec<Series>),
    /// All that it holds of these slots was delivered.
    Copied(SlotSet),
    /// The last word on these slots: the source decides there no more.
    Final(SlotSet),
    /// A report was taken in.
    Reported(u64),
}
