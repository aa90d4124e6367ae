//! Reads replies and gives each to its call.

use quinn::RecvStream;
use tollgate_wire::{
    OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION,
    client::read_answer,
    frame::{self, Frame, MAX_CLIENT_FRAME},
};

use super::Lost;
use crate::{backoff::Steps, shared::Shared};

/// The size of the buffer: the longest frame fits.
const BUFFER: usize = MAX_CLIENT_FRAME;

/// Reads until the connection is over. A reply proves the node: dialling begins anew with short waits.
pub(super) async fn read(mut stream: RecvStream, shared: &Shared, steps: &mut Steps) -> Lost {
    let mut buffer = vec![0; BUFFER];
    let mut filled = 0_usize;
    loop {
        let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) else {
            return Lost::by_nonsense("a frame that is too long");
        };
        match stream.read(room).await {
            Ok(Some(read)) => filled = filled.saturating_add(read).min(BUFFER),
            Ok(None) => return Lost::by_nonsense("the end of the stream"),
            Err(error) => return Lost::by_network(&error),
        }
        let used = match route(buffer.get(..filled).unwrap_or_default(), shared) {
            Ok(used) => used,
            Err(lost) => return lost,
        };
        if used > 0 {
            steps.reset();
            buffer.copy_within(used..filled, 0);
            filled = filled.saturating_sub(used);
        }
    }
}

/// Gives every whole frame to its call; the bytes that were used.
fn route(mut bytes: &[u8], shared: &Shared) -> Result<usize, Lost> {
    let mut used = 0_usize;
    loop {
        match frame::split(bytes, MAX_CLIENT_FRAME) {
            Ok(Some((frame, length))) => {
                give(&frame, shared)?;
                used = used.saturating_add(length);
                bytes = bytes.get(length..).unwrap_or_default();
            }
            Ok(None) => return Ok(used),
            Err(error) => return Err(Lost::by_nonsense(&error.to_string())),
        }
    }
}

fn give(frame: &Frame<'_>, shared: &Shared) -> Result<(), Lost> {
    if !(OLDEST_PROTOCOL_VERSION..=PROTOCOL_VERSION).contains(&frame.version) {
        return Err(Lost::by_nonsense("a version that is not spoken here"));
    }
    let reply = read_answer(frame.body).map_err(|_error| Lost::by_nonsense("a malformed reply"))?;
    // What is wrong with the stream itself is told without a request.
    if let (0, Err(fault)) = (frame.id, &reply) {
        return Err(Lost::by_nonsense(&format!("a fault: {fault}")));
    }
    shared
        .complete(frame.id, reply)
        .map_err(|_never| Lost::by_nonsense("a reply to what was never asked"))
}
