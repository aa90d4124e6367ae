//! Carries out what the motion says, and knows the streams by which it is said.
//!
//! Every event goes in under one lock, and what follows from it is done before the lock is free again: so no slot is
//! opened here before what was closed elsewhere has come, whoever tells of it. Nothing in here waits.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::{Notify, futures::Notified};
use tollgate_cluster::{Motion, MotionAction, OwedSlots, Reports, SlotStates, TakenIn, take_in};
use tollgate_limit::{Nanos, NodeId, Series, SlotId, SlotSet, Store};
use tollgate_wire::{identity::BootId, replica::Order};
use tracing::debug;

use super::{
    followers::{Follower, Followers},
    orders::Orders,
    report::owed_slots,
    seen::{Seen, motion_view},
    shared::Shared,
};
use crate::{FollowerReport, ReplicaReport, view::View};

/// What moves slots and counts between this node and the others.
#[derive(Debug)]
pub(crate) struct Mover {
    motion: Mutex<Motion>,
    /// The view that the motion goes by.
    seen: Mutex<Seen>,
    /// The streams to those that this node follows.
    sources: Mutex<BTreeMap<NodeId, Arc<Orders>>>,
    /// The streams of those that follow this node.
    followers: Mutex<Followers>,
    /// Held while what was taken out of the store goes to the followers: nothing is given in between, or its
    /// last word would come first.
    changing: Mutex<()>,
    /// Slots in which this node counted without holding them.
    pub(super) owed: Arc<OwedSlots>,
    /// Those in which it ever did, and has not forgotten it.
    stood_in: Mutex<SlotSet>,
    /// The same of the local shares, which are reported when they have rested.
    shared: Mutex<Shared>,
    pub(super) reports: Mutex<Reports>,
    /// What the motion knows of that.
    told_owed: Mutex<SlotSet>,
    moved: Notify,
    timer: Notify,
    pub(crate) counters: MoverCounters,
}

/// What the moving of counts counts.
#[derive(Debug, Default)]
pub(crate) struct MoverCounters {
    /// Series sent to followers.
    pub(crate) sent: AtomicU64,
    /// Slots handed over: the last word on them was sent.
    pub(crate) handed_over: AtomicU64,
    /// Series of others that were taken in.
    pub(crate) taken: AtomicU64,
    /// Of these, those that came in a report.
    pub(crate) reconciled: AtomicU64,
    /// Series of others that could not be kept.
    pub(crate) refused: AtomicU64,
}

impl Mover {
    /// Nothing is held, nobody follows. Also where readers see how each slot is held.
    pub(crate) fn new() -> (Self, Arc<SlotStates>) {
        let motion = Motion::new();
        let reports = Reports::new();
        let states = motion.states();
        let mover = Self {
            motion: Mutex::new(motion),
            seen: Mutex::default(),
            sources: Mutex::default(),
            followers: Mutex::default(),
            changing: Mutex::default(),
            owed: reports.marked(),
            stood_in: Mutex::default(),
            shared: Mutex::default(),
            reports: Mutex::new(reports),
            told_owed: Mutex::default(),
            moved: Notify::new(),
            timer: Notify::new(),
            counters: MoverCounters::default(),
        };
        (mover, states)
    }

