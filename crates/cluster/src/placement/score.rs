//! The hash that ranks members: fixed, whole numbers, the same on every platform.
//!
//! A member is a 64-bit seed, the SipHash of its node id; a draw of a slot is a 64-bit point. The
//! score is a mix of both, a bijection of their exclusive or, so that scores of one slot are as good
//! as random and cost a few nanoseconds. The constants are for the cluster's life: another value is
//! another placement.

use std::hash::Hasher as _;

use siphasher::sip::SipHasher13;
use tollgate_limit::NodeId;

use super::Member;

/// A member as far as it is ranked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weighted {
    seed: u64,
    weight: u8,
}

impl From<&Member> for Weighted {
    fn from(member: &Member) -> Self {
        Self {
            seed: seed_of(&member.node),
            weight: member.weight,
        }
    }
}

impl Weighted {
    /// The best of the member's draws for a slot: so its share is proportional to its weight.
    pub(super) fn score(&self, draws: &Draws) -> u64 {
        let first = mix(self.seed ^ draws.first);
        (1..self.weight).fold(first, |best, draw| {
            best.max(mix(self.seed ^ point(draws.slot, draw)))
        })
    }
}

/// The draws of one slot, the first at hand since most members have no other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draws {
    slot: u16,
    first: u64,
}

impl Draws {
    pub(super) const fn of(slot: u16) -> Self {
        Self {
            slot,
            first: point(slot, 0),
        }
    }
}

/// A hash of the set of (node id, weight); `members` are in the order of node ids.
pub(super) fn fingerprint_of(members: &[Member]) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(FINGERPRINT_KEY, 0);
    for member in members {
        write_node(&mut hasher, &member.node);
        hasher.write(&[member.weight]);
    }
    hasher.finish()
}

fn seed_of(node: &NodeId) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(SEED_KEY, 0);
    write_node(&mut hasher, node);
    hasher.finish()
}

/// The length goes first, so that two lists of names never read the same.
fn write_node(hasher: &mut SipHasher13, node: &NodeId) {
    let name = node.as_str().as_bytes();
    let length = u8::try_from(name.len()).unwrap_or(u8::MAX);
    hasher.write(&[length]);
    hasher.write(name);
}

const fn point(slot: u16, draw: u8) -> u64 {
    let [high, low] = slot.to_be_bytes();
    mix(POINT_KEY ^ u64::from_be_bytes([0, 0, 0, 0, 0, draw, high, low]))
}

/// The finisher of `SplitMix64`: a bijection in which every input bit moves every output bit.
const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

const SEED_KEY: u64 = 0x746f_6c6c_6761_7465;
const FINGERPRINT_KEY: u64 = 0x706c_6163_656d_656e;
const POINT_KEY: u64 = 0x736c_6f74_2064_7261;
