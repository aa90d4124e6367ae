//! Writes what is unsent, all that has gathered in one write.

use quinn::SendStream;

use super::Lost;
use crate::shared::Shared;

/// Bytes that a buffer keeps between writes; after a burst it gives back what is above.
const KEPT_CAPACITY: usize = 64 << 10;

/// Writes until the connection is over.
pub(super) async fn write(mut stream: SendStream, shared: &Shared) -> Lost {
    let mut batch = Vec::new();
    loop {
        shared.take_unsent(&mut batch).await;
        if let Err(error) = stream.write_all(&batch).await {
            return Lost::by_network(&error);
        }
        batch.clear();
        batch.shrink_to(KEPT_CAPACITY);
    }
}
