//! The link to the cluster: dials one node after the other and keeps what it reaches.
//!
//! One task with all that needs waiting: the reader, the writer, the one timer, and the wait before
//! the next dial. It ends when it is dropped. Invariant: whatever ends a connection, all its calls are
//! told; no dial follows another without a jittered wait.

mod reader;
mod writer;

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use quinn::{Connection, Endpoint, VarInt};
use rand::{Rng as _, rngs::StdRng};
use tokio::time;

use crate::{
    backoff::Steps,
    clock,
    shared::{Expiry, Shared},
};

/// The most time that one dial may take.
const DIAL_TIMEOUT: Duration = Duration::from_secs(1);
/// The bounds of the wait before the next dial.
const FIRST_WAIT: Duration = Duration::from_millis(20);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// Close codes, for the node's log.
const CLOSE_DONE: VarInt = VarInt::from_u32(0);
const CLOSE_MALFORMED: VarInt = VarInt::from_u32(1);
const CLOSE_SILENT: VarInt = VarInt::from_u32(2);

/// What dialling takes.
#[derive(Debug)]
pub(crate) struct Dialler {
    /// One socket for each family of address among the servers.
    v4: Option<Endpoint>,
    v6: Option<Endpoint>,
    config: quinn::ClientConfig,
    servers: Vec<SocketAddr>,
    server_name: String,
    next: usize,
}

/// Why a connection ended.
#[derive(Debug)]
struct Lost {
    code: VarInt,
    cause: Arc<str>,
}

impl Lost {
    fn by_network(error: &dyn std::error::Error) -> Self {
        Self {
            code: CLOSE_DONE,
            cause: describe(error),
        }
    }

    fn by_nonsense(what: &str) -> Self {
        Self {
            code: CLOSE_MALFORMED,
            cause: format!("the node sent {what}").into(),
        }
    }
}

impl Dialler {
    pub(crate) fn new(
        config: quinn::ClientConfig,
        servers: Vec<SocketAddr>,
        server_name: String,
    ) -> io::Result<Self> {
        let bind = |wanted: bool, address: SocketAddr| {
            wanted.then(|| Endpoint::client(address)).transpose()
        };
        Ok(Self {
            v4: bind(
                servers.iter().any(SocketAddr::is_ipv4),
                (Ipv4Addr::UNSPECIFIED, 0).into(),
            )?,
            v6: bind(
                servers.iter().any(SocketAddr::is_ipv6),
                (Ipv6Addr::UNSPECIFIED, 0).into(),
            )?,
            config,
            servers,
            server_name,
            next: 0,
        })
    }

    /// Dials the next server in the list.
    async fn dial(&mut self) -> Result<Connection, Arc<str>> {
        let Some(&server) = self.servers.get(self.next) else {
            self.next = 0;
            return Err("no server".into());
        };
        self.next = self.next.saturating_add(1) % self.servers.len().max(1);
        let endpoint = if server.is_ipv4() { &self.v4 } else { &self.v6 };
        let endpoint = endpoint.as_ref().ok_or("no socket")?;
        let dialled = endpoint.connect_with(self.config.clone(), server, &self.server_name);
        let connecting = dialled.map_err(|error| describe(&error))?;
        match time::timeout(DIAL_TIMEOUT, connecting).await {
            Ok(connected) => connected.map_err(|error| describe(&error)),
            Err(_elapsed) => Err(format!("{server} does not answer").into()),
        }
    }
}

/// Keeps a connection for as long as it is polled.
pub(crate) async fn run(shared: Arc<Shared>, mut dialler: Dialler, mut random: StdRng) {
    let ended = DownWhenDropped(shared);
    let shared = &*ended.0;
    let mut steps = Steps::new(FIRST_WAIT, LONGEST_WAIT);
    loop {
        match dialler.dial().await {
            Ok(connection) => {
                let lost = serve(&connection, shared, &mut steps).await;
                connection.close(lost.code, lost.cause.as_bytes());
                tracing::info!(cause = %lost.cause, "connection to a node lost");
                shared.down(&lost.cause);
            }
            Err(cause) => {
                tracing::debug!(%cause, "no connection to a node");
                shared.down(&cause);
            }
        }
        time::sleep(steps.next(random.next_u64())).await;
    }
}

/// Reads, writes and times out on one connection until it is over.
async fn serve(connection: &Connection, shared: &Shared, steps: &mut Steps) -> Lost {
    let (send, receive) = match connection.open_bi().await {
        Ok(streams) => streams,
        Err(error) => return Lost::by_network(&error),
    };
    tracing::debug!(node = %connection.remote_address(), "connected to a node");
    shared.up();
    tokio::select! {
        biased;
        lost = reader::read(receive, shared, steps) => lost,
        lost = writer::write(send, shared) => lost,
        lost = expire(shared) => lost,
    }
}

/// The one timer of all calls in flight; ends when the node has said nothing for too long.
async fn expire(shared: &Shared) -> Lost {
    loop {
        match shared.expire(clock::now()) {
            Expiry::At(due) => time::sleep_until(due).await,
            Expiry::Idle => shared.called().await,
            Expiry::Silent => {
                return Lost {
                    code: CLOSE_SILENT,
                    cause: "the node does not answer".into(),
                };
            }
        }
    }
}

/// Tells all calls when the task ends, however it ends.
#[derive(Debug)]
struct DownWhenDropped(Arc<Shared>);

impl Drop for DownWhenDropped {
    fn drop(&mut self) {
        self.0.down(&"the client has ended".into());
    }
}

/// An error and what it comes from, in one line.
fn describe(error: &dyn std::error::Error) -> Arc<str> {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = error.source();
    }
    text.into()
}
