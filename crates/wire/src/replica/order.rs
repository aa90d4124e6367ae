//! What a follower says.

use serde::{Deserialize, Serialize};

use super::{
    Order,
    batch::{put_batch, read_batch},
    slots::{put_slots, read_slots},
};
use crate::codec::{self, CodecError};

/// The first bytes of an [`Order`]; grows at the end only. Slots or series follow.
#[derive(Serialize, Deserialize)]
enum RawOrder {
    Subscribe,
    Take,
    Acked,
    Offer,
    Report { number: u64 },
}

/// Appends an order to a body. On an error the body is not to be used.
///
/// # Errors
/// [`CodecError::TooLarge`] with a report of more than [`MAX_BATCH`](super::MAX_BATCH) series, of one with
/// more than [`MAX_WORDS`](super::MAX_WORDS) words or a version of 2^48, or if it does not fit into a frame.
pub fn put_order(body: &mut Vec<u8>, order: &Order) -> Result<(), CodecError> {
    let start = body.len();
    let (raw, slots) = match order {
        Order::Subscribe(slots) => (RawOrder::Subscribe, slots),
        Order::Take(slots) => (RawOrder::Take, slots),
        Order::Acked(slots) => (RawOrder::Acked, slots),
        Order::Offer(slots) => (RawOrder::Offer, slots),
        Order::Report { number, series } => {
            codec::put(body, &RawOrder::Report { number: *number })?;
            put_batch(body, series)?;
            return codec::fits(body.len().saturating_sub(start));
        }
    };
    codec::put(body, &raw)?;
    put_slots(body, slots)
}

/// Reads an order.
///
/// # Errors
/// [`CodecError`]: the follower's fault.
pub fn read_order(mut body: &[u8]) -> Result<Order, CodecError> {
    let body = &mut body;
    let order = match codec::take(body)? {
        RawOrder::Subscribe => Order::Subscribe(read_slots(body)?),
        RawOrder::Take => Order::Take(read_slots(body)?),
        RawOrder::Acked => Order::Acked(read_slots(body)?),
        RawOrder::Offer => Order::Offer(read_slots(body)?),
        RawOrder::Report { number } => Order::Report {
            number,
            series: read_batch(body)?,
        },
    };
    codec::end(body)?;
    Ok(order)
}
