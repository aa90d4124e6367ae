//! What comes from other nodes: packets, copies of their state, the ends of their connections.
//!
//! Invariant: a packet whose sender is not the node of the connection's certificate changes nothing.

use foca::{Codec as _, Header, Member, State};
use quinn::ConnectionError;
use tollgate_limit::{Nanos, NodeId};
use tollgate_wire::identity::{Identity, Phase};

use super::{Driver, Gossiped, Life};
use crate::{
    gossip::{
        codec::GossipCodec,
        copy::{self, Copied, CopyError},
        events::{Event, Line, StateAsked},
        identity::generation_after,
        joiner::Sought,
    },
    transport::{NodeConnection, close::CloseCode},
};

/// Nodes with other settings that are remembered; the list starts anew above it.
const MAX_TOLD: usize = 64;
/// Copies at a time; above it no more are started.
const MAX_COPIES: usize = 8;

impl Driver {
    pub(super) fn handle_packet(&mut self, now: Nanos, line: &Line, packet: &[u8]) {
        let mut rest = packet;
        let header: Header<Gossiped> = match GossipCodec.decode_header(&mut rest) {
            Ok(header) => header,
            Err(error) => {
                tracing::warn!(node_id = %line.node, %error, "refused a gossip packet: it is malformed");
                self.pool.close(line, CloseCode::Malformed);
                return;
            }
        };
        let sender = &header.src.0;
        if sender.node != line.node {
            tracing::warn!(
                node_id = %line.node,
                claimed = %sender.node,
                "refused a gossip packet: its sender is not the node of the certificate"
            );
            self.pool.close(line, CloseCode::Malformed);
            return;
        }
        self.pool.handle_heard(now, line, sender.boot);
        self.membership.handle_heard(now, &line.node);
        // With nobody left, whoever was given up and still speaks was not the one who was cut off.
        if self.foca.num_members() == 0 && self.is_down(sender) {
            self.renew(now, "was cut off");
        }
        if let Err(error) = self.foca.handle_data(packet, &mut self.outbox) {
            tracing::debug!(node_id = %line.node, %error, "a gossip packet was not taken");
        }
    }

    pub(super) fn handle_closed(&mut self, now: Nanos, line: &Line, error: &ConnectionError) {
        let Some(left) = self.pool.handle_closed(now, line, error) else {
            return;
        };
        let mut members = self.foca.iter_members().map(Member::id);
        let is_it = |member: &&Gossiped| member.0.node == line.node && member.0.boot == left;
        let member = members.find(is_it).cloned();
        drop(members);
        if let Some(member) = member {
            self.take_in(std::iter::once(Member::down(member)), true);
        }
    }

    pub(super) fn answer_state(&mut self, asked: StateAsked) {
        let StateAsked {
            line,
            theirs,
            answer,
        } = asked;
        if theirs != self.fingerprint {
            self.refuse_settings(&line);
            return;
        }
        let own = Member::alive(self.foca.identity().clone());
        let bytes = copy::answer(self.fingerprint, &own, self.foca.iter_membership_state());
        tracing::debug!(node_id = %line.node, bytes = bytes.len(), "a member copies the state");
        tokio::spawn(copy::write_answer(answer, bytes));
    }

    /// One line for each node, however often it comes back.
    fn refuse_settings(&mut self, line: &Line) {
        if self.told_settings.len() >= MAX_TOLD {
            self.told_settings.clear();
        }
        if self.told_settings.insert(line.node.clone()) {
            tracing::warn!(
                node_id = %line.node,
                "refused a node with other cluster settings (name, slots or hash key)"
            );
        }
        let words = "other cluster settings (name, slots or hash key)";
        self.pool.close_saying(line, CloseCode::Refused, words);
    }

