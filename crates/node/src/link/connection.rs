//! The connection under a link: dialled, kept, and dialled again when it is gone.
//!
//! The caller dials, so each pair of nodes has two connections. A lost connection opens the breaker
//! and tells all in flight; a new one is pinged at once, and the answer closes the breaker.

use std::{sync::Arc, time::Duration};

use quinn::{Connection, ConnectionError, RecvStream, SendStream};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tokio::{sync::watch, task::JoinSet};
use tollgate_cluster::{Failure, Returned};
use tollgate_wire::{
    frame,
    identity::{BootId, Identity},
    peer::{Hello, Request, put_request},
};
use tracing::{debug, info, warn};

use super::{Heard, LANES, Link, State, timer};
use crate::{
    clock::Clock as _,
    errands::Room,
    frames::{Filled, FrameReader},
    replica,
    serve::Owner,
    transport::{Transport, close::CloseCode},
};

/// The first wait before dialling again; doubled each time, with jitter.
const FIRST_BACKOFF: Duration = Duration::from_millis(20);
/// The longest wait before dialling again.
const LONGEST_BACKOFF: Duration = Duration::from_secs(1);

/// What a link needs to make connections.
#[derive(Clone, Debug)]
pub(crate) struct Dialler {
    pub(crate) owner: Arc<Owner>,
    pub(crate) transport: Arc<Transport>,
    pub(crate) hello: Hello,
    pub(crate) seed: u64,
}

/// Keeps `link` connected to the peer that `identity` tells, until its sender is dropped.
pub(crate) async fn run(link: Arc<Link>, dialler: Dialler, identity: watch::Receiver<Identity>) {
    keep(&link, dialler, identity).await;
    link.retire();
}

