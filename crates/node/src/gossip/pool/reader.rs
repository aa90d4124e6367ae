//! Reading one gossip connection: datagrams are packets, streams ask for the member state.
//!
//! Invariant: a full queue of events makes it read slower, and the connection then drops the oldest
//! datagrams; nothing grows.

use quinn::{Connection, ConnectionError, RecvStream, SendStream};
use tokio::sync::mpsc;

use super::super::{
    copy,
    events::{Event, Line, StateAsked},
};

/// Reads until the connection or control ends.
pub(super) async fn read(connection: Connection, line: Line, events: mpsc::Sender<Event>) {
    if let Err(error) = read_all(&connection, &line, &events).await
        && events.send(Event::Closed { line, error }).await.is_err()
    {
        tracing::trace!("control has ended");
    }
}

/// `Ok` when control has ended.
async fn read_all(
    connection: &Connection,
    line: &Line,
    events: &mpsc::Sender<Event>,
) -> Result<(), ConnectionError> {
    loop {
        tokio::select! {
            biased;
            packet = connection.read_datagram() => {
                let event = Event::Packet { line: line.clone(), packet: packet? };
                if events.send(event).await.is_err() {
                    return Ok(());
                }
            }
            stream = connection.accept_bi() => {
                // As many at a time as the connection allows streams.
                let (answer, ask) = stream?;
                tokio::spawn(hand_on(line.clone(), answer, ask, events.clone()));
            }
        }
    }
}

/// Hands on a question for the member state.
async fn hand_on(line: Line, answer: SendStream, mut ask: RecvStream, events: mpsc::Sender<Event>) {
    match copy::read_ask(&mut ask).await {
        Ok(theirs) => {
            let asked = StateAsked {
                line,
                theirs,
                answer,
            };
            if events.send(Event::StateAsked(asked)).await.is_err() {
                tracing::trace!("control has ended");
            }
        }
        Err(error) => tracing::debug!(node_id = %line.node, %error, "no question came"),
    }
}
