//! Replies that come after their check was answered without them.
//!
//! What was admitted without the owner is reported to it, and what was refused must not leave a charge
//! behind (P4): so what its owner says late that it charged is given back, unless the check was answered by
//! that very charge, heard another way. Knows nothing of how. Bounded in number and in time; what is
//! forgotten errs towards refusing.

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasherDefault, DefaultHasher},
};

use smallvec::SmallVec;
use tollgate_limit::{Ask, Nanos, Verdict};
use tollgate_wire::peer::Said;

/// The most checks whose late reply is remembered or awaited.
const MAX_LATE: usize = 4096;
/// How long a late reply is awaited.
const PATIENCE: Nanos = Nanos::from_millis(2000);

/// Checks that timed out, by number.
#[derive(Debug, Default)]
pub(super) struct LateReplies {
    records: HashMap<u64, Record, BuildHasherDefault<DefaultHasher>>,
    order: VecDeque<(Nanos, u64)>,
}

#[derive(Debug)]
enum Record {
    /// Neither the reply nor the end of the check is known.
    Open,
    /// The reply is known.
    Came(Late),
    /// The check was answered without it: what comes is to be given back.
    Unwanted(SmallVec<[Ask; 2]>),
}

/// A reply that came late: who decided, if it was not the peer as owner, and what was said.
#[derive(Debug)]
pub(super) struct Late {
    pub(super) said: Option<Said>,
    pub(super) verdicts: SmallVec<[Verdict; 1]>,
}

/// Charges that nobody wants any more.
#[derive(Debug)]
pub(super) struct Unwanted {
    pub(super) asks: SmallVec<[Ask; 2]>,
    pub(super) late: Late,
}

impl LateReplies {
    /// A check timed out.
    pub(super) fn handle_timeout(&mut self, now: Nanos, number: u64) {
        while let Some((expires, oldest)) = self.order.front().copied() {
            if expires > now && self.order.len() < MAX_LATE {
                break;
            }
            self.order.pop_front();
            self.records.remove(&oldest);
        }
        self.order.push_back((now.saturating_add(PATIENCE), number));
        self.records.insert(number, Record::Open);
    }

    /// Its reply came after all.
    pub(super) fn handle_reply(&mut self, number: u64, late: Late) -> Option<Unwanted> {
        let record = self.records.get_mut(&number)?;
        match std::mem::replace(record, Record::Came(late)) {
            Record::Open => None,
            Record::Came(_) => None,
            Record::Unwanted(asks) => match self.records.remove(&number) {
                Some(Record::Came(late)) => Some(Unwanted { asks, late }),
                Some(Record::Open | Record::Unwanted(_)) | None => None,
            },
        }
    }

    /// The check was answered by the charge that the reply tells of.
    pub(super) fn handle_used(&mut self, number: u64) {
        self.records.remove(&number);
    }

    /// The check was answered without the reply.
    pub(super) fn handle_unused(
        &mut self,
        number: u64,
        asks: SmallVec<[Ask; 2]>,
    ) -> Option<Unwanted> {
        let record = self.records.get_mut(&number)?;
        match std::mem::replace(record, Record::Unwanted(asks)) {
            Record::Open | Record::Unwanted(_) => None,
            Record::Came(late) => match self.records.remove(&number) {
                Some(Record::Unwanted(asks)) => Some(Unwanted { asks, late }),
                Some(Record::Open | Record::Came(_)) | None => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;
    use tollgate_limit::Nanos;

    use super::{Late, LateReplies, MAX_LATE, PATIENCE};

    fn came() -> Late {
        Late {
            said: None,
            verdicts: smallvec![],
        }
    }

    #[test]
    fn reply_and_end_meet_in_either_order() {
        let mut late = LateReplies::default();
        late.handle_timeout(Nanos::ZERO, 1);
        late.handle_timeout(Nanos::ZERO, 2);
        assert!(late.handle_reply(1, came()).is_none());
        assert!(late.handle_unused(1, smallvec![]).is_some());
        assert!(late.handle_unused(2, smallvec![]).is_none());
        assert!(late.handle_reply(2, came()).is_some());
        assert!(late.handle_reply(2, came()).is_none(), "given back once");
    }

    #[test]
    fn a_charge_that_was_used_is_not_given_back() {
        let mut late = LateReplies::default();
        late.handle_timeout(Nanos::ZERO, 1);
        late.handle_used(1);
        assert!(late.handle_reply(1, came()).is_none());
        late.handle_timeout(Nanos::ZERO, 2);
        assert!(late.handle_reply(2, came()).is_none());
        late.handle_used(2);
        assert!(late.handle_unused(2, smallvec![]).is_none());
    }

    #[test]
    fn what_nobody_waits_for_is_nothing() {
        let mut late = LateReplies::default();
        assert!(late.handle_reply(1, came()).is_none());
        assert!(late.handle_unused(1, smallvec![]).is_none());
    }

    #[test]
    fn it_is_bounded_in_number_and_time() {
        let mut late = LateReplies::default();
        (0..10_000).for_each(|number| late.handle_timeout(Nanos::ZERO, number));
        assert_eq!(late.records.len(), MAX_LATE);
        late.handle_timeout(PATIENCE, 10_000);
        assert_eq!(late.records.len(), 1);
    }
}
