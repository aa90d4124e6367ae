//! The gossip connections, by node.
//!
//! Dials on demand, keeps packets while it dials, replaces what has gone stale. Both sides dial, so two
//! nodes may have several connections; all are read, the liveliest is written to. A connection to a
//! dead process swallows datagrams until its idle timeout: so a packet that wants an answer and has none
//! after a probe's round trip goes out on a fresh connection as well.
//!
//! Invariants: a bounded number of connections and one dial for each node; packets that wait are bounded
//! and the oldest go first, as gossip repeats itself.

mod peer;
mod reader;

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use quinn::{Connection, ConnectionError};
use tokio::sync::mpsc;
use tollgate_limit::{Nanos, NodeId};
use tollgate_wire::identity::{BootId, Identity};

use self::peer::Peer;
use super::events::{Event, Line, LineId};
use crate::transport::{DialError, NodeConnection, Transport, close::CloseCode, may_heal};

/// Dials at a time; above it packets are dropped.
const MAX_DIALS: usize = 64;
/// The pause after a dial that was refused or failed.
const REDIAL_PAUSE: Nanos = Nanos::from_millis(500);
/// How long a node without a connection is remembered.
const FORGET_AFTER: Nanos = Nanos::from_millis(60_000);

/// The gossip connections of this node.
#[derive(Debug)]
pub(super) struct Pool {
    transport: Arc<Transport>,
    events: mpsc::Sender<Event>,
    peers: BTreeMap<NodeId, Peer>,
    lines_made: u64,
    /// Whether this node is leaving: what others then close is no fault.
    leaving: bool,
}

/// A packet to be sent.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    pub(super) bytes: Bytes,
    /// Whether it wants an answer.
    pub(super) asks: bool,
}

impl Pool {
    pub(super) const fn new(transport: Arc<Transport>, events: mpsc::Sender<Event>) -> Self {
        Self {
            transport,
            events,
            peers: BTreeMap::new(),
            lines_made: 0,
            leaving: false,
        }
    }

    /// From now on nobody is missed who takes nothing from this node.
    pub(super) const fn leave(&mut self) {
        self.leaving = true;
    }

    /// Takes in a connection, and sends what waited for one.
    pub(super) fn add(&mut self, now: Nanos, accepted: NodeConnection) {
        let NodeConnection { connection, node } = accepted;
        let peer = self.peers.entry(node.clone()).or_default();
        if peer.has(&connection) {
            return;
        }
        self.lines_made = self.lines_made.wrapping_add(1);
        let id = LineId(self.lines_made);
        peer.add(now, id, connection.clone());
        tokio::spawn(reader::read(
            connection,
            Line { id, node },
            self.events.clone(),
        ));
    }

    /// Sends a packet, dialling if need be.
    pub(super) fn send(&mut self, now: Nanos, to: &Identity, packet: Packet) {
        let peer = self.peers.entry(to.node.clone()).or_default();
        if packet.asks {
            peer.note_ask(now, to, &packet);
        }
        if !peer.send(now, &packet) {
            self.dial(now, to, packet);
        }
    }

    /// A dial has ended.
    pub(super) fn handle_dialled(
        &mut self,
        now: Nanos,
        node: &NodeId,
        result: Result<NodeConnection, DialError>,
    ) {
        match result {
            Ok(connected) => {
                self.add(now, connected);
                if let Some(peer) = self.peers.get_mut(node) {
                    peer.stop_dialling();
                }
            }
            Err(error) => {
                if let Some(peer) = self.peers.get_mut(node) {
                    peer.stop_dialling();
                    peer.no_dial_before = now.saturating_add(REDIAL_PAUSE);
                    peer.tell(node, self.leaving || error.may_heal(), &error);
                }
            }
        }
    }

    /// Something came on a connection, from that boot.
    pub(super) fn handle_heard(&mut self, now: Nanos, line: &Line, boot: BootId) {
        if let Some(peer) = self.peers.get_mut(&line.node) {
            peer.handle_heard(now, line.id, boot);
        }
    }

