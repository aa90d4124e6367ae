//! What is remembered of each caller: what was decided for it, and how it has amended counters.
//!
//! A caller is one link of one boot of a peer, since request ids and sequences are counted by link.
//! Shared by the streams of a link. Verdicts are forgotten once nobody can ask for them again.
//! Amendments are not: a link that was cut may repeat one after minutes. Bounded: above the most callers
//! the one goes that has had no stream for longest, else any.

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
    callers: Mutex<Callers>,
}

#[derive(Debug, Default)]
struct Callers {
    known: BTreeMap<Caller, Known>,
    /// Streams so far.
    streams: u64,
}

#[derive(Debug)]
struct Known {
    /// `None` once all that was decided has expired.
    boot: Option<Arc<Boot>>,
    amended: Arc<Mutex<AmendWindow>>,
    /// The number of its latest stream.
    stream: u64,
}

impl Known {
    fn has_stream(&self) -> bool {
        let boot = self.boot.as_ref();
        boot.is_some_and(|boot| Arc::strong_count(boot) > 1)
    }
}

/// What is remembered of one caller.
#[derive(Debug)]
pub(crate) struct Boot {
    pub(crate) decided: Mutex<DecidedRing>,
    pub(crate) amended: Arc<Mutex<AmendWindow>>,
}

impl Boots {
    /// Verdicts are kept for `keep`: two check deadlines.
    pub(crate) fn new(keep: Nanos) -> Self {
        Self {
            keep,
            callers: Mutex::default(),
        }
    }

    /// What is remembered of this caller, for one more stream of it.
    pub(super) fn of(&self, caller: Caller) -> Arc<Boot> {
        let mut callers = self.callers.lock();
        callers.streams += 1;
        let Callers { known, streams } = &mut *callers;
        if known.len() >= MAX_CALLERS && !known.contains_key(&caller) {
            forget_one(known);
        }
        let known = known.entry(caller).or_insert_with(|| Known {
            boot: None,
            amended: Arc::default(),
            stream: 0,
        });
        known.stream = *streams;
        let amended = &known.amended;
        let boot = known.boot.get_or_insert_with(|| {
            Arc::new(Boot {
                decided: Mutex::new(DecidedRing::new(self.keep)),
                amended: Arc::clone(amended),
            })
        });
        Arc::clone(boot)
    }

    /// Forgets what was decided for callers that no stream speaks for any more, once it has expired.
    pub(crate) fn sweep(&self, now: Nanos) {
        for known in self.callers.lock().known.values_mut() {
            let is_over = |boot: &Arc<Boot>| boot.decided.lock().is_idle(now);
            if !known.has_stream() && known.boot.as_ref().is_some_and(is_over) {
                known.boot = None;
            }
        }
    }
}

fn forget_one(known: &mut BTreeMap<Caller, Known>) {
    let oldest = known
        .iter()
        .min_by_key(|(_caller, known)| (known.has_stream(), known.stream));
    if let Some(caller) = oldest.map(|(caller, _known)| *caller) {
        known.remove(&caller);
    }
}

#[cfg(test)]
mod tests {
    use tollgate_cluster::Acceptance;
    use tollgate_limit::Nanos;
    use tollgate_wire::identity::BootId;

    use super::{Boots, MAX_CALLERS};

    const KEEP: Nanos = Nanos::from_millis(100);

    fn accept(boots: &Boots, caller: u64, sequence: u64) -> Acceptance {
        let boot = boots.of((BootId(1), caller));
        let mut amended = boot.amended.lock();
        amended.accept(sequence)
    }

    #[test]
    fn an_amendment_is_remembered_when_verdicts_are_not() {
        let boots = Boots::new(KEEP);
        let decided = |boots: &Boots| {
            let boot = boots.of((BootId(1), 7));
            let mut decided = boot.decided.lock();
            let known = decided.verdicts(1).is_some();
            if !known {
                decided.record(Nanos::ZERO, 1, &[]);
            }
            known
        };
        assert!(!decided(&boots));
        assert_eq!(accept(&boots, 7, 0), Acceptance::Fresh);
        boots.sweep(Nanos::ZERO);
        assert!(decided(&boots));
        boots.sweep(Nanos::from_millis(60_000));
        assert!(!decided(&boots));
        assert_eq!(accept(&boots, 7, 0), Acceptance::Repeated);
    }

    #[test]
    fn callers_are_bounded_and_the_one_without_a_stream_for_longest_goes() {
        let boots = Boots::new(KEEP);
        let speaking = boots.of((BootId(1), 0));
        for caller in 1..=u64::try_from(MAX_CALLERS).unwrap() {
            assert_eq!(accept(&boots, caller, 0), Acceptance::Fresh);
        }
        assert_eq!(boots.callers.lock().known.len(), MAX_CALLERS);
        assert_eq!(speaking.amended.lock().accept(0), Acceptance::Fresh);
        assert_eq!(accept(&boots, 0, 0), Acceptance::Repeated, "it speaks");
        assert_eq!(accept(&boots, 2, 0), Acceptance::Repeated);
        assert_eq!(accept(&boots, 1, 0), Acceptance::Fresh, "the longest idle");
    }
}
