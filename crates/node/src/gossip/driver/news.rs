//! What follows from an event: packets, timers, news of members, and the view.
//!
//! Invariant: the membership hears of members from the gossip library alone; after a state was copied
//! whoever is not in it any more is doubted.

use foca::{OwnedNotification, State};
use tollgate_cluster::MemberState;
use tollgate_limit::Nanos;
use tollgate_wire::identity::{Identity, Phase};

use super::{Driver, Life};
use crate::gossip::{
    codec::{GossipCodec, expects_answer},
    events::Warm,
    log,
    pool::Packet,
    timing,
};

impl Driver {
    /// Does what the library wants done.
    pub(super) fn drain(&mut self, now: Nanos) {
        while self.outbox.backlog() > 0 {
            while let Some((after, timer)) = self.outbox.to_schedule() {
                self.timers.set(now.saturating_add(after.into()), timer);
            }
            while let Some((to, bytes)) = self.outbox.to_send() {
                let own = self.membership.own();
                // An old identity of this node may be among those that are down.
                if to.0.node != own.node && to.0.peer != own.peer {
                    let asks = asks(&bytes);
                    self.pool.send(now, &to.0, Packet { bytes, asks });
                }
            }
            while let Some(news) = self.outbox.to_notify() {
                self.handle_news(now, news);
            }
        }
    }

    /// Brings joining, membership and view up to date.
    pub(super) fn settle(&mut self, now: Nanos) {
        self.drain(now);
        self.publish_news(now);
        // After what is known was published: it is by that view that the data plane must be warm.
        if self.warm.is_some_and(|warm| self.is_as_now(warm)) {
            self.joiner.handle_warm();
        }
        if matches!(self.life, Life::Member)
            && self.joiner.is_done()
            && self.membership.own().phase == Phase::Joining
        {
            self.doubt_unknown(now);
            self.enter(Phase::Active);
            self.drain(now);
            self.publish_news(now);
        }
    }

    fn publish_news(&mut self, now: Nanos) {
        self.resize();
        self.weigh_doubts(now);
        while let Some(change) = self.membership.poll_change() {
            log::tell(&change);
            self.unpublished = true;
        }
        if std::mem::take(&mut self.unpublished) {
            self.publisher.publish(&self.membership);
        }
    }

    /// Whether the data plane was warm by what is known now.
    fn is_as_now(&self, warm: Warm) -> bool {
        let placement = || self.membership.placement().fingerprint();
        warm.generation == self.membership.own().generation && warm.placement == placement()
    }

    fn handle_news(&mut self, now: Nanos, news: OwnedNotification<super::Gossiped>) {
        match news {
            OwnedNotification::MemberUp(member) => self.handle_up(now, member.0),
            OwnedNotification::MemberDown(member) => self.membership.handle_down(now, &member.0),
            OwnedNotification::Rename(_was, is) => {
                let is_up = self.foca.iter_members().any(|member| *member.id() == is);
                if is_up {
                    self.handle_up(now, is.0);
                }
            }
            OwnedNotification::Defunct => self.renew(now, "was given up by the others"),
            // It never renews by itself.
            OwnedNotification::Rejoin(_) => {}
            OwnedNotification::Active => tracing::debug!("gossip has somebody to talk to"),
            OwnedNotification::Idle => tracing::debug!("gossip has nobody to talk to"),
        }
    }

    fn handle_up(&mut self, now: Nanos, identity: Identity) {
        if identity.phase == Phase::Active {
            self.joiner.handle_active_known(now);
        }
        self.notice_twin(now, &identity);
        self.membership.handle_up(now, identity);
    }

    /// Doubts whoever the library does not know to be up: remembered from before a renewal.
    pub(super) fn doubt_unknown(&mut self, now: Nanos) {
        let peers = self.membership.peers().map(|member| member.identity);
        let is_up = |identity: &&Identity| {
            let mut up = self.foca.iter_members().map(|member| &member.id().0.node);
            up.any(|node| *node == identity.node)
        };
        let unknown: Vec<Identity> = peers.filter(|identity| !is_up(identity)).cloned().collect();
        for identity in unknown {
            self.membership.handle_down(now, &identity);
        }
    }

    /// Decides on doubts with all evidence that there is.
    fn weigh_doubts(&mut self, now: Nanos) {
        let doubted = self.membership.peers().filter(|member| match member.state {
            MemberState::DownPending => true,
            MemberState::Up => false,
        });
        let doubted: Vec<_> = doubted.map(|member| member.identity.node.clone()).collect();
        for node in doubted {
            let heard = [
                self.last_heard.last_heard(&node),
                self.pool.last_heard(&node),
            ];
            if let Some(heard) = heard.into_iter().flatten().max() {
                self.membership.handle_heard(heard, &node);
            }
        }
        self.membership.handle_timeout(now);
    }

    /// Suspicion and the spreading of news depend on the number of members.
    fn resize(&mut self) {
        let members = self.foca.num_members().saturating_add(1);
        if members == self.sized_for {
            return;
        }
        self.sized_for = members;
        if let Err(error) = self.foca.set_config(timing::config(members)) {
            tracing::warn!(%error, "the gossip settings were not changed");
        }
    }

    /// Hands members to the library.
    pub(super) fn take_in(
        &mut self,
        members: impl Iterator<Item = foca::Member<super::Gossiped>>,
        spread: bool,
    ) {
        if let Err(error) = self.foca.apply_many(members, spread, &mut self.outbox) {
            tracing::warn!(%error, "members were not taken in");
        }
    }

    /// Whether the library knows exactly this identity to be down.
    pub(super) fn is_down(&self, identity: &Identity) -> bool {
        let mut known = self.foca.iter_membership_state();
        known.any(|member| member.state() == State::Down && member.id().0 == *identity)
    }
}

fn asks(mut packet: &[u8]) -> bool {
    let header = foca::Codec::decode_header(&mut GossipCodec, &mut packet);
    header.is_ok_and(|header| expects_answer(&header.message))
}
