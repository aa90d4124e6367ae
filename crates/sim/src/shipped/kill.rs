//! Many nodes, and what a crash of a part of them all at once comes to: how long until the others agree
//! on who is left.

use std::{sync::Arc, time::Duration};

use tollgate_node::{Node, Timeouts};

use crate::{
    Simulation,
    rig::{Rig, RigError, Seat, Settings},
};

/// How long so many nodes may take to form a cluster.
const FORM: Duration = Duration::from_secs(60);
/// How long it is waited for agreement, whatever is promised.
const PATIENCE: Duration = Duration::from_secs(60);
const MILLION: Duration = Duration::from_secs(600);

/// What a mass crash came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Killed {
    /// Nodes that were killed.
    pub killed: u8,
    /// Virtual time that the cluster took to form.
    pub formed: Duration,
    /// Virtual time from the crash until all that are left went by one placement of themselves.
    pub agreed: Duration,
    /// Datagrams of the run.
    pub datagrams: u64,
}

/// Within which all views agree again after a part of so many nodes died at once.
///
/// Each dead node must be probed by someone (the probe's period is half a second, and the nodes left go over
/// all others in a random order: twelve periods for the last of many), the probe must fail (one period), the
/// suspicion must end (2 s · log10 N, at least 2 s), the news must spread (a second for a hundred
/// nodes), and the grace (0.3 s) must pass.
#[must_use]
pub fn agreement_bound(nodes: u8) -> Duration {
    let decades = f64::from(nodes).log10().max(1.0);
    Duration::from_millis(12 * 500 + 500 + 1_000 + 300) + Duration::from_secs(2).mul_f64(decades)
}

/// Starts so many nodes and kills so many of a hundred of them.
///
/// # Errors
/// In words: they did not form a cluster, or did not agree in time.
pub fn kill(seed: u64, nodes: u8, percent: u8) -> Result<Killed, String> {
    let run = Simulation::run_for(seed, MILLION, async |simulation| {
        scenario(simulation, nodes, percent).await
    });
    let finished = run.map_err(|error| error.to_string())?;
    let killed = finished.output.map_err(|error| error.to_string())?;
    Ok(Killed {
        datagrams: finished.trace.sent(),
        ..killed
    })
}

async fn scenario(simulation: &Simulation, nodes: u8, percent: u8) -> Result<Killed, RigError> {
    let settings = Settings {
        limits: Vec::new(),
        timeouts: Timeouts::default(),
    };
    let rig = Rig::new(simulation, settings)?;
    rig.start_all(nodes)?;
    let formed = rig.settle(FORM).await?;
    let killed = u16::from(nodes) * u16::from(percent.min(99)) / 100;
    let killed = u8::try_from(killed).unwrap_or(u8::MAX);
    for seat in victims(simulation, nodes, killed) {
        let _dead = rig.crash(seat);
    }
    let begun = rig.network().now();
    let left = rig.nodes();
    let agree = || left.iter().all(|(_, node)| knows(node, left.len()));
    rig.wait_until("one placement of those left", PATIENCE, agree)
        .await?;
    Ok(Killed {
        killed,
        formed,
        agreed: rig.network().now().saturating_sub(begun),
        datagrams: 0,
    })
}

/// Those that die: never the first, at which the others found each other.
fn victims(simulation: &Simulation, nodes: u8, killed: u8) -> Vec<Seat> {
    let mut seats: Vec<u8> = (2..=nodes).collect();
    seats.sort_by_key(|seat| simulation.seed_of_part(u64::from(*seat) | 1 << 40));
    seats.truncate(usize::from(killed));
    seats.into_iter().map(Seat).collect()
}

/// Whether a node's placement is of so many members. They are those left: nobody comes.
fn knows(node: &Arc<Node>, members: usize) -> bool {
    node.view().placement.members().len() == members
}