    /// Copies the state of a member, if it is known and not being copied.
    pub(super) fn pull(&mut self, node: &NodeId) {
        let Some(member) = self.membership.member(node) else {
            return;
        };
        let identity = member.identity.clone();
        if identity.node == self.membership.own().node
            || self.copying.len() >= MAX_COPIES
            || !self.copying.insert(identity.node.clone())
        {
            return;
        }
        let open = self.pool.connection(&identity.node);
        let (transport, events) = (self.transport.clone(), self.events_in.clone());
        let fingerprint = self.fingerprint;
        tokio::spawn(async move {
            let node = identity.node.clone();
            let from = match open {
                Some(connection) => Ok(NodeConnection {
                    connection,
                    node: node.clone(),
                }),
                None => transport.connect_gossip(identity.peer, Some(&node)).await,
            };
            let result = match from {
                Ok(from) => copy::fetch(from, fingerprint).await,
                Err(error) => Err(error.into()),
            };
            if events.send(Event::Copied { node, result }).await.is_err() {
                tracing::trace!("control has ended");
            }
        });
    }

    pub(super) fn handle_copied(
        &mut self,
        now: Nanos,
        node: &NodeId,
        result: Result<Copied, CopyError>,
    ) {
        self.copying.remove(node);
        match result {
            Ok(copied) => self.take_state(now, copied),
            Err(error) => tracing::debug!(node_id = %node, %error, "a state was not copied"),
        }
    }

    pub(super) fn handle_sought(&mut self, now: Nanos, sought: Sought) {
        match sought {
            Sought::Answer {
                result: Ok(copied), ..
            } => self.take_state(now, *copied),
            Sought::Answer {
                address,
                result: Err(error),
            } => {
                if matches!(self.life, Life::Member) {
                    self.joiner.handle_failure(now, address, error);
                } else {
                    tracing::debug!(%address, %error, "a seed was not reached by a leaving node");
                }
            }
            Sought::NoAddress { host, error } => self.joiner.handle_unknown_name(host, &error),
            Sought::Over { complete } => self.joiner.handle_round_over(now, complete),
        }
    }

    /// Takes in what another member knows, and tells it of this node.
    fn take_state(&mut self, now: Nanos, copied: Copied) {
        let Copied {
            from,
            answerer,
            members,
        } = copied;
        self.pool.add(now, from);
        let own = self.membership.own().clone();
        let is_up = |member: &&Member<Gossiped>| member.state() != State::Down;
        let is_own = |member: &&Member<Gossiped>| {
            member.id().0.node == own.node || member.id().0.peer == own.peer
        };
        for member in members.iter().filter(is_up) {
            self.notice_twin(now, &member.id().0);
        }
        let newest_own = members
            .iter()
            .filter(is_own)
            .map(|member| member.id().0.generation)
            .max();
        if newest_own.is_some_and(|newest| newest > own.generation) {
            self.outdo(newest_own.unwrap_or_default());
        } else if self.foca.num_members() == 0 && self.is_down(&answerer) {
            self.renew(now, "was cut off");
        }
        let knows_active = members
            .iter()
            .filter(is_up)
            .any(|member| member.id().0.phase == Phase::Active);
        // What others remember of earlier identities of this node is of no use to it.
        let own = self.membership.own().clone();
        let others = members.into_iter().filter(|member| {
            member.id().0 == own
                || (member.id().0.node != own.node && member.id().0.peer != own.peer)
        });
        self.take_in(others, false);
        if let Err(error) = self
            .foca
            .announce(Gossiped(answerer.clone()), &mut self.outbox)
        {
            tracing::debug!(%error, "this node was not announced");
        }
        self.drain(now);
        self.joiner.handle_answer(now, &answerer.node, knows_active);
    }

    /// Another generation for this node, above one that it is known to have had: its clock went back.
    fn outdo(&mut self, newest: u64) {
        let own = self.membership.own();
        let generation = generation_after(newest, &self.clock);
        let outdone = Identity {
            generation,
            ..own.clone()
        };
        tracing::warn!(node_id = %outdone.node, generation, "this node was known with a later generation");
        if let Err(error) = self
            .foca
            .change_identity(Gossiped(outdone.clone()), &mut self.outbox)
        {
            tracing::warn!(%error, "the new generation was not told");
        }
        self.take_in(std::iter::empty(), true);
        self.be(outdone);
    }
}
