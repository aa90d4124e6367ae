//! Load over QUIC: connections with one long-lived stream each, and many frames in flight on it.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Instant,
};

use quinn::{Connection, Endpoint, RecvStream, SendStream};
use tokio::task::JoinSet;
use tollgate_wire::{
    client,
    frame::{self, MAX_CLIENT_FRAME},
};

use super::{
    Latencies, LoadError, Report, Volume, clock,
    tally::{Inspected, Tally},
};

/// Bytes asked of a stream in one read.
const READ_BYTES: usize = 64 << 10;

/// The most bytes of an answer to raw bytes.
const MAX_RAW_ANSWER: usize = 1 << 20;

/// A load over QUIC.
#[derive(Clone, Debug)]
pub struct QuicLoad {
    /// The server.
    pub address: SocketAddr,
    /// The name that its certificate is checked for.
    pub server_name: String,
    /// TLS and transport.
    pub config: quinn::ClientConfig,
    /// Bodies of frames, sent in turn; at least one.
    pub bodies: Arc<[Vec<u8>]>,
    /// Connections.
    pub connections: usize,
    /// Frames in flight on each.
    pub in_flight: usize,
    /// What the answers are.
    pub answers: Answers,
    /// When it ends.
    pub volume: Volume,
}

/// What answers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// Answers to checks; one of each read is decoded.
    Decisions,
    /// Frames that mean nothing.
    Echoes,
}

