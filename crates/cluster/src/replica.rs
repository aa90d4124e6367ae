//! Replication: what one follower is still to be told, and what is told of that next.
//!
//! A follower wants some slots. What changes in them waits in a queue; slots of which it was told nothing yet,
//! or that the queue had no room for, are copied from the store when their turn comes. Slots that are handed
//! over are closed at once; the rest of their counts goes out behind all that waited, and the last word on them
//! behind that. A copy is said to be complete only of slots that this node holds: of others somebody else
//! counts, of which it may know nothing.
//!
//! Pure but for the store, which is asked for what it holds. Knows nothing of streams, owners and views.
//! Invariants: the last word on a slot comes when all that this node counted there has gone out on this
//! stream, and it is never dropped; the queue has at most [`MAX_QUEUED`] series.

mod batches;
mod taken;

use std::collections::VecDeque;

use tollgate_limit::{Nanos, Series, SlotSet, Store};
use tollgate_wire::replica::Delivery;

use self::batches::Batches;
pub use self::taken::{TakenIn, take_in};
use crate::sabotage::{self, Sabotage};

/// The most series that wait for one follower; above it their slots are copied again later.
pub const MAX_QUEUED: usize = 65_536;

/// The most orders to hand slots over that wait for one follower; above it they join the last.
const MAX_GIVEN: usize = 256;

/// The most answers to reports that wait for one follower; above it a report is not answered, and so comes
/// again.
const MAX_REPORTED: usize = 4_096;

/// The shards that are looked at in one step, and the series that are enough for once: what is told in one
/// piece costs the follower one step, however many slots it is about.
const SHARDS_A_STEP: usize = 64;
const ENOUGH_SERIES: usize = 4_096;

/// What one follower gets of this node.
///
/// Events: the `handle_*` and [`give`](Self::give). Then call [`poll_delivery`](Self::poll_delivery) until
/// `None`, whenever the stream takes more. What [`Store::take_due`] gave must have gone to
/// [`handle_changed`](Self::handle_changed) before `give` is called: one lock for both.
#[derive(Debug, Default)]
pub struct Source {
    /// What the follower wants.
    wanted: SlotSet,
    /// Of that, what it has all of, or has waiting in front of whatever comes next.
    complete: SlotSet,
    /// Of that, what is still to be copied.
    recopy: SlotSet,
    /// Of that, what was copied while this node did not decide there: no copy is complete that lacks what
    /// another counts.
    unheld: SlotSet,
    queue: VecDeque<Waiting>,
    queued_series: usize,
    queued_reports: usize,
    queued_given: usize,
    /// The slots of the `Last` in the queue.
    given: SlotSet,
    ready: Batches,
    /// Whether the queue had its turn before the copies.
    was_queue: bool,
    /// What is held back by sabotage.
    held_back: VecDeque<(Nanos, Series)>,
}

/// What waits, in order.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all that waits are series"
)]
enum Waiting {
    /// A series, since when.
    Changed(Nanos, Series),
    /// Slots that are handed over.
    Last(SlotSet),
    Reported(u64),
}

impl Source {
    /// A follower that ordered nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The follower wants just these slots.
    pub fn handle_subscribe(&mut self, slots: &SlotSet) {
        self.recopy.extend(&slots.without(&self.wanted));
        self.recopy.intersect(slots);
        self.complete.intersect(slots);
        self.unheld.intersect(slots);
        self.wanted = slots.clone();
    }

    /// Series changed; those that the follower wants are queued.
    pub fn handle_changed(&mut self, now: Nanos, series: &[Series]) {
        if sabotage::is(Sabotage::NoReplication) {
            return;
        }
        for series in series {
            let slot = series.key.slot();
            if self.given.contains(slot) {
                // Its slot is sealed later: then all of it goes out.
                self.complete.remove(slot);
                continue;
            }
            // What is still to be copied will be copied as it is by then.
            if !self.wanted.contains(slot) || self.recopy.contains(slot) {
                continue;
            }
            if self.queued_series >= MAX_QUEUED {
                self.recopy.insert(slot);
                self.complete.remove(slot);
                continue;
            }
            self.queued_series = self.queued_series.saturating_add(1);
            self.queue.push_back(Waiting::Changed(now, series.clone()));
        }
    }

