//! What is said on a replica stream: a follower orders what it wants to hold, the source delivers it.
//!
//! A follower opens the stream, says [`Hello`](crate::peer::Hello) and
//! [`Request::Follow`](crate::peer::Request::Follow), and from then on [`Order`]s; the source answers with
//! [`Delivery`]s. Both are in the order in which they were done. Frames as on all streams; the request id
//! means nothing.

use tollgate_limit::{Series, SlotSet};

/// The most series of one batch.
pub const MAX_BATCH: usize = 4_096;

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
