//! The owner's side: answers what peers ask on their streams.
//!
//! One task for each stream: it reads what is there, takes one clock reading for the batch, decides each
//! frame inline and answers in one write. No task, no channel, no allocation for a check. Only what must
//! wait for slots on their way or for another node has a task of its own, and is written when it is known.
//! A stream that says so becomes a replica stream (see `replica`).
//!
//! Invariants: nothing is decided as owner for a slot that this node does not hold (INV-ONE-OWNER), nor
//! while it was paused; a repeated request is answered, not decided (INV-DECIDED-ONCE); a stream whose
//! first frame is not a right hello is closed.

mod batch;
mod boots;
mod later;
mod outbox;
mod stand;
#[cfg(test)]
mod tests;

use std::sync::{Arc, atomic::AtomicU64};

use arc_swap::ArcSwap;
use quinn::{Connection, RecvStream, SendStream};
use tollgate_cluster::{ClusterName, PauseWatch, SlotStates, SwitchBoard};
use tollgate_limit::{NodeId, Store};
use tollgate_wire::{
    identity::BootId,
    peer::{Hello, Request, read_request},
};
use tracing::{debug, warn};

use self::batch::{Goes, Stream};
pub(crate) use self::{boots::Boots, stand::Keeper};
use crate::{
    clock::{Clock as _, TokioClock},
    counters::NodeCounters,
    frames::{Filled, FrameReader, FramesError},
    replica::{self, Mover},
    routes::Routes,
    transport::close::CloseCode,
    view::View,
};

/// What owns this node's share of the keys.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) node: NodeId,
    pub(crate) boot: BootId,
    pub(crate) cluster: ClusterName,
    pub(crate) cluster_fingerprint: u64,
    pub(crate) clock: TokioClock,
    pub(crate) store: Store,
    pub(crate) view: Arc<ArcSwap<View>>,
    /// The ways to those who decide in its stead.
    pub(crate) routes: Arc<ArcSwap<Routes>>,
    /// How it holds each slot.
    pub(crate) states: Arc<SlotStates>,
    /// What moves slots and counts.
    pub(crate) mover: Mover,
    pub(crate) policies_fingerprint: AtomicU64,
    pub(crate) pause: PauseWatch,
    pub(crate) switches: Arc<SwitchBoard>,
    pub(crate) boots: Boots,
    pub(crate) counters: NodeCounters,
}

impl Owner {
    /// Tells all peers how the switches stand.
    pub(crate) fn tell_switches(&self) {
        for link in self.routes.load().links() {
            link.tell_switches();
        }
    }
}

/// Serves all streams of one peer's connection until it ends.
pub(crate) async fn serve_peer(owner: Arc<Owner>, connection: Connection, peer: NodeId) {
    while let Ok((send, receive)) = connection.accept_bi().await {
        let (owner, connection, peer) = (Arc::clone(&owner), connection.clone(), peer.clone());
        tokio::spawn(async move {
            if let Err(problem) = serve_stream(&owner, (send, receive), &peer).await {
                problem.close(&connection, &peer);
            }
        });
    }
}

/// Why a stream is not served on.
#[derive(Debug)]
pub(crate) enum Problem {
    /// The connection or the stream ended.
    Ended,
    /// The peer's bytes are not the protocol.
    Malformed(String),
    /// The peer is not who may ask, or belongs to another cluster.
    Refused(&'static str),
}

impl Problem {
    fn close(self, connection: &Connection, peer: &NodeId) {
        match self {
            Self::Ended => debug!(%peer, "peer stream ended"),
            Self::Malformed(problem) => {
                warn!(%peer, problem, "closing peer connection: malformed frames");
                CloseCode::Malformed.close(connection);
            }
            Self::Refused(reason) => {
                warn!(%peer, reason, "closing peer connection: refused");
                CloseCode::Refused.close(connection);
            }
        }
    }
}

impl From<FramesError> for Problem {
    fn from(error: FramesError) -> Self {
        match error {
            FramesError::Read(_) => Self::Ended,
            FramesError::Frame(error) => Self::Malformed(error.to_string()),
        }
    }
}

async fn serve_stream(
    owner: &Arc<Owner>,
    (mut send, receive): (SendStream, RecvStream),
    peer: &NodeId,
) -> Result<(), Problem> {
    let mut frames = FrameReader::new(receive);
    let mut stream: Option<Stream> = None;
    let mut out = Vec::new();
    loop {
        let filled = match stream.as_ref().and_then(Stream::outbox) {
            None => frames.fill().await?,
            Some(outbox) => tokio::select! {
                biased;
                () = outbox.take(&mut out) => {
                    send.write_all(&out).await.map_err(|_closed| Problem::Ended)?;
                    continue;
                }
                filled = frames.fill() => filled?,
            },
        };
        match filled {
            Filled::More => {}
            Filled::Finished => return Ok(()),
        }
        let now = owner.clock.now();
        if stream.is_none() {
            stream = read_hello(owner, &mut frames, peer)?;
        }
        let Some(stream) = &mut stream else { continue };
        out.clear();
        let goes = stream.answer(owner, now, &mut frames, &mut out)?;
        if !out.is_empty() {
            send.write_all(&out)
                .await
                .map_err(|_closed| Problem::Ended)?;
        }
        match goes {
            Goes::On => {}
            Goes::Follow => {
                let follower = (peer, stream.boot_id());
                return replica::serve_follower(owner, (send, frames), follower).await;
            }
        }
    }
}

fn read_hello(
    owner: &Owner,
    frames: &mut FrameReader,
    peer: &NodeId,
) -> Result<Option<Stream>, Problem> {
    let frame = frames.next().map_err(FramesError::from)?;
    let Some(frame) = frame else { return Ok(None) };
    let mut body = frame.body;
    match read_request(&mut body) {
        Ok(Request::Hello(hello)) => {
            check_hello(owner, &hello, peer)?;
            let caller = (hello.boot, hello.link);
            Ok(Some(Stream::new(caller, owner.boots.of(caller))))
        }
        Ok(_) => Err(Problem::Malformed(
            "the first frame is not a hello".to_owned(),
        )),
        Err(error) => Err(Problem::Malformed(error.to_string())),
    }
}

fn check_hello(owner: &Owner, hello: &Hello, peer: &NodeId) -> Result<(), Problem> {
    if hello.node != peer.as_str() {
        return Err(Problem::Refused(
            "the hello names another node than the certificate",
        ));
    }
    if hello.cluster != owner.cluster.as_str() {
        return Err(Problem::Refused("another cluster name"));
    }
    if hello.cluster_fingerprint != owner.cluster_fingerprint {
        return Err(Problem::Refused(
            "another hash key or slot count (cluster.toml differs)",
        ));
    }
    Ok(())
}
