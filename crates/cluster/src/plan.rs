//! The plan of one check at its entry node: which limit is decided where, and in what order.
//!
//! Rule 5: those decided on the entry node come first (its own, then the ownerless by fallback); if
//! one refuses, the others are not asked. The rest are asked at once. Knows nothing of peers beyond
//! the numbers that it is told. Invariant: every applied limit is in exactly one place of the plan,
//! each place keeps the order of the limits.

use smallvec::SmallVec;
use tollgate_limit::{AppliedLimits, Mode, SlotId};

/// Places in the applied limits of a check, in ascending order.
pub type Indices = SmallVec<[usize; 2]>;

/// Where a slot is decided, as the entry node sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On this node.
    Here,
    /// Nowhere: no member is active.
    Nobody,
    /// At the peer of this number, by the caller's count.
    At(usize),
}

/// The limits of a check that one peer decides: one message, decided in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The peer, by the caller's count.
    pub owner: usize,
    /// The limits.
    pub limits: Indices,
}

/// Where each limit of one check is decided. No allocation for up to two limits.
#[derive(Clone, Debug)]
pub struct Plan {
    mode: Mode,
    local: Indices,
    ownerless: Indices,
    remote: SmallVec<[Group; 1]>,
}

impl Plan {
    /// Plans a check; `place_of` says where a slot is decided.
    #[must_use]
    pub fn new(
        applied: &AppliedLimits,
        mode: Mode,
        mut place_of: impl FnMut(SlotId) -> Place,
    ) -> Self {
        let mut plan = Self {
            mode,
            local: Indices::new(),
            ownerless: Indices::new(),
            remote: SmallVec::new(),
        };
        for (limit, applied) in applied.iter().enumerate() {
            match place_of(applied.key.slot()) {
                Place::Nobody => plan.ownerless.push(limit),
                Place::Here => plan.local.push(limit),
                Place::At(owner) => plan.add_remote(owner, limit),
            }
        }
        plan
    }

    fn add_remote(&mut self, owner: usize, limit: usize) {
        match self.remote.iter_mut().find(|group| group.owner == owner) {
            Some(group) => group.limits.push(limit),
            None => self.remote.push(Group {
                owner,
                limits: Indices::from_slice(&[limit]),
            }),
        }
    }

    /// Whether it consumes.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// The limits that this node decides: first, in one step.
    #[must_use]
    pub fn local(&self) -> &[usize] {
        &self.local
    }

    /// The limits that nobody owns, as no member is active: by fallback, after the local ones.
    #[must_use]
    pub fn ownerless(&self) -> &[usize] {
        &self.ownerless
    }

    /// The groups of peers, asked at once after the local ones have admitted.
    #[must_use]
    pub fn remote(&self) -> &[Group] {
        &self.remote
    }
}

#[cfg(test)]
pub(crate) mod tests;
