//! Reading one gossip connection: datagrams are packets, streams ask for the member state.
//!
//! Invariant: a full queue of events makes it read slower, and the connection then drops the oldest
//! datagrams; nothing grows.

use quinn::{Connection, ConnectionError, RecvStream, SendStream};
use tokio::sync::mpsc;

use super::super::{
    copy,
    events::{Event, Line},
};
use crate::transport::close::CloseCode;

/// Reads until the connection or control ends.
pub(super) async fn read(
    connection: Connection,
    line: Line,
    fingerprint: u64,
    events: mpsc::Sender<Event>,
) {
    let told = read_all(&connection, &line, fingerprint, &events).await;
    if let Err(error) = told
        && events.send(Event::Closed { line, error }).await.is_err()
    {
        tracing::trace!("control has ended");
    }
}

/// `Ok` when control has ended.
async fn read_all(
    connection: &Connection,
    line: &Line,
    fingerprint: u64,
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
                let asked = Asked { line: line.clone(), connection: connection.clone(), answer, ask };
                tokio::spawn(asked.hand_on(fingerprint, events.clone()));
            }
        }
    }
}

/// A question for the member state.
struct Asked {
    line: Line,
    connection: Connection,
    answer: SendStream,
    ask: RecvStream,
}

impl Asked {
    async fn hand_on(mut self, fingerprint: u64, events: mpsc::Sender<Event>) {
        match copy::read_ask(&mut self.ask).await {
            Ok(theirs) if theirs == fingerprint => {
                let event = Event::StateAsked {
                    line: self.line,
                    answer: self.answer,
                };
                if events.send(event).await.is_err() {
                    tracing::trace!("control has ended");
                }
            }
            Ok(_other) => {
                tracing::warn!(
                    node_id = %self.line.node,
                    "refused a node with other cluster settings (name, slots or hash key)"
                );
                CloseCode::Refused.close(&self.connection);
            }
            Err(error) => tracing::debug!(node_id = %self.line.node, %error, "no question came"),
        }
    }
}
