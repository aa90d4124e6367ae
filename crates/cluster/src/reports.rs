//! Reports: what this node counted in slots of others, until their owners have it.
//!
//! A node that decided as a standby, or admitted from its local shares, owes what it counted to the owner.
//! Which slots those are is all that is kept here: what is owed is read from the counters when the report
//! is made, so that a report says what stands then. Local shares alone are taken out of their counters,
//! so that what comes after the owner's return starts from the owner's word; what was taken out is kept until the
//! owner has it.
//!
//! Invariants: INV-OWED-UNTIL-ACKNOWLEDGED: what was counted before its slot was marked is in a report
//! that was acknowledged, or in one that is under way, or its slot is still owed. At most one report of a
//! slot is under way, and one is made in [`REPORT_INTERVAL`]. Knows nothing of links and stores.

mod owed;

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Range,
    sync::Arc,
};

use tollgate_limit::{Nanos, NodeId, Series, SlotId, SlotSet};

pub use self::owed::OwedSlots;

/// The most slots of one report; the others are in the next.
pub const REPORT_SLOTS: usize = 256;

/// The most reports under way. Above it slots stay owed.
pub const MAX_REPORTS: usize = 64;

/// The most series that are taken out of the local shares and kept. Above it they stay in the shares,
/// which are bounded, and go as those do: the least used first.
pub const MAX_KEPT: usize = 65_536;

/// The least time between two reports of one slot.
pub const REPORT_INTERVAL: Nanos = Nanos::from_millis(1_000);

/// How long a report may be under way; then its slots are owed again.
pub const REPORT_TIMEOUT: Nanos = Nanos::from_millis(5_000);

/// The most slots that one poll asks the owners of.
const MAX_LOOKED_AT: usize = 4_096;

/// Whom the counts of a slot are owed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportTo {
    /// The owner, which can be told now.
    Peer(NodeId),
    /// This node holds the slot itself by now.
    Here,
    /// Nobody who can be told now.
    Later,
}

/// A report to be made: to be handed to [`Reports::handle_sent`] or [`Reports::handle_unsent`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Report {
    /// The owner; `None` is this node, which takes in what its shares counted and what was kept.
    pub to: Option<NodeId>,
    /// The slots to be reported.
    pub slots: SlotSet,
    /// What was taken out of the shares before and is still owed: to be sent too.
    pub kept: Vec<Series>,
    /// How many series may be taken out of the local shares. What is not, is to be marked again.
    pub room: usize,
}

/// What this node owes to the owners of slots.
#[derive(Debug, Default)]
pub struct Reports {
    /// What was marked since the last poll.
    marked: Arc<OwedSlots>,
    owed: SlotSet,
    /// The slots of all reports that are under way.
    reporting: SlotSet,
    under_way: VecDeque<UnderWay>,
    /// The slots that were reported just now, and until when they are not again.
    resting: SlotSet,
    rests: VecDeque<(Nanos, SlotId)>,
    /// By slot what was taken out of the shares and is in no report.
    kept: BTreeMap<u16, Vec<Kept>>,
    /// How many series are kept, those of reports that are under way too.
    kept_count: usize,
    next_number: u64,
    /// The shard that the next poll begins with.
    next_shard: usize,
}

/// A report that was sent in some frames, of which the first are acknowledged.
#[derive(Debug)]
struct UnderWay {
    to: NodeId,
    slots: SlotSet,
    numbers: Range<u64>,
    sent_at: Nanos,
    withdrawn: Vec<Series>,
}

/// A series, and when its clock was right.
#[derive(Debug)]
struct Kept {
    since: Nanos,
    series: Series,
}

impl Kept {
    /// As it would be exported now: a series that waits gets older.
    fn into_series(mut self, now: Nanos) -> Series {
        let waited = now.saturating_sub(self.since);
        self.series.clock = self.series.clock.wrapping_add(waited.as_nanos());
        self.series
    }
}

impl Reports {
    /// Nothing is owed.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Where those who count mark slots.
    #[must_use]
    pub fn marked(&self) -> Arc<OwedSlots> {
        Arc::clone(&self.marked)
    }

    /// The next report to be made; call again until there is none. `to` says whom a slot is owed to.
    pub fn poll_report(
        &mut self,
        now: Nanos,
        to: impl FnMut(SlotId) -> ReportTo,
    ) -> Option<Report> {
        self.marked.take_into(&mut self.owed);
        self.expire(now);
        if self.under_way.len() >= MAX_REPORTS || self.owed.is_empty() {
            return None;
        }
        let (to, slots) = self.choose(to)?;
        self.owed.subtract(&slots);
        self.resting.extend(&slots);
        let until = now.saturating_add(REPORT_INTERVAL);
        self.rests.extend(slots.iter().map(|slot| (until, slot)));
        let kept = slots
            .iter()
            .filter_map(|slot| self.kept.remove(&slot.number()));
        let kept: Vec<_> = kept.flatten().map(|kept| kept.into_series(now)).collect();
        let room = MAX_KEPT.saturating_sub(self.kept_count);
        self.kept_count = self.kept_count.saturating_sub(kept.len());
        Some(Report {
            to,
            slots,
            kept,
            room,
        })
    }