async fn keep(link: &Arc<Link>, dialler: Dialler, mut identity: watch::Receiver<Identity>) {
    let mut tasks = JoinSet::new();
    tasks.spawn(timer::run(Arc::downgrade(link)));
    let mut random = StdRng::seed_from_u64(dialler.seed);
    let mut backoff = FIRST_BACKOFF;
    loop {
        let peer = identity.borrow_and_update().clone();
        link.handle_owner(peer.boot);
        let attempt = async {
            let connection = dialler.transport.connect_peer(&peer).await.ok()?;
            let streams = open_streams(&connection, &dialler.hello).await?;
            Some((connection, streams))
        };
        let connected = tokio::select! {
            biased;
            changed = identity.changed() => match changed {
                Ok(()) => continue,
                Err(_gone) => return,
            },
            connected = attempt => connected,
        };
        if let Some((connection, streams)) = connected {
            backoff = FIRST_BACKOFF;
            let follower = replica::follow(
                Arc::clone(&dialler.owner),
                connection.clone(),
                dialler.hello.clone(),
                identity.clone(),
            );
            let streams = (streams, follower);
            let end = converse(link, &connection, streams, &mut identity, &peer).await;
            link.handle_lost(end);
            CloseCode::Replaced.close(&connection);
            match end {
                End::Gone => return,
                End::NewAddress => continue,
                End::Lost | End::Leaving => {}
            }
        }
        let wait = backoff.mul_f64(random.random_range(0.5..1.0));
        backoff = (backoff * 2).min(LONGEST_BACKOFF);
        tokio::select! {
            biased;
            changed = identity.changed() => match changed {
                Ok(()) => backoff = FIRST_BACKOFF,
                Err(_gone) => return,
            },
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Why a conversation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The peer is no member any more.
    Gone,
    /// The peer is reached elsewhere now.
    NewAddress,
    /// The connection broke.
    Lost,
    /// The peer leaves the cluster, or this node does.
    Leaving,
}

type Streams = [(SendStream, RecvStream); LANES];

async fn open_streams(connection: &Connection, hello: &Hello) -> Option<Streams> {
    let mut bytes = Vec::new();
    let hello = Request::Hello(hello.clone());
    frame::put(&mut bytes, 0, |body| put_request(body, &hello)).ok()?;
    let mut streams = Vec::with_capacity(LANES);
    for _ in 0..LANES {
        let (mut send, receive) = connection.open_bi().await.ok()?;
        send.write_all(&bytes).await.ok()?;
        streams.push((send, receive));
    }
    streams.try_into().ok()
}

async fn converse(
    link: &Arc<Link>,
    connection: &Connection,
    (streams, follower): (Streams, impl Future<Output = ()> + Send + 'static),
    identity: &mut watch::Receiver<Identity>,
    peer: &Identity,
) -> End {
    link.handle_connected(connection);
    // Aborted when it is dropped.
    let mut tasks = JoinSet::new();
    for (lane, (send, receive)) in streams.into_iter().enumerate() {
        tasks.spawn(write(Arc::clone(link), lane, send));
        tasks.spawn(read(Arc::clone(link), receive));
    }
    tasks.spawn(follower);
    loop {
        tokio::select! {
            biased;
            changed = identity.changed() => match changed {
                Err(_gone) => return End::Gone,
                Ok(()) => {
                    let newest = identity.borrow_and_update();
                    // A restarted process at the same address breaks the old connection by itself,
                    // and a connection that stands may be the new process's already.
                    link.handle_owner(newest.boot);
                    if newest.peer != peer.peer {
                        return End::NewAddress;
                    }
                }
            },
            reason = connection.closed() => {
                debug!(peer = %peer.node, %reason, "peer connection closed");
                return end_of(&reason);
            }
            _ended = tasks.join_next() => return End::Lost,
        }
    }
}

fn end_of(reason: &ConnectionError) -> End {
    let is_planned = matches!(reason, ConnectionError::LocallyClosed)
        || CloseCode::of(reason) == Some(CloseCode::Leaving);
    if is_planned { End::Leaving } else { End::Lost }
}

async fn write(link: Arc<Link>, lane: usize, mut send: SendStream) {
    let Some(lane) = link.lanes.get(lane) else {
        return;
    };
    let mut bytes = Vec::new();
    loop {
        lane.take(|| link.clock.now(), &mut bytes).await;
        if send.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

async fn read(link: Arc<Link>, receive: RecvStream) {
    let mut frames = FrameReader::new(receive);
    while let Ok(Filled::More) = frames.fill().await {
        let now = link.clock.now();
        loop {
            match frames.next() {
                Ok(None) => break,
                Ok(Some(frame)) => {
                    let handled = link.handle_reply(now, (frame.id, frame.body));
                    if let Err(error) = handled {
                        warn!(peer = %link.peer, %error, "closing peer connection: malformed reply");
                        return;
                    }
                }
                Err(error) => {
                    warn!(peer = %link.peer, %error, "closing peer connection: malformed frame");
                    return;
                }
            }
        }
    }
}

impl Link {
    /// The peer is this boot of it.
    fn handle_owner(&self, boot: BootId) {
        let returned = self.state.lock().amendments.handle_owner(boot);
        self.hand_back(returned);
    }

    /// The peer is no member any more: nothing is taken from here on.
    fn retire(&self) {
        let mut state = self.state.lock();
        state.is_retired = true;
        let returned = state.amendments.drain();
        drop(state);
        self.hand_back(returned);
    }

    fn hand_back(&self, returned: Vec<(Returned, Option<Room>)>) {
        let now = self.clock.now();
        self.errands.hand_back(now, &self.peer, returned);
    }

    fn handle_connected(&self, connection: &Connection) {
        for lane in &self.lanes {
            lane.restart();
        }
        let now = self.clock.now();
        self.counters.connects.raise();
        let mut state = self.state.lock();
        state.connection = Some(connection.clone());
        state.datagrams = 0;
        self.listen(&mut state, now);
        if state.breaker.is_open() {
            drop(state);
            self.ping(now);
        } else {
            self.refresh(&state);
        }
        self.tell_switches();
        info!(peer = %self.peer, "peer connected");
    }

    fn handle_lost(&self, end: End) {
        let mut state = self.state.lock();
        state.connection = None;
        let turn = state.breaker.handle_lost();
        self.refresh(&state);
        let State { in_flight, .. } = &mut *state;
        in_flight.drain(|_number, pending| {
            // The asker may have gone away: then nobody needs to know.
            drop(
                pending
                    .payload
                    .tell
                    .send(Heard::Failed(Failure::ConnectionLost)),
            );
        });
        match turn {
            Some(turn) if end == End::Lost => self.turn(&state, turn),
            Some(_) | None => debug!(peer = %self.peer, ?end, "peer connection ended as planned"),
        }
    }
}
