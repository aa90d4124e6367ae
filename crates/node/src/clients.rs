//! Client streams: accepted here, spoken to by whoever takes them. Plain byte streams from here on.

use quinn::{Connection, RecvStream, SendStream};
use tokio::sync::mpsc;

use crate::transport::ClientConnection;

/// The most streams that wait to be taken; above it accepting waits.
const STREAM_QUEUE: usize = 256;

/// One stream of a client. Both halves are tokio's byte streams.
#[derive(Debug)]
pub struct ClientStream {
    /// What the client says.
    pub receive: RecvStream,
    /// What it is answered.
    pub send: SendStream,
    /// The name in the client's certificate; `None` without one.
    pub client: Option<String>,
}

/// The streams of all clients.
#[derive(Debug)]
pub(crate) struct ClientStreams {
    streams: mpsc::Receiver<ClientStream>,
}

impl ClientStreams {
    /// Takes connections from now on, until their source ends.
    pub(crate) fn start(connections: mpsc::Receiver<ClientConnection>) -> Self {
        let (sender, streams) = mpsc::channel(STREAM_QUEUE);
        tokio::spawn(accept(connections, sender));
        Self { streams }
    }

    /// The next stream; `None` when the node has stopped. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<ClientStream> {
        self.streams.recv().await
    }
}

async fn accept(
    mut connections: mpsc::Receiver<ClientConnection>,
    streams: mpsc::Sender<ClientStream>,
) {
    while let Some(ClientConnection { connection, name }) = connections.recv().await {
        tokio::spawn(accept_streams(connection, name, streams.clone()));
    }
}

async fn accept_streams(
    connection: Connection,
    client: Option<String>,
    streams: mpsc::Sender<ClientStream>,
) {
    while let Ok((send, receive)) = connection.accept_bi().await {
        let stream = ClientStream {
            receive,
            send,
            client: client.clone(),
        };
        if streams.send(stream).await.is_err() {
            return;
        }
    }
}