/// Runs a load to its end.
///
/// # Errors
/// [`LoadError`]: the first connection that fails ends it; so does a fault from the server.
pub async fn run_quic(load: QuicLoad) -> Result<Report, LoadError> {
    let endpoint = Endpoint::client(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let mut connected = Vec::with_capacity(load.connections);
    for _ in 0..load.connections {
        let connecting =
            endpoint.connect_with(load.config.clone(), load.address, &load.server_name)?;
        connected.push(connecting.await?);
    }
    let latencies = Latencies::new().map_err(std::io::Error::other)?;
    let tally = Tally::start(load.volume, latencies);
    let mut connections = JoinSet::new();
    let stride = (load.bodies.len() / load.connections.max(1)).max(1);
    for (number, connection) in connected.into_iter().enumerate() {
        let (bodies, tally) = (Arc::clone(&load.bodies), tally.clone());
        let pipeline = Pipeline {
            bodies,
            next_body: number * stride,
            next_id: 0,
            sent_at: vec![None; load.in_flight],
            free: (0..load.in_flight).rev().collect(),
            answers: load.answers,
        };
        connections.spawn(drive(connection, pipeline, tally));
    }
    while let Some(ended) = connections.join_next().await {
        ended.map_err(std::io::Error::other)??;
    }
    endpoint.close(0_u32.into(), b"done");
    endpoint.wait_idle().await;
    Ok(tally.report())
}

/// One frame on a connection of its own: the body of its answer.
///
/// # Errors
/// [`LoadError`].
pub async fn one_answer(
    address: SocketAddr,
    server_name: &str,
    config: quinn::ClientConfig,
    body: &[u8],
) -> Result<Vec<u8>, LoadError> {
    let endpoint = Endpoint::client(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let connection = endpoint.connect_with(config, address, server_name)?.await?;
    let (mut send, mut receive) = connection.open_bi().await?;
    let mut unsent = Vec::new();
    put_frame(&mut unsent, 0, body);
    send.write_all(&unsent).await?;
    let mut unread = Vec::new();
    loop {
        read(&mut receive, &mut unread).await?;
        if let Some((frame, _length)) = frame::split(&unread, MAX_CLIENT_FRAME)? {
            return Ok(frame.body.to_vec());
        }
    }
}

/// Any bytes at all on a stream of their own, and all that came back until its end: no frame has to be
/// whole. Empty too if the server closed the connection instead.
///
/// # Errors
/// [`LoadError`] if the server cannot be reached.
pub async fn raw_answer(
    address: SocketAddr,
    server_name: &str,
    config: quinn::ClientConfig,
    bytes: &[u8],
) -> Result<Vec<u8>, LoadError> {
    let endpoint = Endpoint::client(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let connection = endpoint.connect_with(config, address, server_name)?.await?;
    let (mut send, mut receive) = connection.open_bi().await?;
    // The server may end the stream before it has read all.
    if send.write_all(bytes).await.is_ok() {
        drop(send.finish());
    }
    let answer = receive.read_to_end(MAX_RAW_ANSWER).await;
    Ok(answer.unwrap_or_default())
}

async fn drive(
    connection: Connection,
    mut pipeline: Pipeline,
    tally: Tally,
) -> Result<(), LoadError> {
    let (mut send, mut receive) = connection.open_bi().await?;
    let mut unread = Vec::with_capacity(READ_BYTES);
    let mut unsent = Vec::with_capacity(READ_BYTES);
    let mut now = clock::now();
    loop {
        pipeline.fill(&mut unsent, &tally, now);
        if pipeline.is_idle() {
            // All is answered; the endpoint's end ends the stream too.
            return Ok(());
        }
        write(&mut send, &mut unsent).await?;
        read(&mut receive, &mut unread).await?;
        now = clock::now();
        let consumed = pipeline.settle(&unread, &tally, now)?;
        unread.drain(..consumed);
    }
}

async fn write(send: &mut SendStream, unsent: &mut Vec<u8>) -> Result<(), LoadError> {
    if !unsent.is_empty() {
        send.write_all(unsent).await?;
        unsent.clear();
    }
    Ok(())
}

async fn read(receive: &mut RecvStream, unread: &mut Vec<u8>) -> Result<(), LoadError> {
    let chunk = receive.read_chunk(READ_BYTES, true).await?;
    let chunk = chunk.ok_or(LoadError::Ended)?;
    unread.extend_from_slice(&chunk.bytes);
    Ok(())
}

/// The requests of one connection.
///
/// A request's id says its place among those in flight (id modulo their number) and is used once.
struct Pipeline {
    bodies: Arc<[Vec<u8>]>,
    next_body: usize,
    /// Counts up by the number of places.
    next_id: u64,
    /// By place: id, and when it was sent.
    sent_at: Vec<Option<(u64, Instant)>>,
    free: Vec<usize>,
    answers: Answers,
}

impl Pipeline {
    fn is_idle(&self) -> bool {
        self.free.len() == self.sent_at.len()
    }

    /// Appends a frame for each free place, as far as the volume goes.
    fn fill(&mut self, out: &mut Vec<u8>, tally: &Tally, now: Instant) {
        let places = u64::try_from(self.sent_at.len()).unwrap_or(u64::MAX);
        let wanted = u64::try_from(self.free.len()).unwrap_or(u64::MAX);
        for _ in 0..tally.take(wanted, now) {
            let Some(place) = self.free.pop() else {
                return;
            };
            let id = self.next_id + u64::try_from(place).unwrap_or_default();
            self.next_id += places;
            let body = &self.bodies[self.next_body % self.bodies.len()];
            self.next_body += 1;
            put_frame(out, id, body);
            self.sent_at[place] = Some((id, now));
        }
    }

    /// Settles the requests that whole frames in `unread` answer: how many bytes those are.
    fn settle(&mut self, unread: &[u8], tally: &Tally, now: Instant) -> Result<usize, LoadError> {
        let mut consumed = 0;
        let mut inspected = None;
        let mut sent_at = Vec::with_capacity(self.sent_at.len());
        while let Some((frame, length)) = frame::split(&unread[consumed..], MAX_CLIENT_FRAME)? {
            consumed += length;
            sent_at.push(self.take(frame.id)?);
            if self.answers == Answers::Decisions && inspected.is_none() {
                inspected = Some(inspect(frame.body)?);
            }
        }
        tally.record(now, sent_at, inspected);
        Ok(consumed)
    }

    fn take(&mut self, id: u64) -> Result<Instant, LoadError> {
        let places = u64::try_from(self.sent_at.len()).unwrap_or(u64::MAX);
        let place = usize::try_from(id % places.max(1)).unwrap_or(usize::MAX);
        let asked = self
            .sent_at
            .get_mut(place)
            .ok_or(LoadError::NotAsked { id })?;
        match asked.take() {
            Some((asked, sent_at)) if asked == id => {
                self.free.push(place);
                Ok(sent_at)
            }
            Some(_) | None => Err(LoadError::NotAsked { id }),
        }
    }
}

/// Appends a frame with that body.
pub fn put_frame(out: &mut Vec<u8>, id: u64, body: &[u8]) {
    let Ok(()) = frame::put(out, id, |out| {
        out.extend_from_slice(body);
        Ok::<(), std::convert::Infallible>(())
    });
}

fn inspect(body: &[u8]) -> Result<Inspected, LoadError> {
    match client::read_answer(body)? {
        Ok(answer) => Ok(Inspected {
            refused: !answer.is_allowed(),
            degraded: answer.is_degraded(),
        }),
        Err(fault) => Err(LoadError::Fault(fault.to_string())),
    }
}