    /// Some slots that are owed to the same node; where the first is found says where the next poll begins.
    fn choose(
        &mut self,
        mut to: impl FnMut(SlotId) -> ReportTo,
    ) -> Option<(Option<NodeId>, SlotSet)> {
        let mut free = self.owed.clone();
        free.subtract(&self.resting);
        free.subtract(&self.reporting);
        let mut chosen: Option<(ReportTo, SlotSet)> = None;
        let (mut found, mut looked_at) = (0_usize, 0_usize);
        let before = |slot: &SlotId| shard_of(*slot) < self.next_shard;
        let from = free.iter().filter(|slot| !before(slot));
        let mut last = self.next_shard;
        for slot in from.chain(free.iter().filter(before)) {
            if looked_at >= MAX_LOOKED_AT || found >= REPORT_SLOTS {
                break;
            }
            looked_at = looked_at.saturating_add(1);
            last = shard_of(slot);
            let whom = to(slot);
            match &mut chosen {
                _ if whom == ReportTo::Later => {}
                Some((chosen, slots)) if *chosen == whom => {
                    slots.insert(slot);
                    found = found.saturating_add(1);
                }
                Some(_) => {}
                None => {
                    chosen = Some((whom, [slot].into_iter().collect()));
                    found = 1;
                }
            }
        }
        let Some((whom, slots)) = chosen else {
            // Nobody of these can be told: the others are looked at next.
            self.next_shard = last;
            return None;
        };
        let to = match whom {
            ReportTo::Peer(peer) => Some(peer),
            ReportTo::Here | ReportTo::Later => None,
        };
        Some((to, slots))
    }

    /// A report goes to its owner in so many frames; their numbers, in this order. `withdrawn` is what it
    /// has of the local shares: what was kept, and what was taken out for it. Of this node's own nothing
    /// is under way.
    pub fn handle_sent(
        &mut self,
        now: Nanos,
        report: Report,
        (frames, withdrawn): (u64, Vec<Series>),
    ) -> Range<u64> {
        let first = self.next_number;
        let Some(to) = report.to.filter(|_| frames > 0) else {
            return first..first;
        };
        self.next_number = first.saturating_add(frames);
        let numbers = first..self.next_number;
        self.reporting.extend(&report.slots);
        self.kept_count = self.kept_count.saturating_add(withdrawn.len());
        self.under_way.push_back(UnderWay {
            to,
            slots: report.slots,
            numbers: numbers.clone(),
            sent_at: now,
            withdrawn,
        });
        numbers
    }

    /// A report cannot be sent: it is owed again. `withdrawn` as of [`handle_sent`](Self::handle_sent).
    pub fn handle_unsent(&mut self, now: Nanos, report: &Report, withdrawn: Vec<Series>) {
        self.kept_count = self.kept_count.saturating_add(withdrawn.len());
        self.owe(now, &report.slots, withdrawn);
    }

    /// A peer has taken in the frame of this number. Frames are answered in their order.
    pub fn handle_reported(&mut self, peer: &NodeId, number: u64) {
        let is_it = |one: &UnderWay| one.to == *peer && one.numbers.start == number;
        let Some(at) = self.under_way.iter().position(is_it) else {
            return;
        };
        let Some(report) = self.under_way.get_mut(at) else {
            return;
        };
        report.numbers.next();
        if report.numbers.is_empty()
            && let Some(done) = self.under_way.remove(at)
        {
            self.reporting.subtract(&done.slots);
            self.kept_count = self.kept_count.saturating_sub(done.withdrawn.len());
        }
    }

    /// The stream to a peer is gone, or another start of it answers: what it has not acknowledged is owed
    /// again.
    pub fn handle_disconnected(&mut self, peer: &NodeId) {
        self.fail(|report| report.to == *peer);
    }

    /// Whether nothing is owed and nothing under way.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.under_way.is_empty() && self.owed.is_empty() && self.marked.is_empty()
    }

    /// Whether what was counted in a slot may not be known to its owner: then it must not be forgotten.
    #[must_use]
    pub fn is_owed(&self, slot: SlotId) -> bool {
        self.owed.contains(slot) || self.reporting.contains(slot) || self.marked.contains(slot)
    }

    /// How many series are kept that were taken out of the local shares.
    #[must_use]
    pub const fn kept(&self) -> usize {
        self.kept_count
    }

    /// How many slots are owed and in no report.
    #[must_use]
    pub fn owed(&self) -> usize {
        self.owed.len()
    }

    fn expire(&mut self, now: Nanos) {
        while let Some((until, slot)) = self.rests.front().copied()
            && until <= now
        {
            self.rests.pop_front();
            self.resting.remove(slot);
        }
        self.fail(|report| report.sent_at.saturating_add(REPORT_TIMEOUT) <= now);
    }

    fn fail(&mut self, fails: impl Fn(&UnderWay) -> bool) {
        let (failed, under_way) = std::mem::take(&mut self.under_way)
            .into_iter()
            .partition(fails);
        self.under_way = under_way;
        let failed: VecDeque<UnderWay> = failed;
        for report in failed {
            self.reporting.subtract(&report.slots);
            self.owe(report.sent_at, &report.slots, report.withdrawn);
        }
    }

    fn owe(&mut self, since: Nanos, slots: &SlotSet, withdrawn: Vec<Series>) {
        self.owed.extend(slots);
        for series in withdrawn {
            let slot = series.key.slot();
            self.owed.insert(slot);
            let kept = self.kept.entry(slot.number()).or_default();
            kept.push(Kept { since, series });
        }
    }
}

fn shard_of(slot: SlotId) -> usize {
    slot.index() / SLOTS_OF_SHARD
}

/// Slots that are looked at together.
const SLOTS_OF_SHARD: usize = 64;

#[cfg(test)]
mod tests;