    /// Closes slots in the store and makes what the follower lacks its last delivery on them.
    pub fn give(&mut self, now: Nanos, store: &Store, slots: &SlotSet) {
        store.close(slots);
        let slots = slots.without(&self.given);
        if slots.is_empty() {
            return;
        }
        self.given.extend(&slots);
        if sabotage::is(Sabotage::FinalAfterRedirect) {
            self.hold_back(now, store, &slots);
        }
        if self.queued_given >= MAX_GIVEN
            && let Some(last) = self.last_given()
        {
            last.extend(&slots);
            // What waits behind it goes out with it.
            self.complete.subtract(&slots);
            return;
        }
        self.queued_given = self.queued_given.saturating_add(1);
        self.queue.push_back(Waiting::Last(slots));
    }

    /// A report was taken in.
    pub fn handle_reported(&mut self, number: u64) {
        if self.queued_reports < MAX_REPORTED {
            self.queued_reports = self.queued_reports.saturating_add(1);
            self.queue.push_back(Waiting::Reported(number));
        }
    }

    /// What to send next; call again when it is sent.
    pub fn poll_delivery(&mut self, now: Nanos, store: &Store) -> Option<Delivery> {
        self.copy_opened(store);
        while self.ready.is_empty() {
            self.release(now);
            let copies_wait = !self.recopy.is_empty();
            let is_turn = !(self.queue.is_empty() || self.was_queue && copies_wait);
            self.was_queue = is_turn;
            if is_turn {
                self.send_queued(now, store);
            } else if copies_wait {
                self.copy_some(now, store);
            } else {
                break;
            }
        }
        self.ready.pop()
    }

    /// Since when the oldest change waits.
    #[must_use]
    pub fn waits_since(&self) -> Option<Nanos> {
        let held_back = self.held_back.iter().map(|(since, _)| *since);
        let queued = self.queue.iter().filter_map(|waiting| match waiting {
            Waiting::Changed(since, _) => Some(*since),
            Waiting::Last(_) | Waiting::Reported(_) => None,
        });
        queued.chain(held_back).next()
    }

    /// Series that wait, and slots that are still to be copied.
    #[must_use]
    pub fn behind(&self) -> (usize, usize) {
        (self.queued_series, self.recopy.len())
    }

    fn last_given(&mut self) -> Option<&mut SlotSet> {
        let mut waiting = self.queue.iter_mut().rev();
        waiting.find_map(|waiting| match waiting {
            Waiting::Last(slots) => Some(slots),
            Waiting::Changed(..) | Waiting::Reported(_) => None,
        })
    }

    /// Sends what waits at the front.
    fn send_queued(&mut self, now: Nanos, store: &Store) {
        match self.queue.pop_front() {
            Some(Waiting::Changed(since, series)) => self.send_changed(now, since, series),
            Some(Waiting::Last(slots)) => self.send_last(now, store, slots),
            Some(Waiting::Reported(number)) => {
                self.queued_reports = self.queued_reports.saturating_sub(1);
                self.ready.close(Delivery::Reported(number));
            }
            None => {}
        }
    }

    /// A batch of what waits.
    fn send_changed(&mut self, now: Nanos, since: Nanos, series: Series) {
        let mut next = Some((since, series));
        while let Some((since, mut series)) = next.take() {
            self.queued_series = self.queued_series.saturating_sub(1);
            let waited = now.saturating_sub(since).as_nanos();
            series.clock = series.clock.wrapping_add(waited);
            if self.ready.push(series) {
                break;
            }
            if matches!(self.queue.front(), Some(Waiting::Changed(..)))
                && let Some(Waiting::Changed(since, series)) = self.queue.pop_front()
            {
                next = Some((since, series));
            }
        }
        self.ready.flush();
    }

