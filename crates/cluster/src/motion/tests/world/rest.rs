//! What must hold when all is told and all has come.

use tollgate_limit::{SlotId, SlotSet};
use tollgate_wire::identity::Phase;

use super::World;

impl World {
    /// All that is under way comes, all streams are up, until nothing is to be done.
    pub(in crate::motion::tests) fn calm(&mut self) {
        for _round in 0..60 {
            while self.hear(0) || self.connect(0) || self.deliver(0) {}
            self.wait(100);
        }
        while self.hear(0) || self.connect(0) || self.deliver(0) {}
    }

    /// At rest: each slot is held by its owner alone, who knows all that was counted.
    pub(in crate::motion::tests) fn assert_rest(&mut self) {
        let active = self.nodes.iter().filter(|(_, n)| n.phase == Phase::Active);
        let active: Vec<_> = active.map(|(name, _)| name.clone()).collect();
        let placement = self.placement(active.clone());
        for (name, node) in &self.nodes {
            let own = placement.index_of(name);
            let slots = (0..=u16::MAX).map(SlotId::new);
            let own: SlotSet = slots
                .filter(|slot| own.is_some() && placement.owner(*slot) == own)
                .collect();
            let missing = own.without(&node.held).len();
            let extra = node.held.without(&own).len();
            assert_eq!(
                (missing, extra),
                (0, 0),
                "{name} of {active:?}: {:?}",
                node.seen
            );
            assert_eq!(node.motion.moving(), (0, 0), "{name}");
            for (slot, numbers) in self.counted.iter().filter(|(slot, _)| own.contains(**slot)) {
                let known = node.counts.get(slot).cloned().unwrap_or_default();
                let lost: Vec<_> = numbers.difference(&known).collect();
                assert!(lost.is_empty(), "{name} lost {lost:?} of {slot:?}");
            }
        }
    }
}
