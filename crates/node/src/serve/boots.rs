//! What is remembered of each caller: what was decided for it, and what it has given back.
//!
//! A caller is one link of one boot of a peer, since request ids and sequences are counted by link.
//! Shared by the streams of a link. Bounded: above the most callers those without a stream go, then
//! any.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use tollgate_cluster::{AmendWindow, DecidedRing};
use tollgate_limit::Nanos;
use tollgate_wire::identity::BootId;

/// The most callers that are remembered.
const MAX_CALLERS: usize = 1_024;

/// A caller: its boot and the number of its link.
pub(super) type Caller = (BootId, u64);

/// All callers.
#[derive(Debug)]
pub(crate) struct Boots {
    keep: Nanos,
    boots: Mutex<BTreeMap<Caller, Arc<Boot>>>,
}

/// What is remembered of one caller.
#[derive(Debug)]
pub(crate) struct Boot {
    pub(crate) decided: Mutex<DecidedRing>,
    pub(crate) amended: Mutex<AmendWindow>,
}

impl Boots {
    /// Verdicts are kept for `keep`: two check deadlines.
    pub(crate) const fn new(keep: Nanos) -> Self {
        Self {
            keep,
            boots: Mutex::new(BTreeMap::new()),
        }
    }

    /// What is remembered of this caller.
    pub(super) fn of(&self, caller: Caller) -> Arc<Boot> {
        let mut boots = self.boots.lock();
        if boots.len() >= MAX_CALLERS && !boots.contains_key(&caller) {
            boots.retain(|_caller, state| Arc::strong_count(state) > 1);
            if boots.len() >= MAX_CALLERS {
                boots.pop_first();
            }
        }
        let make = || {
            Arc::new(Boot {
                decided: Mutex::new(DecidedRing::new(self.keep)),
                amended: Mutex::new(AmendWindow::new()),
            })
        };
        Arc::clone(boots.entry(caller).or_insert_with(make))
    }

    /// Forgets callers that no stream speaks for any more and whose verdicts have expired.
    pub(crate) fn sweep(&self, now: Nanos) {
        self.boots.lock().retain(|_caller, state| {
            Arc::strong_count(state) > 1 || !state.decided.lock().is_idle(now)
        });
    }
}
