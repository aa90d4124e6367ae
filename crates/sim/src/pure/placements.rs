//! Placements of the pure world's clusters, each made once: they are functions of the names.

use std::{cell::RefCell, collections::BTreeMap, sync::Arc};

use tollgate_cluster::Placement;
use tollgate_limit::NodeId;

/// The most placements that are kept on a thread, 256 KiB each.
const MAX_KEPT: usize = 256;

thread_local! {
    static KEPT: RefCell<BTreeMap<u32, Arc<Placement>>> = const { RefCell::new(BTreeMap::new()) };
}

/// The name of a node.
pub(super) fn name_of(node: usize) -> NodeId {
    let names = ["n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9"];
    let name = names.get(node).copied().unwrap_or("n0");
    // The names above are legal, and so is any that were added.
    NodeId::new(name).unwrap_or_else(|| name_of(0))
}

/// The node of a name.
pub(super) fn node_of(name: &NodeId) -> Option<usize> {
    let number: usize = name.as_str().strip_prefix('n')?.parse().ok()?;
    number.checked_sub(1)
}

/// The placement of these nodes.
pub(super) fn placement_of(active: impl Iterator<Item = usize>) -> Arc<Placement> {
    let mut members: Vec<_> = active.collect();
    members.sort_unstable();
    let bits = members.iter().fold(0_u32, |bits, node| {
        bits | 1_u32.rotate_left(u32::try_from(*node).unwrap_or(0))
    });
    KEPT.with_borrow_mut(|kept| {
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        let make = || {
            let members: Vec<_> = members.iter().map(|node| (name_of(*node), 1)).collect();
            Arc::new(Placement::new(&members))
        };
        Arc::clone(kept.entry(bits).or_insert_with(make))
    })
}
