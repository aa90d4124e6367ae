//! Reporting to owners what this node counted in slots that it does not hold: as a standby, from its own
//! copy; without anybody else, in its local shares.
//!
//! What is due, to whom and when is `cluster`'s to say ([`Reports`]). What the shares counted is taken out of
//! them when it is reported, so that it is not counted twice when the owner answers again.

use tollgate_cluster::{Report, ReportTo, Reports};
use tollgate_limit::{Nanos, Series, SlotId, SlotSet};
use tollgate_wire::replica::{BATCH_BYTES, MAX_BATCH, Order, size_of};

use crate::{
    node::Node,
    routes::Routes,
    serve::{Keeper, Owner},
};

/// Reports that are made in one turn; what is left waits for the next.
const AT_ONCE: usize = 16;

impl Node {
    /// Makes the reports that are due.
    pub(super) fn report_owed(&self, now: Nanos) {
        let Owner { mover, .. } = &*self.owner;
        let routes = self.routes.load();
        let mut reports = mover.reports.lock();
        for _ in 0..AT_ONCE {
            let to = |slot| self.owner.owed_to(&routes, slot);
            let Some(report) = reports.poll_report(now, to) else {
                return;
            };
            self.make(now, &mut reports, report);
        }
    }

    fn make(&self, now: Nanos, reports: &mut Reports, mut report: Report) {
        let Owner { mover, store, .. } = &*self.owner;
        let mut withdrawn = std::mem::take(&mut report.kept);
        let left = self
            .shares
            .withdraw(now, (&report.slots, report.room), &mut withdrawn);
        mover.owed.mark_all(&left);
        let Some(to) = report.to.clone() else {
            mover.take_in(store, now, &withdrawn);
            reports.handle_sent(now, report, (0, Vec::new()));
            return;
        };
        let Some(orders) = mover.orders_to(&to) else {
            reports.handle_unsent(now, &report, withdrawn);
            return;
        };
        let mut series = withdrawn.clone();
        store.export_own(now, &report.slots, &mut series);
        let frames = frames_of(series);
        let count = u64::try_from(frames.len()).unwrap_or(u64::MAX);
        let numbers = reports.handle_sent(now, report, (count, withdrawn));
        for (number, series) in numbers.zip(frames) {
            orders.push(Order::Report { number, series });
        }
    }
}

impl Owner {
    fn owed_to(&self, routes: &Routes, slot: SlotId) -> ReportTo {
        match self.keeper(routes, slot) {
            Keeper::Here => ReportTo::Here,
            // A share that is taken out for an owner that does not answer would start anew.
            Keeper::Peer(link) if link.is_usable() && self.mover.can_order(link.peer()) => {
                ReportTo::Peer(link.peer().clone())
            }
            Keeper::Peer(_) | Keeper::Nobody => ReportTo::Later,
        }
    }
}

/// Series in as many frames as they need.
fn frames_of(series: Vec<Series>) -> Vec<Vec<Series>> {
    let mut frames = Vec::new();
    let mut frame = Vec::new();
    let mut bytes = 0_usize;
    for series in series {
        bytes = bytes.saturating_add(size_of(&series));
        frame.push(series);
        if bytes >= BATCH_BYTES || frame.len() >= MAX_BATCH {
            frames.push(std::mem::take(&mut frame));
            bytes = 0;
        }
    }
    if !frame.is_empty() {
        frames.push(frame);
    }
    frames
}

/// All slots that are owed.
pub(super) fn owed_slots(reports: &Reports) -> SlotSet {
    if reports.is_settled() {
        return SlotSet::new();
    }
    let all = (0..=u16::MAX).map(SlotId::new);
    all.filter(|slot| reports.is_owed(*slot)).collect()
}
