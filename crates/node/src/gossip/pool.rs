//! The gossip connections, by node.
//!
//! Dials on demand, keeps packets while it dials, replaces what has gone stale. Both sides dial, so two
//! nodes may have several connections; all are read, the liveliest is written to. A connection to a
//! dead process swallows datagrams until its idle timeout: so when something that wants an answer got none for a
//! round trip, the next such packet goes out on a fresh connection as well.
//!
//! Invariants: at most [`MAX_LINES`] connections and one dial for each node; packets that wait are bounded and
//! the oldest go first, as gossip repeats itself.

mod reader;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use bytes::Bytes;
use quinn::Connection;
use tokio::sync::mpsc;
use tollgate_limit::{Nanos, NodeId};
use tollgate_wire::identity::{BootId, Identity};

use super::{
    events::{Event, Line, LineId},
    timing::{PROBE_PERIOD, PROBE_RTT},
};
use crate::transport::{DialError, NodeConnection, Transport, close::CloseCode, may_heal};

/// Connections to one node; above it the least lively is closed.
const MAX_LINES: usize = 3;
/// Packets that wait for one dial.
const MAX_WAITING: usize = 32;
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
    fingerprint: u64,
    events: mpsc::Sender<Event>,
    peers: BTreeMap<NodeId, Peer>,
    lines_made: u64,
}

/// A packet and whom it is for.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    pub(super) bytes: Bytes,
    /// Whether it wants an answer.
    pub(super) asks: bool,
}

#[derive(Debug, Default)]
struct Peer {
    lines: Vec<OpenLine>,
    /// What waits for the dial under way.
    dial: Option<VecDeque<Packet>>,
    no_dial_before: Nanos,
    last_heard: Option<Nanos>,
    last_used: Nanos,
    /// Whether the log says already that this node cannot be reached.
    told: bool,
}

#[derive(Debug)]
struct OpenLine {
    id: LineId,
    connection: Connection,
    /// When it was opened, or last heard.
    lively_at: Nanos,
    /// The boot that spoke last.
    boot: Option<BootId>,
    /// Since when something that wants an answer has had none.
    unanswered_since: Option<Nanos>,
    /// The last packet that wanted an answer, and when it was sent.
    last_ask: Option<(Nanos, Packet)>,
}

impl Pool {
    pub(super) const fn new(
        transport: Arc<Transport>,
        fingerprint: u64,
        events: mpsc::Sender<Event>,
    ) -> Self {
        Self {
            transport,
            fingerprint,
            events,
            peers: BTreeMap::new(),
            lines_made: 0,
        }
    }

    /// Takes in a connection, and sends what waited for one.
    pub(super) fn add(&mut self, now: Nanos, accepted: NodeConnection) {
        let NodeConnection { connection, node } = accepted;
        let peer = self.peers.entry(node.clone()).or_default();
        peer.last_used = now;
        peer.told = false;
        let known = |line: &OpenLine| line.connection.stable_id() == connection.stable_id();
        if peer.lines.iter().any(known) {
            return;
        }
        self.lines_made = self.lines_made.wrapping_add(1);
        let id = LineId(self.lines_made);
        let line = Line {
            id,
            node: node.clone(),
        };
        let reading = reader::read(
            connection.clone(),
            line,
            self.fingerprint,
            self.events.clone(),
        );
        tokio::spawn(reading);
        let (boot, unanswered_since, last_ask) = (None, None, None);
        peer.lines.push(OpenLine {
            id,
            connection,
            lively_at: now,
            boot,
            unanswered_since,
            last_ask,
        });
        if peer.lines.len() > MAX_LINES {
            peer.close_least_lively();
        }
        for packet in peer.dial.iter_mut().flat_map(std::mem::take) {
            peer.lines.last_mut().map(|line| line.send(now, &packet));
        }
    }