    /// The rest of some of the slots that are handed over, and the last word on them.
    fn send_last(&mut self, now: Nanos, store: &Store, mut slots: SlotSet) {
        let mut series = Vec::new();
        let part = in_steps(&slots, |step| {
            if !sabotage::is(Sabotage::FinalAfterRedirect) {
                store.seal(now, &step.common(&self.complete), false, &mut series);
                store.seal(now, &step.without(&self.complete), true, &mut series);
            }
            series.len()
        });
        slots.subtract(&part);
        self.ready.extend(series);
        let copied = part.common(&self.recopy);
        if !copied.is_empty() {
            self.ready.close(Delivery::Copied(copied));
        }
        self.recopy.subtract(&part);
        self.complete.extend(&part.common(&self.wanted));
        self.given.subtract(&part);
        self.ready.close(Delivery::Final(part));
        if slots.is_empty() {
            self.queued_given = self.queued_given.saturating_sub(1);
        } else {
            self.queue.push_front(Waiting::Last(slots));
        }
    }

    /// What has been opened since it was copied is copied again, and then complete.
    fn copy_opened(&mut self, store: &Store) {
        if self.unheld.is_empty() {
            return;
        }
        let opened = store.opened(&self.unheld);
        self.unheld.subtract(&opened);
        self.complete.subtract(&opened);
        self.recopy.extend(&opened);
    }

    /// All that is held of some of the slots that are to be copied.
    fn copy_some(&mut self, now: Nanos, store: &Store) {
        let mut series = Vec::new();
        // What is opened meanwhile is copied again.
        let held = store.opened(&self.recopy);
        let part = in_steps(&self.recopy, |step| {
            if !sabotage::is(Sabotage::NoReplication) {
                store.export(now, step, &mut series);
            }
            series.len()
        });
        self.ready.extend(series);
        self.recopy.subtract(&part);
        if !sabotage::is(Sabotage::NoReplication) {
            self.complete.extend(&part);
        }
        self.unheld.extend(&part.without(&held));
        let copied = part.common(&held);
        if copied.is_empty() {
            self.ready.flush();
        } else {
            self.ready.close(Delivery::Copied(copied));
        }
    }

    /// Sabotage: what should go before the last word goes long after it.
    fn hold_back(&mut self, now: Nanos, store: &Store, slots: &SlotSet) {
        let mut series = Vec::new();
        store.seal(now, slots, true, &mut series);
        let until = now.saturating_add(HELD_BACK);
        let held_back = series.into_iter().map(|series| (until, series));
        self.held_back.extend(held_back);
    }

    fn release(&mut self, now: Nanos) {
        while let Some((_, mut series)) = self.held_back.pop_front_if(|(until, _)| *until <= now) {
            series.clock = series.clock.wrapping_add(HELD_BACK.as_nanos());
            self.ready.push(series);
        }
        self.ready.flush();
    }
}

/// How long sabotage holds back what should be there.
const HELD_BACK: Nanos = Nanos::from_millis(500);

/// Exports the slots of a set step by step until that gave enough series; `export` tells how many there are so
/// far. Returns what was exported.
fn in_steps(slots: &SlotSet, mut export: impl FnMut(&SlotSet) -> usize) -> SlotSet {
    let mut part = SlotSet::new();
    let mut shards = slots.shards().peekable();
    while shards.peek().is_some() {
        let mut step = SlotSet::new();
        for shard in shards.by_ref().take(SHARDS_A_STEP) {
            step.set_shard(shard, slots.of_shard(shard));
        }
        let exported = export(&step);
        part.extend(&step);
        if exported >= ENOUGH_SERIES {
            break;
        }
    }
    part
}

#[cfg(test)]
mod tests;