    /// A connection has ended. `Some` is the boot that said goodbye on it.
    pub(super) fn handle_closed(
        &mut self,
        now: Nanos,
        line: &Line,
        error: &ConnectionError,
    ) -> Option<BootId> {
        let peer = self.peers.get_mut(&line.node)?;
        let boot = peer.remove(line.id);
        tracing::debug!(node_id = %line.node, %error, "a gossip connection has ended");
        match CloseCode::of(error) {
            Some(CloseCode::Leaving) => return boot,
            Some(CloseCode::Refused | CloseCode::Malformed | CloseCode::Busy) => {
                peer.no_dial_before = now.saturating_add(REDIAL_PAUSE);
                peer.tell(&line.node, self.leaving || may_heal(error), error);
            }
            Some(CloseCode::Replaced) | None => {}
        }
        // Its process is gone or another one: what it was asked last goes out on a fresh connection.
        if let Some((to, packet)) = peer.take_ask(now) {
            self.send(now, &to, packet);
        }
        None
    }

    /// Asks again, on fresh connections, whoever has not answered.
    pub(super) fn handle_timeout(&mut self, now: Nanos) {
        let late = self
            .peers
            .values_mut()
            .filter_map(|peer| peer.take_late_ask(now));
        let late: Vec<_> = late.collect();
        for (to, packet) in late {
            self.dial(now, &to, packet);
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next.
    pub(super) fn poll_timeout(&self) -> Option<Nanos> {
        self.peers.values().filter_map(Peer::ask_is_late_at).min()
    }

    /// When a node was last heard on a gossip connection.
    pub(super) fn last_heard(&self, node: &NodeId) -> Option<Nanos> {
        self.peers.get(node)?.last_heard
    }

    /// The liveliest connection to a node.
    pub(super) fn connection(&self, node: &NodeId) -> Option<Connection> {
        self.peers.get(node)?.connection()
    }

    /// Closes one connection.
    pub(super) fn close(&self, line: &Line, code: CloseCode) {
        if let Some(peer) = self.peers.get(&line.node) {
            peer.close(line.id, code);
        }
    }

    /// Closes one connection, with words for the other side's operator.
    pub(super) fn close_saying(&self, line: &Line, code: CloseCode, words: &'static str) {
        if let Some(peer) = self.peers.get(&line.node) {
            peer.close_saying(line.id, code, words);
        }
    }

    /// Closes all connections.
    pub(super) fn close_all(&mut self, code: CloseCode) {
        for peer in self.peers.values() {
            peer.close_all(code);
        }
        self.peers.clear();
    }

    /// Forgets nodes that nothing was sent to or heard of for long.
    pub(super) fn forget_unused(&mut self, now: Nanos) {
        self.peers.retain(|_node, peer| {
            peer.is_in_use() || now.saturating_sub(peer.last_used) < FORGET_AFTER
        });
    }

    /// Dials unless it dials already; the packet waits for it.
    fn dial(&mut self, now: Nanos, to: &Identity, packet: Packet) {
        let dials = self
            .peers
            .values()
            .filter(|peer| peer.is_dialling())
            .count();
        let peer = self.peers.entry(to.node.clone()).or_default();
        if !peer.is_dialling() && (now < peer.no_dial_before || dials >= MAX_DIALS) {
            return;
        }
        if peer.wait_for_dial(packet) {
            let dialling = dial(self.transport.clone(), to.clone(), self.events.clone());
            tokio::spawn(dialling);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.close_all(CloseCode::Busy);
    }
}

async fn dial(transport: Arc<Transport>, to: Identity, events: mpsc::Sender<Event>) {
    let result = transport.connect_gossip(to.peer, Some(&to.node)).await;
    let node = to.node;
    if events.send(Event::Dialled { node, result }).await.is_err() {
        tracing::trace!("control has ended");
    }
}
