//! Reports beside what was counted and what the owners have.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tollgate_limit::{Nanos, NodeId, Series, SlotId};

use super::{REPORT_INTERVAL, ReportTo, Reports, at, node, series};

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Something is counted in a slot, in the shares or not.
    Count(u16, bool),
    Pass(u64),
    Poll,
    /// A peer answers its oldest frame.
    Answer(bool),
    Disconnect(bool),
    /// The slots change their owner.
    Move,
    /// The next reports cannot be sent.
    Jam(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u16..6, any::<bool>()).prop_map(|(slot, share)| Step::Count(slot, share)),
        2 => (0_u64..3_000).prop_map(Step::Pass),
        4 => Just(Step::Poll),
        4 => any::<bool>().prop_map(Step::Answer),
        1 => any::<bool>().prop_map(Step::Disconnect),
        1 => Just(Step::Move),
        1 => any::<bool>().prop_map(Step::Jam),
    ]
}

/// A frame on its way: what it tells of each slot.
#[derive(Debug)]
struct Frame {
    number: u64,
    counts: BTreeMap<u16, u64>,
    withdrawn: Vec<Series>,
}

/// Counts of six slots that belong to two peers by turns.
#[derive(Default)]
struct World {
    reports: Reports,
    now: u64,
    is_moved: bool,
    is_jammed: bool,
    /// What was counted in a slot, and what of that owners have.
    counted: BTreeMap<u16, u64>,
    had: BTreeMap<u16, u64>,
    /// What lies in the shares, and all that ever did; and what of that owners have.
    shares: Vec<Series>,
    shared: BTreeSet<u64>,
    had_shares: BTreeSet<u64>,
    frames: BTreeMap<NodeId, Vec<Frame>>,
    last_report: BTreeMap<u16, u64>,
}

impl World {
    fn now(&self) -> Nanos {
        at(self.now)
    }

    fn owner(slot: SlotId, is_moved: bool) -> NodeId {
        let is_even = slot.number().is_multiple_of(2);
        node(if is_even == is_moved { "a" } else { "b" })
    }

    fn count(&mut self, slot: u16, is_share: bool) {
        if is_share {
            let number = u64::try_from(self.shared.len()).unwrap();
            self.shared.insert(number);
            self.shares.push(series(slot, number));
        } else {
            *self.counted.entry(slot).or_default() += 1;
        }
        self.reports.marked().mark(SlotId::new(slot));
    }

    fn poll(&mut self) -> Result<(), TestCaseError> {
        let is_moved = self.is_moved;
        let whom = |slot| ReportTo::Peer(Self::owner(slot, is_moved));
        while let Some(mut report) = self.reports.poll_report(self.now(), whom) {
            let to = report.to.clone().unwrap();
            let mut counts = BTreeMap::new();
            let mut withdrawn = std::mem::take(&mut report.kept);
            for slot in report.slots.iter() {
                prop_assert_eq!(&Self::owner(slot, is_moved), &to);
                let number = slot.number();
                let last = self.last_report.insert(number, self.now);
                let passed = last.map_or(REPORT_INTERVAL, |last| at(self.now - last));
                prop_assert!(passed >= REPORT_INTERVAL, "too soon");
                counts.insert(number, self.counted.get(&number).copied().unwrap_or(0));
            }
            let is_in = |one: &Series| report.slots.contains(one.key.slot());
            withdrawn.extend(self.shares.extract_if(.., |one| is_in(one)));
            if self.is_jammed {
                self.reports.handle_unsent(self.now(), &report, withdrawn);
                continue;
            }
            // The shares in a frame of their own.
            let said = (2, withdrawn.clone());
            let mut numbers = self.reports.handle_sent(self.now(), report, said);
            let frames = self.frames.entry(to).or_default();
            frames.push(Frame {
                number: numbers.next().unwrap(),
                counts,
                withdrawn: Vec::new(),
            });
            frames.push(Frame {
                number: numbers.next().unwrap(),
                counts: BTreeMap::new(),
                withdrawn,
            });
        }
        Ok(())
    }

    fn answer(&mut self, peer: &NodeId) {
        let Some(frames) = self
            .frames
            .get_mut(peer)
            .filter(|frames| !frames.is_empty())
        else {
            return;
        };
        let frame = frames.remove(0);
        for (slot, count) in frame.counts {
            let had = self.had.entry(slot).or_default();
            *had = count.max(*had);
        }
        let withdrawn = frame.withdrawn.iter();
        self.had_shares
            .extend(withdrawn.map(|series| series.version));
        self.reports.handle_reported(peer, frame.number);
    }

    fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        let peer = |is_first| node(if is_first { "a" } else { "b" });
        match step {
            Step::Count(slot, is_share) => self.count(slot, is_share),
            Step::Pass(millis) => self.now += millis,
            Step::Poll => self.poll()?,
            Step::Answer(is_first) => self.answer(&peer(is_first)),
            Step::Disconnect(is_first) => {
                self.frames.remove(&peer(is_first));
                self.reports.handle_disconnected(&peer(is_first));
            }
            Step::Move => self.is_moved = !self.is_moved,
            Step::Jam(is_jammed) => self.is_jammed = is_jammed,
        }
        Ok(())
    }

    /// INV-OWED-UNTIL-ACKNOWLEDGED.
    fn check(&self) -> Result<(), TestCaseError> {
        for (slot, counted) in &self.counted {
            let is_known = self.had.get(slot) >= Some(counted);
            prop_assert!(is_known || self.reports.is_owed(SlotId::new(*slot)));
        }
        Ok(())
    }
}

proptest! {
    /// Whatever is lost, in the end the owners have all that was counted, and nothing is kept.
    #[test]
    fn what_was_counted_is_taken_in_in_the_end(
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut world = World::default();
        for step in steps {
            world.take(step)?;
            world.check()?;
        }
        world.is_jammed = false;
        for _ in 0..20 {
            world.now += 1_000;
            world.poll()?;
            for peer in [node("a"), node("b")] {
                for _ in 0..50 {
                    world.answer(&peer);
                }
            }
        }
        prop_assert!(world.reports.is_settled());
        prop_assert_eq!(&world.had_shares, &world.shared);
        prop_assert_eq!(world.reports.kept(), 0);
        for (slot, counted) in &world.counted {
            prop_assert_eq!(world.had.get(slot), Some(counted));
        }
    }
}
