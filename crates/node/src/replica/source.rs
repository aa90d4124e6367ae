//! Serving one follower: its orders in, what it is to hold out.
//!
//! One task for each follower, paced by its stream: what it does not take yet waits in the bounded
//! `Source`.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use quinn::SendStream;
use tollgate_limit::NodeId;
use tollgate_wire::{
    CodecError, frame,
    identity::BootId,
    replica::{Delivery, Order, put_delivery, read_order},
};

use super::followers::Follower;
use crate::{
    clock::Clock as _,
    frames::{Filled, FrameReader, FramesError},
    serve::{Owner, Problem},
};

/// A follower, as the mover knows it.
struct Admitted<'a> {
    owner: &'a Owner,
    peer: &'a NodeId,
    follower: Arc<Follower>,
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        let Owner { mover, store, .. } = self.owner;
        let now = self.owner.clock.now();
        mover.dismiss(store, now, (self.peer, &self.follower));
    }
}

/// Serves a stream that follows this node, until it ends.
pub(crate) async fn serve_follower(
    owner: &Arc<Owner>,
    (send, frames): (SendStream, FrameReader),
    (peer, boot): (&NodeId, BootId),
) -> Result<(), Problem> {
    let now = owner.clock.now();
    let admitted = Admitted {
        owner,
        peer,
        follower: owner.mover.admit(&owner.store, now, (peer, boot)),
    };
    tokio::select! {
        biased;
        ended = read(owner, frames, (peer, &admitted.follower)) => ended,
        ended = write(owner, send, &admitted.follower) => ended,
    }
}

async fn write(owner: &Owner, mut send: SendStream, follower: &Follower) -> Result<(), Problem> {
    let mut bytes = Vec::new();
    loop {
        let now = owner.clock.now();
        let delivery = follower.source.lock().poll_delivery(now, &owner.store);
        let Some(delivery) = delivery else {
            follower.ready.notified().await;
            continue;
        };
        let counters = &owner.mover.counters;
        match &delivery {
            Delivery::Batch(series) => add(&counters.sent, series.len()),
            Delivery::Final(slots) => add(&counters.handed_over, slots.len()),
            Delivery::Copied(_) | Delivery::Reported(_) => {}
        }
        bytes.clear();
        frame::put(&mut bytes, 0, |body| put_delivery(body, &delivery)).map_err(malformed)?;
        send.write_all(&bytes)
            .await
            .map_err(|_closed| Problem::Ended)?;
    }
}

async fn read(
    owner: &Owner,
    mut frames: FrameReader,
    follower: (&NodeId, &Follower),
) -> Result<(), Problem> {
    loop {
        // What came behind the request to follow is there already.
        while let Some(frame) = frames.next().map_err(FramesError::from)? {
            let order = read_order(frame.body).map_err(malformed)?;
            owner.take_order(follower, order);
        }
        match frames.fill().await? {
            Filled::More => {}
            Filled::Finished => return Ok(()),
        }
    }
}

impl Owner {
    fn take_order(&self, (peer, follower): (&NodeId, &Follower), order: Order) {
        let now = self.clock.now();
        let Self { mover, store, .. } = self;
        match order {
            Order::Subscribe(slots) => {
                follower.source.lock().handle_subscribe(&slots);
                follower.ready.notify_one();
            }
            Order::Take(slots) => {
                mover.handle(store, now, |motion| motion.handle_take(now, peer, &slots));
            }
            Order::Acked(slots) => {
                mover.handle(store, now, |motion| motion.handle_acked(now, peer, &slots));
            }
            Order::Offer(slots) => {
                mover.handle(store, now, |motion| motion.handle_offer(now, peer, &slots));
            }
            Order::Report { number, series } => {
                let new = self.take_series(&series);
                add(&mover.counters.reconciled, new);
                // Only who still decides there has it for good: else it is reported again to who does.
                let holds = |slot| self.states.holds(slot);
                if series.iter().all(|series| holds(series.key.slot())) {
                    follower.source.lock().handle_reported(number);
                    follower.ready.notify_one();
                }
            }
        }
    }
}

fn add(counter: &AtomicU64, number: usize) {
    let number = u64::try_from(number).unwrap_or(u64::MAX);
    counter.fetch_add(number, Ordering::Relaxed);
}

fn malformed(error: CodecError) -> Problem {
    Problem::Malformed(error.to_string())
}
