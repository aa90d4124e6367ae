//! What goes wrong in a run, by its seed.

use std::time::Duration;

use rand::{RngExt, SeedableRng, rngs::StdRng};

use crate::rig::Seat;

/// When faults may begin, after the cluster has formed.
pub(super) const FAULTS_FROM: Duration = Duration::from_secs(3);
/// All are over by then.
pub(super) const FAULTS_UNTIL: Duration = Duration::from_secs(20);
/// The most of one run.
const MAX_STEPS: u64 = 4;
/// From the beginning of one planned change to that of the next, in milliseconds.
const PLANNED_GAP: u64 = 12_000;
/// Seats that are empty at first, for nodes that join.
pub(super) const SPARE_SEATS: u8 = 2;
/// No fault begins so shortly before the end.
const SHORTEST: Duration = Duration::from_secs(1);
/// The longest that one lasts, in milliseconds.
const LONGEST: u64 = 6_000;

/// A run's nodes and faults.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// How many nodes there are at first.
    pub(super) nodes: u8,
    /// In no order; they may overlap.
    pub(super) steps: Vec<Step>,
}

/// One fault.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// When, since the cluster has formed.
    pub(super) at: Duration,
    /// When it is over.
    pub(super) over: Duration,
    /// What.
    pub(super) what: What,
}

/// What goes wrong, or is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Datagrams overtake each other.
    Reorder,
    /// Datagrams arrive twice.
    Copy,
    /// So many of a thousand are lost, everywhere.
    Lose(u16),
    /// One link takes so many milliseconds longer.
    Slow(Seat, Seat, u64),
    /// One direction of one link is cut.
    CutOneWay(Seat, Seat),
    /// A link is cut.
    Cut(Seat, Seat),
    /// All links between those up to a seat and the others are cut.
    Partition(Seat),
    /// The same, but only what is sent to the others is lost.
    PartitionOneWay(Seat),
    /// A node dies, and comes back when it is over.
    Crash(Seat),
    /// A node does not run.
    Suspend(Seat),
    /// A node leaves, and comes back when it is over.
    Restart(Seat),
    /// A node leaves for ever.
    Leave(Seat),
    /// A node that was not there joins.
    Join(Seat),
    /// All nodes leave and come back, one after the other.
    RollingRestart,
}

impl What {
    /// Its kind, as the summary of runs names it.
    pub(super) const fn kind(self) -> &'static str {
        match self {
            Self::Reorder => "reordering",
            Self::Copy => "duplication",
            Self::Lose(_) => "loss",
            Self::Slow(..) => "slow link",
            Self::CutOneWay(..) => "link cut one way",
            Self::Cut(..) => "link cut",
            Self::Partition(_) => "partition",
            Self::PartitionOneWay(_) => "partition one way",
            Self::Crash(_) => "crash",
            Self::Suspend(_) => "suspension",
            Self::Restart(_) => "restart",
            Self::Leave(_) => "leave",
            Self::Join(_) => "join",
            Self::RollingRestart => "rolling restart",
        }
    }
}

/// The sort of a run: what its faults have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    /// None.
    Calm,
    /// Members come and go as they should, one change after the other.
    Planned,
    /// One node dies, and nothing else happens: what is lost is told exactly.
    Crash,
    /// The network is at fault.
    Network,
    /// Anything, at any time.
    Any,
}

impl Sort {
    const fn of(seed: u64) -> Self {
        match seed % 6 {
            0 => Self::Calm,
            1 => Self::Planned,
            2 => Self::Crash,
            3 => Self::Network,
            _ => Self::Any,
        }
    }
}

impl Plan {
    /// The plan of a seed.
    pub(super) fn of(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let nodes = random.random_range(3..=6);
        let mut at = |from: Duration| {
            let last = FAULTS_UNTIL.saturating_sub(SHORTEST);
            random.random_range(millis(from)..=millis(last))
        };
        let begins = match Sort::of(seed) {
            Sort::Calm => Vec::new(),
            Sort::Planned => vec![millis(FAULTS_FROM), millis(FAULTS_FROM) + PLANNED_GAP],
            Sort::Crash => vec![at(FAULTS_FROM)],
            Sort::Network | Sort::Any => {
                let steps = 1 + at(Duration::ZERO) % MAX_STEPS;
                (0..steps).map(|_| at(FAULTS_FROM)).collect()
            }
        };
        let steps = begins
            .into_iter()
            .map(|at| step(&mut random, Sort::of(seed), nodes, at))
            .collect();
        Self { nodes, steps }
    }
}

fn step(random: &mut StdRng, sort: Sort, nodes: u8, at: u64) -> Step {
    let until = millis(FAULTS_UNTIL);
    let over = (at + random.random_range(200..LONGEST)).min(until);
    Step {
        at: Duration::from_millis(at),
        over: Duration::from_millis(over),
        what: what(random, sort, nodes),
    }
}

fn what(random: &mut StdRng, sort: Sort, nodes: u8) -> What {
    let one = random.random_range(1..=nodes);
    let other = (one + random.random_range(1..nodes) - 1) % nodes + 1;
    let (one, other) = (Seat(one), Seat(other));
    let kind = match sort {
        Sort::Calm | Sort::Any => random.random_range(0..14),
        Sort::Network => random.random_range(0..9),
        Sort::Crash => 9,
        Sort::Planned => random.random_range(10..14),
    };
    match kind {
        0 => What::Reorder,
        1 => What::Copy,
        2 => What::Lose(random.random_range(5..100)),
        3 => What::Slow(one, other, random.random_range(3..200)),
        4 => What::CutOneWay(one, other),
        5 => What::Cut(one, other),
        6 => What::Partition(Seat(random.random_range(1..nodes))),
        7 => What::PartitionOneWay(Seat(random.random_range(1..nodes))),
        8 => What::Suspend(one),
        9 => What::Crash(one),
        10 => What::Restart(one),
        11 => What::Leave(one),
        12 => What::Join(Seat(nodes + random.random_range(1..=SPARE_SEATS))),
        _ => What::RollingRestart,
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
