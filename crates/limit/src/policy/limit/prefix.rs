//! The fixed parts of a limit's key (rule 6).
//!
//! Knows nothing of attributes. Invariant: a number that may change while the counter goes on is no part.

use super::{Kind, tiers::Tiers};
use crate::{
    key::{HashKey, KeyHasher},
    rule::{Algorithm, Alignment},
};

/// The fixed parts of a limit's key, hashed: kind, policy, name, and what its counter is made of.
pub(super) fn prefix_of(
    policy: &str,
    kind: Kind,
    name: &str,
    tiers: &Tiers,
    hash_key: &HashKey,
) -> KeyHasher {
    let kind: &[u8] = match kind {
        Kind::Configured | Kind::Required => b"configured",
        Kind::Inline => b"inline",
    };
    let mut hasher = KeyHasher::new(hash_key);
    hasher.part(kind);
    hasher.part(policy.as_bytes());
    hasher.part(name.as_bytes());
    // All tiers have the same algorithm and window.
    if let Some(rules) = tiers.usual() {
        add_algorithm(&mut hasher, &rules.named.algorithm);
    }
    hasher
}

fn add_algorithm(hasher: &mut KeyHasher, algorithm: &Algorithm) {
    hasher.part(algorithm.name().as_bytes());
    match algorithm {
        Algorithm::SlidingWindow(rule) => {
            hasher.part(&rule.window.span().as_nanos().to_le_bytes());
            hasher.part(&[rule.slices]);
        }
        Algorithm::FixedWindow(rule) => match rule.alignment {
            Alignment::Epoch(window) => hasher.part(&window.span().as_nanos().to_le_bytes()),
            Alignment::Calendar(unit, zone) => {
                hasher.part(unit.name().as_bytes());
                hasher.part(zone.name().as_bytes());
            }
        },
        Algorithm::SlidingLog(_)
        | Algorithm::TokenBucket(_)
        | Algorithm::LeakyBucket(_)
        | Algorithm::Concurrency(_) => {
            hasher.part(&algorithm.window().span().as_nanos().to_le_bytes());
        }
    }
}
