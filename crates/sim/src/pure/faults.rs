//! What goes wrong in a run, drawn from its seed.

use rand::{RngExt, rngs::StdRng};
use tollgate_limit::Nanos;

use super::Profile;

/// Something that is done to the cluster.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    Crash(usize),
    Start(usize),
    Leave(usize),
    /// What one sends does not reach the other.
    Cut(usize, usize),
    Mend(usize, usize),
    /// A connection breaks, in both ways of the pair.
    Break(usize, usize),
    Suspend(usize),
    Resume(usize),
    Slow(usize),
    Quick(usize),
    /// One is taken for dead by another.
    Accuse(usize, usize),
    /// By all, and hears of it.
    AccuseByAll(usize),
    /// All hear that it is not.
    Acquit(usize),
}

/// When what is done, and the end of the last.
pub(super) type Plan = Vec<(Nanos, Act)>;

/// The plan of a run: `nodes` of which `spare` are not there at the start.
pub(super) fn plan(
    rng: &mut StdRng,
    profile: Profile,
    (nodes, spare): (usize, usize),
    (from, until): (Nanos, Nanos),
) -> Plan {
    let mut plan = Plan::new();
    let mut at = from;
    let mut spares: Vec<_> = (nodes.saturating_sub(spare)..nodes).collect();
    let present = nodes.saturating_sub(spare);
    while at < until {
        let gap = match profile {
            Profile::Calm => return plan,
            Profile::Planned => 4_500,
            Profile::Crashes => rng.random_range(500..6_000),
            Profile::Cuts | Profile::Pauses | Profile::Accusations | Profile::Everything => {
                rng.random_range(200..4_000)
            }
        };
        one(rng, profile, (present, &mut spares), (at, until), &mut plan);
        at = at.saturating_add(Nanos::from_millis(gap));
    }
    plan.sort_by_key(|(at, _)| *at);
    plan
}

fn one(
    rng: &mut StdRng,
    profile: Profile,
    (present, spares): (usize, &mut Vec<usize>),
    (at, until): (Nanos, Nanos),
    plan: &mut Plan,
) {
    let node = rng.random_range(0..present);
    let other = (node + rng.random_range(1..present)) % present;
    let length = Nanos::from_millis(rng.random_range(20..5_000));
    let end = at.saturating_add(length).min(until);
    let kind = match profile {
        Profile::Calm | Profile::Planned => 0,
        Profile::Crashes => 1,
        Profile::Cuts => 2,
        Profile::Pauses => 3,
        Profile::Accusations => 4,
        Profile::Everything => rng.random_range(0..5),
    };
    match kind {
        0 => match spares.pop() {
            Some(spare) => plan.push((at, Act::Start(spare))),
            None => {
                plan.push((at, Act::Leave(node)));
                let back = at.saturating_add(Nanos::from_millis(rng.random_range(2_000..4_000)));
                plan.push((back.min(until), Act::Start(node)));
            }
        },
        1 => {
            plan.push((at, Act::Crash(node)));
            plan.push((end, Act::Start(node)));
        }
        2 => cut(rng, (node, other, present), (at, end), plan),
        3 => {
            if rng.random_range(0..3) == 0 {
                plan.push((at, Act::Slow(node)));
                plan.push((end, Act::Quick(node)));
            } else {
                plan.push((at, Act::Suspend(node)));
                plan.push((end, Act::Resume(node)));
            }
        }
        _ => {
            if rng.random_range(0..2) == 0 {
                plan.push((at, Act::Accuse(node, other)));
            } else {
                plan.push((at, Act::AccuseByAll(node)));
            }
            plan.push((end, Act::Acquit(node)));
        }
    }
}

fn cut(
    rng: &mut StdRng,
    (node, other, present): (usize, usize, usize),
    (at, end): (Nanos, Nanos),
    plan: &mut Plan,
) {
    let mut pairs = Vec::new();
    match rng.random_range(0..5) {
        0 => pairs.push((node, other)),
        1 => pairs.extend([(node, other), (other, node)]),
        2 => {
            // Alone.
            for peer in (0..present).filter(|peer| *peer != node) {
                pairs.extend([(node, peer), (peer, node)]);
            }
        }
        3 => {
            // Heard by nobody.
            pairs.extend((0..present).filter(|it| *it != node).map(|it| (node, it)));
        }
        _ => return plan.push((at, Act::Break(node, other))),
    }
    for (from, to) in pairs {
        plan.push((at, Act::Cut(from, to)));
        plan.push((end, Act::Mend(from, to)));
    }
}
