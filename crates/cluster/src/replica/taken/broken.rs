//! A merge with rules that may be broken, for the simulator.
//!
//! Without a broken rule it is the store's.

use std::{cell::RefCell, collections::HashMap};

use tollgate_limit::{Body, Counter, KeyHash, Merged, Nanos, Series, Store, Writer};

use crate::sabotage::{self, Sabotage};

pub(super) fn merge(store: &Store, now: Nanos, series: &Series) -> Merged {
    if sabotage::is(Sabotage::MergeUndoesRefund) {
        return store.merge(now, &without_refund(store, series));
    }
    let merged = store.merge(now, series);
    if sabotage::is(Sabotage::MergeTwice) && merged == Merged::Known {
        let mut again = series.clone();
        again.writer = Writer::new(!series.writer.number());
        return store.merge(now, &again);
    }
    merged
}

/// The newest charge that a store was told of in each series, and what was counted with it.
type Charged = HashMap<(usize, KeyHash, Counter, Writer), Body>;

thread_local! {
    static CHARGED: RefCell<Charged> = RefCell::default();
}

/// The most series remembered; beyond, all are forgotten.
const MAX_REMEMBERED: usize = 100_000;

/// A series with the words that it had when it was last charged: what was given back since counts again.
fn without_refund(store: &Store, series: &Series) -> Series {
    let Body::Counts { latest, .. } = series.body else {
        return series.clone();
    };
    let store = std::ptr::from_ref(store).addr();
    let name = (store, series.key, series.counter, series.writer);
    CHARGED.with_borrow_mut(|charged| {
        if charged.len() >= MAX_REMEMBERED {
            charged.clear();
        }
        let known = charged.entry(name).or_insert_with(|| series.body.clone());
        let is_charged = match known {
            Body::Counts { latest: known, .. } => *known < latest,
            Body::Void => true,
        };
        if is_charged {
            *known = series.body.clone();
        }
        Series {
            body: known.clone(),
            ..series.clone()
        }
    })
}
