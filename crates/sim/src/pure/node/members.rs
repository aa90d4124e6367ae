//! Who is a member, as one node knows it, and the phases of its own life.

use std::sync::Arc;

use tollgate_cluster::{JOIN_TIMEOUT, MotionView, Placement};
use tollgate_limit::{Nanos, SlotId};
use tollgate_wire::identity::{BootId, Phase};

use super::{Node, Output, Timer};
use crate::pure::{
    oracle::News,
    placements::{name_of, node_of, placement_of},
};

/// How long a node that leaves waits for its slots to be taken.
const LEAVE_TIMEOUT: Nanos = Nanos::from_millis(10_000);

/// What one node knows of the members.
#[derive(Debug)]
pub(super) struct View {
    members: Vec<News>,
    phase: Phase,
    placement: Arc<Placement>,
    /// When it was told to leave.
    leaves: Option<Nanos>,
}

impl View {
    pub(super) fn new(nodes: usize, phase: Phase) -> Self {
        let unknown = |member| News {
            member,
            version: 0,
            state: None,
        };
        Self {
            members: (0..nodes).map(unknown).collect(),
            phase,
            placement: placement_of(std::iter::empty()),
            leaves: None,
        }
    }

    pub(super) const fn placement(&self) -> &Arc<Placement> {
        &self.placement
    }

    pub(super) const fn phase(&self) -> Phase {
        self.phase
    }

    pub(super) fn known(&self) -> Vec<News> {
        self.members.clone()
    }

    pub(super) fn boot_of(&self, member: usize) -> Option<BootId> {
        let (boot, _phase) = self.members.get(member)?.state?;
        Some(boot)
    }

    pub(super) fn owner(&self, slot: SlotId) -> Option<usize> {
        let owner = self.placement.owner(slot)?;
        self.placement.member(owner).and_then(node_of)
    }

    pub(super) fn standby(&self, slot: SlotId) -> Option<usize> {
        let standby = self.placement.standby(slot)?;
        self.placement.member(standby).and_then(node_of)
    }

    /// Takes news in; whether they are news.
    fn learn(&mut self, news: News) -> bool {
        let Some(known) = self.members.get_mut(news.member) else {
            return false;
        };
        let is_newer = news.version > known.version;
        let changes = is_newer && news.state != known.state;
        if is_newer {
            *known = news;
        }
        changes
    }

    fn active(&self, me: usize) -> impl Iterator<Item = usize> {
        let others = self.members.iter().filter(move |it| it.member != me);
        let active = others.filter(|it| matches!(it.state, Some((_, Phase::Active))));
        let own = (self.phase == Phase::Active).then_some(me);
        active.map(|it| it.member).chain(own)
    }
}

impl Node {
    pub(super) fn start(&mut self, now: Nanos, known: &[News]) {
        for news in known {
            self.view.learn(*news);
        }
        if self.view.phase == Phase::Joining {
            let at = now.saturating_add(JOIN_TIMEOUT);
            self.out.push(Output::Timer(at, Timer::Join));
        }
        self.look_again(now);
    }

    pub(super) fn news(&mut self, now: Nanos, news: News) {
        if news.member != self.me && self.view.learn(news) {
            self.look_again(now);
        }
    }

    /// The view has changed.
    pub(super) fn look_again(&mut self, now: Nanos) {
        let me = self.me;
        self.view.placement = placement_of(self.view.active(me));
        let others = self.view.members.iter().filter(|it| it.member != me);
        let members = others.filter_map(|it| {
            let (boot, phase) = it.state?;
            Some((name_of(it.member), boot, phase))
        });
        let joining = self.view.phase == Phase::Joining;
        let prospective = joining.then(|| placement_of(self.view.active(me).chain([me])));
        let view = MotionView {
            placement: Arc::clone(&self.view.placement),
            own: self.view.placement.index_of(&self.name),
            phase: self.view.phase,
            prospective,
            members: members.collect(),
        };
        self.motion.handle_view(now, &view);
        self.move_on(now);
    }

    /// Whether the own phase is to be another by now.
    pub(super) fn grow(&mut self, now: Nanos) {
        match self.view.phase {
            Phase::Joining if self.motion.is_warm() => self.turn(now, Phase::Active),
            Phase::Joining | Phase::Active => {}
            Phase::Leaving => {
                let late = self
                    .view
                    .leaves
                    .is_some_and(|at| now >= at.saturating_add(LEAVE_TIMEOUT));
                let told =
                    self.motion.is_drained() && !self.copies.owes() && self.entries.is_empty();
                if told || late {
                    self.out.push(Output::Left(told));
                }
            }
        }
    }

    pub(super) fn join_anyway(&mut self, now: Nanos) {
        if self.view.phase == Phase::Joining {
            self.turn(now, Phase::Active);
        }
    }

    pub(super) fn leave(&mut self, now: Nanos) {
        self.view.leaves = Some(now);
        self.out.push(Output::Timer(
            now.saturating_add(LEAVE_TIMEOUT),
            Timer::Motion,
        ));
        self.turn(now, Phase::Leaving);
    }

    /// It was taken for dead: it joins again, and keeps what it counted.
    pub(super) fn renew(&mut self, now: Nanos) {
        if self.view.phase == Phase::Active {
            let at = now.saturating_add(JOIN_TIMEOUT);
            self.out.push(Output::Timer(at, Timer::Join));
            self.turn(now, Phase::Joining);
        }
    }

    fn turn(&mut self, now: Nanos, phase: Phase) {
        self.view.phase = phase;
        self.out.push(Output::Phase(phase));
        self.look_again(now);
    }
}
