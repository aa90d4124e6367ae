//! What a source says.

use serde::{Deserialize, Serialize};

use super::{
    Delivery,
    batch::{put_batch, read_batch},
    slots::{put_slots, read_slots},
};
use crate::codec::{self, CodecError};

/// The first bytes of a [`Delivery`]; grows at the end only. Slots or series follow.
#[derive(Serialize, Deserialize)]
enum RawDelivery {
    Batch,
    Copied,
    Final,
    Reported { number: u64 },
}

/// Appends a delivery to a body. On an error the body is not to be used.
///
/// # Errors
/// [`CodecError::TooLarge`] with a batch of more than [`MAX_BATCH`](super::MAX_BATCH) series, of one with
/// more than [`MAX_WORDS`](super::MAX_WORDS) words or a version of 2^48, or if it does not fit into a frame.
pub fn put_delivery(body: &mut Vec<u8>, delivery: &Delivery) -> Result<(), CodecError> {
    let start = body.len();
    match delivery {
        Delivery::Batch(series) => {
            codec::put(body, &RawDelivery::Batch)?;
            put_batch(body, series)?;
        }
        Delivery::Copied(slots) => {
            codec::put(body, &RawDelivery::Copied)?;
            put_slots(body, slots)?;
        }
        Delivery::Final(slots) => {
            codec::put(body, &RawDelivery::Final)?;
            put_slots(body, slots)?;
        }
        Delivery::Reported(number) => codec::put(body, &RawDelivery::Reported { number: *number })?,
    }
    codec::fits(body.len().saturating_sub(start))
}

/// Reads a delivery.
///
/// # Errors
/// [`CodecError`]: the source's fault.
pub fn read_delivery(mut body: &[u8]) -> Result<Delivery, CodecError> {
    let body = &mut body;
    let delivery = match codec::take(body)? {
        RawDelivery::Batch => Delivery::Batch(read_batch(body)?),
        RawDelivery::Copied => Delivery::Copied(read_slots(body)?),
        RawDelivery::Final => Delivery::Final(read_slots(body)?),
        RawDelivery::Reported { number } => Delivery::Reported(number),
    };
    codec::end(body)?;
    Ok(delivery)
}