    /// Sends a packet, dialling if need be.
    pub(super) fn send(&mut self, now: Nanos, to: &Identity, packet: Packet) {
        let dials = self
            .peers
            .values()
            .filter(|peer| peer.dial.is_some())
            .count();
        let peer = self.peers.entry(to.node.clone()).or_default();
        peer.last_used = now;
        let sent = peer.send(now, &packet);
        if sent == Sent::OnTrust {
            return;
        }
        if let Some(waiting) = &mut peer.dial {
            if waiting.len() == MAX_WAITING {
                waiting.pop_front();
            }
            waiting.push_back(packet);
        } else if now >= peer.no_dial_before && dials < MAX_DIALS {
            peer.dial = Some(VecDeque::from([packet]));
            tokio::spawn(dial(
                self.transport.clone(),
                to.clone(),
                self.events.clone(),
            ));
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
                    peer.dial = None;
                }
            }
            Err(error) => {
                if let Some(peer) = self.peers.get_mut(node) {
                    peer.dial = None;
                    peer.no_dial_before = now.saturating_add(REDIAL_PAUSE);
                    peer.tell(node, error.may_heal(), &error);
                }
            }
        }
    }

    /// Something came on a connection, from that boot.
    pub(super) fn handle_heard(&mut self, now: Nanos, line: &Line, boot: BootId) {
        let Some(peer) = self.peers.get_mut(&line.node) else {
            return;
        };
        peer.last_heard = Some(now);
        if let Some(open) = peer.lines.iter_mut().find(|open| open.id == line.id) {
            open.lively_at = now;
            open.boot = Some(boot);
            open.unanswered_since = None;
        }
    }

    /// A connection has ended. `Some` is the boot that said goodbye on it.
    pub(super) fn handle_closed(
        &mut self,
        now: Nanos,
        line: &Line,
        error: &quinn::ConnectionError,
    ) -> Option<BootId> {
        let peer = self.peers.get_mut(&line.node)?;
        let index = peer.lines.iter().position(|open| open.id == line.id)?;
        let open = peer.lines.remove(index);
        tracing::debug!(node_id = %line.node, %error, "a gossip connection has ended");
        match CloseCode::of(error) {
            Some(CloseCode::Leaving) => return open.boot,
            Some(CloseCode::Refused | CloseCode::Malformed | CloseCode::Busy) => {
                peer.no_dial_before = now.saturating_add(REDIAL_PAUSE);
                peer.tell(&line.node, may_heal(error), error);
            }
            Some(CloseCode::Replaced) | None => {}
        }
        None
    }

    /// What was sent to a node shortly before its connection was lost, and may be sent again.
    pub(super) fn lost_ask(&self, now: Nanos, line: &Line) -> Option<Packet> {
        let peer = self.peers.get(&line.node)?;
        let open = peer.lines.iter().find(|open| open.id == line.id)?;
        let (at, packet) = open.last_ask.as_ref()?;
        open.unanswered_since?;
        (now.saturating_sub(*at) <= PROBE_PERIOD.into()).then(|| packet.clone())
    }

    /// When a node was last heard on a gossip connection.
    pub(super) fn last_heard(&self, node: &NodeId) -> Option<Nanos> {
        self.peers.get(node)?.last_heard
    }

    /// The liveliest connection to a node.
    pub(super) fn connection(&self, node: &NodeId) -> Option<Connection> {
        let lines = &self.peers.get(node)?.lines;
        lines
            .iter()
            .max_by_key(|line| (line.lively_at, line.id))
            .map(|line| line.connection.clone())
    }

    /// Closes one connection.
    pub(super) fn close(&self, line: &Line, code: CloseCode) {
        let lines = self.peers.get(&line.node).map(|peer| peer.lines.as_slice());
        let found = lines
            .unwrap_or_default()
            .iter()
            .find(|open| open.id == line.id);
        if let Some(open) = found {
            code.close(&open.connection);
        }
    }

    /// Closes all connections.
    pub(super) fn close_all(&mut self, code: CloseCode) {
        for line in self.peers.values().flat_map(|peer| &peer.lines) {
            code.close(&line.connection);
        }
        self.peers.clear();
    }

    /// Forgets nodes that nothing was sent to or heard of for long.
    pub(super) fn forget_unused(&mut self, now: Nanos) {
        self.peers.retain(|_node, peer| {
            let used = now.saturating_sub(peer.last_used) < FORGET_AFTER;
            used || !peer.lines.is_empty() || peer.dial.is_some()
        });
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.close_all(CloseCode::Busy);
    }
}

/// Whether a packet went out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    /// On a connection that may be believed in.
    OnTrust,
    /// On one whose other end has fallen silent: another should be tried.
    OnDoubt,
    /// There is no connection.
    Nowhere,
}

impl Peer {
    fn send(&mut self, now: Nanos, packet: &Packet) -> Sent {
        while let Some(index) = self.liveliest() {
            let Some(line) = self.lines.get_mut(index) else {
                break;
            };
            if line.send(now, packet) {
                let doubtful = packet.asks && line.is_silent(now);
                return if doubtful {
                    Sent::OnDoubt
                } else {
                    Sent::OnTrust
                };
            }
            self.lines.remove(index);
        }
        Sent::Nowhere
    }

    fn liveliest(&self) -> Option<usize> {
        let lines = self.lines.iter().enumerate();
        lines
            .max_by_key(|(_, line)| (line.lively_at, line.id))
            .map(|(index, _)| index)
    }

    fn close_least_lively(&mut self) {
        let lines = self.lines.iter().enumerate();
        let least = lines.min_by_key(|(_, line)| (line.lively_at, line.id));
        if let Some((index, _)) = least {
            CloseCode::Replaced.close(&self.lines.remove(index).connection);
        }
    }

    /// One line for each time that a node stops being reachable for a reason that waiting does not cure.
    fn tell(&mut self, node: &NodeId, may_heal: bool, error: &impl std::fmt::Display) {
        if may_heal || self.told {
            tracing::debug!(node_id = %node, %error, "a member was not reached");
        } else {
            self.told = true;
            tracing::warn!(node_id = %node, %error, "a member takes no gossip from this node");
        }
    }
}

impl OpenLine {
    /// Sends a packet; `false` if the connection is gone.
    fn send(&mut self, now: Nanos, packet: &Packet) -> bool {
        match self.connection.send_datagram(packet.bytes.clone()) {
            Ok(()) => {}
            Err(quinn::SendDatagramError::ConnectionLost(_)) => return false,
            Err(error) => tracing::debug!(%error, "a gossip packet was not sent"),
        }
        if packet.asks {
            self.unanswered_since.get_or_insert(now);
            self.last_ask = Some((now, packet.clone()));
        }
        true
    }

    fn is_silent(&self, now: Nanos) -> bool {
        let silent_for = self.unanswered_since.map(|since| now.saturating_sub(since));
        silent_for.is_some_and(|span| span > PROBE_RTT.into())
    }
}

async fn dial(transport: Arc<Transport>, to: Identity, events: mpsc::Sender<Event>) {
    let result = transport.connect_gossip(to.peer, Some(&to.node)).await;
    let told = events
        .send(Event::Dialled {
            node: to.node,
            result,
        })
        .await;
    if told.is_err() {
        tracing::trace!("control has ended");
    }
}
