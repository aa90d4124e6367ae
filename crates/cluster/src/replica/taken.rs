//! Taking over what another node has counted.
//!
//! What is new here is to go on to this node's own followers:
//! [`Source::handle_changed`](super::Source::handle_changed).

#[cfg(feature = "sabotage")]
mod broken;

use tollgate_limit::{Merged, Nanos, Series, Store};

/// What became of series that came from another node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakenIn {
    /// New here, or newer than what was held.
    pub taken: usize,
    /// Held already, or this node's own.
    pub known: usize,
    /// Not kept.
    pub refused: usize,
}

/// Takes over what another node counted, each series once.
pub fn take_in(store: &Store, now: Nanos, series: &[Series]) -> TakenIn {
    let mut sum = TakenIn::default();
    for series in series {
        let count = match merge(store, now, series) {
            Merged::Taken => &mut sum.taken,
            Merged::Known | Merged::Own => &mut sum.known,
            Merged::Refused => &mut sum.refused,
        };
        *count = count.saturating_add(1);
    }
    sum
}

#[cfg(not(feature = "sabotage"))]
fn merge(store: &Store, now: Nanos, series: &Series) -> Merged {
    store.merge(now, series)
}

#[cfg(feature = "sabotage")]
use self::broken::merge;
