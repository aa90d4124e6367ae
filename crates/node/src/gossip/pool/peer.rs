//! The gossip connections to one node.
//!
//! Knows nothing of dialling but what waits for it. Invariants: at most [`MAX_LINES`] connections and
//! [`MAX_WAITING`] packets that wait; one ask is remembered, the last.

use std::collections::VecDeque;

use quinn::{Connection, SendDatagramError};
use tollgate_limit::{Nanos, NodeId};
use tollgate_wire::identity::{BootId, Identity};

use super::{super::timing::PROBE_RTT, Packet};
use crate::{
    gossip::{events::LineId, timing::PROBE_PERIOD},
    transport::close::CloseCode,
};

/// Connections to one node; above it the least lively is closed.
const MAX_LINES: usize = 3;
/// Packets that wait for one dial.
const MAX_WAITING: usize = 32;

/// The way to one node.
#[derive(Debug, Default)]
pub(super) struct Peer {
    lines: Vec<OpenLine>,
    /// What waits for the dial under way.
    waiting: Option<VecDeque<Packet>>,
    ask: Option<Ask>,
    pub(super) no_dial_before: Nanos,
    pub(super) last_heard: Option<Nanos>,
    pub(super) last_used: Nanos,
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
}

/// The last packet that wanted an answer and has none.
#[derive(Debug)]
struct Ask {
    at: Nanos,
    to: Identity,
    packet: Packet,
    /// Whether it went out on a fresh connection too.
    asked_again: bool,
}

impl Peer {
    pub(super) fn has(&self, connection: &Connection) -> bool {
        let id = connection.stable_id();
        self.lines
            .iter()
            .any(|line| line.connection.stable_id() == id)
    }

    /// Takes in a connection, and sends what waited for one.
    pub(super) fn add(&mut self, now: Nanos, id: LineId, connection: Connection) {
        self.last_used = now;
        self.told = false;
        let line = OpenLine {
            id,
            connection,
            lively_at: now,
            boot: None,
        };
        for packet in self.waiting.iter_mut().flat_map(std::mem::take) {
            line.send(&packet);
        }
        self.lines.push(line);
        if self.lines.len() > MAX_LINES {
            let lines = self.lines.iter().enumerate();
            let least = lines.min_by_key(|(_, line)| (line.lively_at, line.id));
            if let Some((index, _)) = least {
                CloseCode::Replaced.close(&self.lines.remove(index).connection);
            }
        }
    }

    /// Sends a packet on the liveliest connection; `false` if there is none.
    pub(super) fn send(&mut self, now: Nanos, packet: &Packet) -> bool {
        self.last_used = now;
        while let Some(line) = self.liveliest() {
            if line.send(packet) {
                return true;
            }
            let id = line.id;
            self.lines.retain(|line| line.id != id);
        }
        false
    }

    /// Lets a packet wait for a dial; `true` if the dial must be started.
    pub(super) fn wait_for_dial(&mut self, packet: Packet) -> bool {
        let start = self.waiting.is_none();
        let waiting = self.waiting.get_or_insert_default();
        if waiting.len() == MAX_WAITING {
            waiting.pop_front();
        }
        waiting.push_back(packet);
        start
    }

    pub(super) const fn is_dialling(&self) -> bool {
        self.waiting.is_some()
    }

    pub(super) fn stop_dialling(&mut self) {
        self.waiting = None;
    }

    pub(super) const fn is_in_use(&self) -> bool {
        !self.lines.is_empty() || self.is_dialling()
    }

    pub(super) fn handle_heard(&mut self, now: Nanos, id: LineId, boot: BootId) {
        self.last_heard = Some(now);
        self.ask = None;
        if let Some(line) = self.lines.iter_mut().find(|line| line.id == id) {
            line.lively_at = now;
            line.boot = Some(boot);
        }
    }

    /// Removes a connection; the boot that spoke last on it.
    pub(super) fn remove(&mut self, id: LineId) -> Option<BootId> {
        let index = self.lines.iter().position(|line| line.id == id)?;
        self.lines.remove(index).boot
    }

    /// Remembers a packet that wants an answer.
    pub(super) fn note_ask(&mut self, at: Nanos, to: &Identity, packet: &Packet) {
        let (to, packet) = (to.clone(), packet.clone());
        self.ask = Some(Ask {
            at,
            to,
            packet,
            asked_again: false,
        });
    }

    /// What may be asked again because its connection is lost.
    pub(super) fn take_ask(&mut self, now: Nanos) -> Option<(Identity, Packet)> {
        let ask = self.ask.take()?;
        let is_fresh = now.saturating_sub(ask.at) < PROBE_PERIOD.into();
        is_fresh.then_some((ask.to, ask.packet))
    }

    /// What was not answered within a probe's round trip; told once.
    pub(super) fn take_late_ask(&mut self, now: Nanos) -> Option<(Identity, Packet)> {
        if self.ask_is_late_at()? > now {
            return None;
        }
        let ask = self.ask.as_mut()?;
        ask.asked_again = true;
        Some((ask.to.clone(), ask.packet.clone()))
    }

    pub(super) fn ask_is_late_at(&self) -> Option<Nanos> {
        let ask = self.ask.as_ref().filter(|ask| !ask.asked_again)?;
        Some(ask.at.saturating_add(PROBE_RTT.into()))
    }

    pub(super) fn connection(&self) -> Option<Connection> {
        self.liveliest().map(|line| line.connection.clone())
    }

    pub(super) fn close(&self, id: LineId, code: CloseCode) {
        if let Some(line) = self.lines.iter().find(|line| line.id == id) {
            code.close(&line.connection);
        }
    }

    pub(super) fn close_saying(&self, id: LineId, code: CloseCode, words: &'static str) {
        if let Some(line) = self.lines.iter().find(|line| line.id == id) {
            code.close_saying(&line.connection, words);
        }
    }

    pub(super) fn close_all(&self, code: CloseCode) {
        for line in &self.lines {
            code.close(&line.connection);
        }
    }

    /// One line for each time that a node stops being reachable, unless that is `expected`: waiting cures it,
    /// or this node is leaving.
    pub(super) fn tell(&mut self, node: &NodeId, expected: bool, error: &impl std::fmt::Display) {
        if expected || self.told {
            tracing::debug!(node_id = %node, %error, "a member was not reached");
        } else {
            self.told = true;
            tracing::warn!(node_id = %node, %error, "a member takes no gossip from this node");
        }
    }

    fn liveliest(&self) -> Option<&OpenLine> {
        self.lines
            .iter()
            .max_by_key(|line| (line.lively_at, line.id))
    }
}

impl OpenLine {
    /// Sends a packet; `false` if the connection is gone.
    fn send(&self, packet: &Packet) -> bool {
        match self.connection.send_datagram(packet.bytes.clone()) {
            Ok(()) => true,
            Err(SendDatagramError::ConnectionLost(_)) => false,
            Err(error) => {
                tracing::debug!(%error, "a gossip packet was not sent");
                true
            }
        }
    }
}
