//! Changes of counters that wait for somebody who takes them.
//!
//! An amendment waits here when its owner is not known, when too much is outstanding towards it, or when
//! it turned out not to be the owner (any more). One task hands them on as soon as there is an owner that
//! has not just refused it, and looks again at each change of the routes and every [`RETRY`].
//!
//! Knows nothing of receipts or checks. Invariants: at most [`MAX_WAITING`] wait, and what has a
//! reserved [`Room`] is never turned away: it keeps its room on its way by a link too, until the owner has
//! it. What comes back without room, permits of refused checks, is lost where there is none, with a line
//! in the log; such a permit ends with its time to live. An amendment is in one place at a time: here, in
//! one link's queue, or done; it leaves when it has expired.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tollgate_cluster::Returned;
use tollgate_limit::{Nanos, NodeId};
use tracing::{debug, warn};

use crate::{clock::Clock as _, link::NotTaken, node::Node, routes::Routes, serve::Keeper};

/// The most changes that wait, those included that room is reserved for and those on links that have room.
pub(crate) const MAX_WAITING: usize = 4_096;
/// How often what nobody takes is offered again.
const RETRY: Nanos = Nanos::from_millis(100);

/// All that waits.
#[derive(Debug)]
pub(crate) struct Errands {
    waiting: Mutex<VecDeque<Errand>>,
    room: Arc<Semaphore>,
    arrived: Notify,
}

/// Room for one change or more, free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Room(OwnedSemaphorePermit);

impl Room {
    /// Takes room for one out of it.
    pub(crate) fn split(&mut self) -> Option<Self> {
        self.0.split(1).map(Self)
    }
}

/// One change that waits.
#[derive(Debug)]
struct Errand {
    returned: Returned,
    /// Who refused it; it is not asked again before the instant.
    refused: Option<(NodeId, Nanos)>,
    room: Room,
}

impl Default for Errands {
    fn default() -> Self {
        Self {
            waiting: Mutex::default(),
            room: Arc::new(Semaphore::new(MAX_WAITING)),
            arrived: Notify::new(),
        }
    }
}

impl Errands {
    /// Reserves room for so many changes; `None` if there is not as much.
    pub(crate) fn reserve(&self, changes: usize) -> Option<Room> {
        let changes = u32::try_from(changes).ok()?;
        let permits = Arc::clone(&self.room).try_acquire_many_owned(changes);
        permits.ok().map(Room)
    }

    /// A change that nobody can be given now.
    pub(crate) fn put(&self, room: Room, returned: Returned) {
        self.add([Errand {
            returned,
            refused: None,
            room,
        }]);
    }

    /// Changes that a peer did not take.
    pub(crate) fn hand_back(
        &self,
        now: Nanos,
        peer: &NodeId,
        returned: impl IntoIterator<Item = (Returned, Option<Room>)>,
    ) {
        let not_before = now.saturating_add(RETRY);
        self.add(returned.into_iter().filter_map(|(returned, room)| {
            let Some(room) = room.or_else(|| self.reserve(1)) else {
                warn!(%peer, "a change of a counter is lost: {MAX_WAITING} wait for an owner");
                return None;
            };
            Some(Errand {
                returned,
                refused: Some((peer.clone(), not_before)),
                room,
            })
        }));
    }

    /// How many wait.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.lock().len()
    }

    fn add(&self, errands: impl IntoIterator<Item = Errand>) {
        self.waiting.lock().extend(errands);
        self.arrived.notify_one();
    }
}

/// Hands on what waits, until the node is gone.
pub(crate) async fn run(node: Weak<Node>) {
    loop {
        let Some(strong) = node.upgrade() else { return };
        let errands = Arc::clone(&strong.errands);
        let routes_changed = Arc::clone(&strong.routes_changed);
        let changed = routes_changed.notified();
        strong.run_errands(strong.clock.now());
        drop(strong);
        tokio::select! {
            biased;
            () = errands.arrived.notified() => {}
            () = changed => {}
            () = tokio::time::sleep(Duration::from(RETRY)) => {}
        }
    }
}

impl Node {
    fn run_errands(&self, now: Nanos) {
        let errands = std::mem::take(&mut *self.errands.waiting.lock());
        if errands.is_empty() {
            return;
        }
        let routes = self.routes.load();
        let still = errands
            .into_iter()
            .filter_map(|errand| self.hand_on(now, &routes, errand));
        let mut still: VecDeque<_> = still.collect();
        if !still.is_empty() {
            let mut waiting = self.errands.waiting.lock();
            still.append(&mut waiting);
            *waiting = still;
        }
    }

    /// Changes a counter that this node keeps; false if its slot was closed this instant.
    pub(crate) fn amend_here(&self, now: Nanos, change: Returned) -> bool {
        let Returned { amendment, .. } = change.for_owner(self.boot);
        let store = &self.owner.store;
        store.try_amend(now, &amendment.ask, amendment.change)
    }

    /// Hands it on; it comes back if it must wait on.
    fn hand_on(&self, now: Nanos, routes: &Routes, errand: Errand) -> Option<Errand> {
        let change = errand.returned;
        let Returned { amendment, .. } = change;
        if change.expires <= now {
            debug!("a change of a counter has expired before its owner was reached");
            return None;
        }
        let link = match self.owner.keeper(routes, amendment.ask.key.slot()) {
            Keeper::Here => {
                let is_done = self.amend_here(now, change);
                return (!is_done).then_some(errand);
            }
            Keeper::Peer(link) => link,
            Keeper::Nobody => return Some(errand),
        };
        if let Some((peer, not_before)) = &errand.refused
            && peer == link.peer()
            && now < *not_before
        {
            // It goes by other members than this node.
            self.control.pull(peer);
            return Some(errand);
        }
        let Errand {
            returned,
            refused,
            room,
        } = errand;
        match link.amend_until(now, returned, Some(room)) {
            Ok(_) => None,
            Err(NotTaken(room)) => room.map(|room| Errand {
                returned,
                refused,
                room,
            }),
        }
    }
}
