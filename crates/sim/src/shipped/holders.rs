//! Who decides for the keys of a run, looked at often.
//!
//! A hold lasts from when it was first seen to when it was first seen no more.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::sleep;
use tollgate_limit::{Nanos, SlotId};
use tollgate_wire::identity::BootId;

use crate::{history::Held, rig::Rig};

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(5);

/// Looks at a rig's nodes until it is dropped.
#[derive(Debug)]
pub(super) struct Holders {
    seen: Arc<Mutex<Seen>>,
    looking: tokio::task::JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Seen {
    ended: Vec<Held>,
    /// By key and boot.
    open: BTreeMap<(String, u64), Held>,
}

impl Holders {
    /// Watches these keys.
    pub(super) fn watch(rig: &Rig, keys: Vec<(String, SlotId)>) -> Self {
        let seen = Arc::<Mutex<Seen>>::default();
        let looking = tokio::spawn(look(rig.clone(), keys, Arc::clone(&seen)));
        Self { seen, looking }
    }

    /// All that was seen.
    pub(super) fn stop(self) -> Vec<Held> {
        self.looking.abort();
        let mut seen = self.seen.lock();
        let open = std::mem::take(&mut seen.open).into_values();
        let mut all = std::mem::take(&mut seen.ended);
        all.extend(open.map(|held| Held {
            until: Nanos::MAX,
            ..held
        }));
        all
    }
}

async fn look(rig: Rig, keys: Vec<(String, SlotId)>, seen: Arc<Mutex<Seen>>) {
    loop {
        let now = Nanos::from(rig.network().now());
        let mut held = BTreeMap::new();
        for (_seat, node) in rig.heard() {
            for (key, slot) in &keys {
                if node.holds(*slot) {
                    let boot = node.view().identity.boot.0;
                    held.insert((key.clone(), boot), node.config().node.clone());
                }
            }
        }
        seen.lock().look(now, held);
        sleep(LOOK).await;
    }
}

impl Seen {
    fn look(&mut self, now: Nanos, held: BTreeMap<(String, u64), tollgate_limit::NodeId>) {
        let over: Vec<_> = self
            .open
            .keys()
            .filter(|it| !held.contains_key(it))
            .cloned()
            .collect();
        for one in over {
            if let Some(held) = self.open.remove(&one) {
                self.ended.push(Held { until: now, ..held });
            }
        }
        for ((key, boot), node) in held {
            self.open.entry((key.clone(), boot)).or_insert(Held {
                key,
                node,
                boot: BootId(boot),
                since: now,
                until: now,
            });
        }
    }
}
