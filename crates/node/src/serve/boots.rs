//! What is remembered of each caller's boot: what was decided for it, and what it has given back.
//!
//! Shared by the streams of a boot. Bounded: above the most boots the idle ones go, then any.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use tollgate_cluster::{DecidedRing, GiveBackWindow, MAX_BOOTS};
use tollgate_limit::Nanos;
use tollgate_wire::identity::BootId;

/// All callers' boots.
#[derive(Debug)]
pub(crate) struct Boots {
    keep: Nanos,
    boots: Mutex<BTreeMap<BootId, Arc<Boot>>>,
}

/// One caller's boot.
#[derive(Debug)]
pub(crate) struct Boot {
    pub(crate) decided: Mutex<DecidedRing>,
    pub(crate) given_back: Mutex<GiveBackWindow>,
}

impl Boots {
    /// Verdicts are kept for `keep`: two check deadlines.
    pub(crate) const fn new(keep: Nanos) -> Self {
        Self {
            keep,
            boots: Mutex::new(BTreeMap::new()),
        }
    }

    /// What is remembered of this boot.
    pub(crate) fn of(&self, boot: BootId) -> Arc<Boot> {
        let mut boots = self.boots.lock();
        if boots.len() >= MAX_BOOTS && !boots.contains_key(&boot) {
            boots.pop_first();
        }
        let make = || {
            Arc::new(Boot {
                decided: Mutex::new(DecidedRing::new(self.keep)),
                given_back: Mutex::new(GiveBackWindow::new()),
            })
        };
        Arc::clone(boots.entry(boot).or_insert_with(make))
    }

    /// Forgets boots that no stream speaks for any more and whose verdicts have expired.
    pub(crate) fn sweep(&self, now: Nanos) {
        self.boots.lock().retain(|_boot, state| {
            Arc::strong_count(state) > 1 || !state.decided.lock().is_idle(now)
        });
    }
}