    /// Tells of the next change; of those after this call at the latest.
    pub(crate) fn moved(&self) -> Notified<'_> {
        self.moved.notified()
    }

    /// The view has changed.
    pub(crate) fn handle_view(&self, store: &Store, now: Nanos, view: &View) {
        let seen = Seen::of(view);
        let view = motion_view(view);
        self.handle(store, now, |motion| {
            motion.handle_view(now, &view);
            *self.seen.lock() = seen;
        });
    }

    /// Lets the motion take an event, and does what it says.
    pub(super) fn handle(&self, store: &Store, now: Nanos, event: impl FnOnce(&mut Motion)) {
        let mut motion = self.motion.lock();
        event(&mut motion);
        while let Some(action) = motion.poll_action() {
            self.carry_out(store, now, action);
        }
        drop(motion);
        self.moved.notify_waiters();
        self.timer.notify_one();
    }

    fn carry_out(&self, store: &Store, now: Nanos, action: MotionAction) {
        match action {
            MotionAction::Open(slots) => store.open(&slots),
            MotionAction::Close(slots) => store.close(&slots),
            MotionAction::Forget(slots) => {
                let forgotten = store.forget(&slots);
                self.stood_in.lock().subtract(&slots);
                debug!(slots = slots.len(), forgotten, "forgot slots of others");
            }
            MotionAction::Subscribe(source, slots) => self.order(&source, Order::Subscribe(slots)),
            MotionAction::Take(source, slots) => self.order(&source, Order::Take(slots)),
            MotionAction::Acked(source, slots) => self.order(&source, Order::Acked(slots)),
            MotionAction::Offer(member, slots) => self.order(&member, Order::Offer(slots)),
            MotionAction::Give(follower, slots) => self.give(store, now, &follower, &slots),
        }
    }

    /// Without a stream it is not sent: the motion orders again when there is one.
    fn order(&self, source: &NodeId, order: Order) {
        match self.sources.lock().get(source) {
            Some(orders) => orders.push(order),
            None => debug!(%source, "no stream to order from"),
        }
    }

    /// What is ordered from a source, if there is a stream to it.
    pub(super) fn orders_to(&self, source: &NodeId) -> Option<Arc<Orders>> {
        self.sources.lock().get(source).cloned()
    }

    /// Whether there is one that takes more.
    pub(super) fn can_order(&self, source: &NodeId) -> bool {
        let sources = self.sources.lock();
        sources.get(source).is_some_and(|orders| orders.has_room())
    }

    fn give(&self, store: &Store, now: Nanos, follower: &NodeId, slots: &SlotSet) {
        let known = self.followers.lock().latest(follower);
        match known {
            Some(known) => {
                let changing = self.changing.lock();
                known.source.lock().give(now, store, slots);
                drop(changing);
                known.ready.notify_one();
            }
            // It takes them again when it is back.
            None => debug!(%follower, "a follower went away before it was given slots"),
        }
    }

    /// A stream to a source is up.
    pub(super) fn connect(
        &self,
        store: &Store,
        now: Nanos,
        (source, boot): (&NodeId, BootId),
    ) -> Arc<Orders> {
        let orders = Arc::new(Orders::default());
        let mut sources = self.sources.lock();
        let known = sources.insert(source.clone(), Arc::clone(&orders));
        drop(sources);
        self.reports.lock().handle_disconnected(source);
        self.handle(store, now, |motion| {
            if known.is_some() {
                motion.handle_disconnected(now, source);
            }
            motion.handle_connected(now, source, boot);
        });
        orders
    }

    /// That stream is gone.
    pub(super) fn disconnect(
        &self,
        store: &Store,
        now: Nanos,
        (source, orders): (&NodeId, &Arc<Orders>),
    ) {
        let mut sources = self.sources.lock();
        let is_latest = sources
            .get(source)
            .is_some_and(|known| Arc::ptr_eq(known, orders));
        if is_latest {
            sources.remove(source);
        }
        drop(sources);
        if is_latest {
            self.reports.lock().handle_disconnected(source);
            self.handle(store, now, |motion| motion.handle_disconnected(now, source));
        }
    }

    /// A follower's stream is up; it takes the place of an older one.
    pub(super) fn admit(
        &self,
        store: &Store,
        now: Nanos,
        (follower, boot): (&NodeId, BootId),
    ) -> Arc<Follower> {
        let mut admitted = None;
        self.handle(store, now, |motion| {
            // With the motion's lock held: what it is given next goes by this stream.
            admitted = Some(self.followers.lock().add(follower, boot));
            motion.handle_followed(now, follower, boot);
        });
        admitted.unwrap_or_default()
    }

    /// That stream is gone. Another one that lives takes its place: what was given by this one is given again.
    pub(super) fn dismiss(
        &self,
        store: &Store,
        now: Nanos,
        (follower, admitted): (&NodeId, &Arc<Follower>),
    ) {
        self.handle(store, now, |motion| {
            if let Some(boot) = self.followers.lock().remove(follower, admitted) {
                motion.handle_followed(now, follower, boot);
            }
        });
    }

    /// Sends what is due to those who follow its slots; whether there may be more.
    pub(super) fn send_due(
        &self,
        store: &Store,
        now: Nanos,
        (most, series): (usize, &mut Vec<Series>),
    ) -> bool {
        let changing = self.changing.lock();
        let has_more = store.take_due(now, most, series);
        self.tell_followers(now, series);
        drop(changing);
        has_more
    }

    /// Merges what another node has counted; who follows this node is told of what is new. How much that is.
    pub(super) fn take_in(&self, store: &Store, now: Nanos, series: &[Series]) -> usize {
        let changing = self.changing.lock();
        let mut taken = Vec::new();
        for one in series {
            let TakenIn {
                taken: new,
                refused,
                ..
            } = take_in(store, now, std::slice::from_ref(one));
            if refused > 0 {
                self.counters.refused.fetch_add(1, Ordering::Relaxed);
            }
            if new > 0 {
                self.counters.taken.fetch_add(1, Ordering::Relaxed);
                taken.push(one.clone());
            }
        }
        self.tell_followers(now, &taken);
        drop(changing);
        taken.len()
    }

    /// Series have changed here: those who follow their slots are told.
    fn tell_followers(&self, now: Nanos, series: &[Series]) {
        if series.is_empty() {
            return;
        }
        let followers = self.followers.lock().all();
        for follower in followers {
            follower.source.lock().handle_changed(now, series);
            follower.ready.notify_one();
        }
    }

    /// This node has counted in these slots without holding them.
    pub(crate) fn owe(&self, slots: impl IntoIterator<Item = SlotId>) {
        let mut stood_in = self.stood_in.lock();
        for slot in slots {
            stood_in.insert(slot);
            self.owed.mark(slot);
        }
    }

    /// Whether it has, and still knows what: only it can give that back.
    pub(crate) fn has_stood_in(&self, slot: SlotId) -> bool {
        self.stood_in.lock().contains(slot)
    }

    /// This node's shares have counted in these slots. What a share has counted is taken out of it for the report,
    /// and then it starts anew: so not before it has shown whether the owner answers.
    pub(crate) fn owe_shares(&self, slots: impl IntoIterator<Item = SlotId>) {
        Extend::extend(&mut self.shared.lock().fresh, slots);
    }

    /// What the shares have counted has rested for once more.
    pub(super) fn rest_shares(&self) {
        let rested = self.shared.lock().rest();
        self.owed.mark_all(&rested);
    }

    /// Tells the motion what is still to be reported, if there is or was something.
    pub(super) fn tell_owed(&self, store: &Store, now: Nanos) {
        let owed = owed_slots(&self.reports.lock());
        let mut told = self.told_owed.lock();
        if *told != owed {
            told.clone_from(&owed);
            drop(told);
            self.handle(store, now, |motion| motion.handle_owed(now, &owed));
        }
    }

    /// When the motion wants to be told of the time, if it does.
    pub(super) fn poll_timeout(&self) -> Option<Nanos> {
        self.motion.lock().poll_timeout()
    }

    /// Waits until that may be another instant. Cancel safe.
    pub(super) async fn timer_changed(&self) {
        self.timer.notified().await;
    }

    /// While joining: whether the counts of all slots to come are here, by just this view.
    pub(crate) fn is_warm_for(&self, view: &View) -> bool {
        let motion = self.motion.lock();
        *self.seen.lock() == Seen::of(view) && motion.is_warm()
    }

    fn is_drained_for(&self, view: &View) -> bool {
        let motion = self.motion.lock();
        *self.seen.lock() == Seen::of(view) && motion.is_drained()
    }

    /// While leaving: waits until all slots are handed over, by the view that stands then.
    pub(crate) async fn drained(&self, view: impl Fn() -> Arc<View>) {
        loop {
            let moved = self.moved();
            if self.is_drained_for(&view()) {
                return;
            }
            moved.await;
        }
    }

    /// What a follower is still to be told; `None` if that member is none.
    pub(crate) fn behind(&self, now: Nanos, follower: &NodeId) -> Option<FollowerReport> {
        let follower = self.followers.lock().latest(follower)?;
        let source = follower.source.lock();
        let (waiting_series, slots_to_copy) = source.behind();
        let since = source.waits_since().unwrap_or(now);
        Some(FollowerReport {
            lag: now.saturating_sub(since),
            waiting_series,
            slots_to_copy,
        })
    }

    /// Counts on their way.
    pub(crate) fn report(&self) -> ReplicaReport {
        let (incoming_slots, outgoing_slots) = self.moving();
        // One lock after the other, never two at once.
        let is_warm = self.motion.lock().is_warm();
        let owed_slots = owed_slots(&self.reports.lock()).len();
        let counters = &self.counters;
        ReplicaReport {
            incoming_slots,
            outgoing_slots,
            is_warm,
            sent: counters.sent.load(Ordering::Relaxed),
            handed_over_slots: counters.handed_over.load(Ordering::Relaxed),
            taken_in: counters.taken.load(Ordering::Relaxed),
            reconciled: counters.reconciled.load(Ordering::Relaxed),
            lost: counters.refused.load(Ordering::Relaxed),
            owed_slots,
        }
    }

    /// Slots on their way to this node, and away from it.
    pub(crate) fn moving(&self) -> (usize, usize) {
        self.motion.lock().moving()
    }
}
