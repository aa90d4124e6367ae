//! What a connection has done, and whether it has done anything of late.
//!
//! Counters that the connection's own task raises, relaxed: nothing hangs on their order.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::http::HttpConfig;

/// Looks at a connection for each of its shorter timeout: a timeout is kept to a quarter.
const LOOKS_PER_TIMEOUT: u32 = 4;
/// The shortest time between two looks.
const MIN_LOOK: Duration = Duration::from_millis(5);

/// What a connection has done.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// Reads that brought bytes.
    reads: AtomicU64,
    /// Of these, those before the last request ended.
    settled_reads: AtomicU64,
    started: AtomicU64,
    finished: AtomicU64,
}

impl Activity {
    /// Notes a read that brought bytes.
    pub(super) fn note_read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a request has started; dropping the guard ends it.
    pub(super) fn start(&self) -> InFlight<'_> {
        self.started.fetch_add(1, Ordering::Relaxed);
        InFlight(self)
    }
}

/// A request in flight.
pub(super) struct InFlight<'a>(&'a Activity);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let reads = self.0.reads.load(Ordering::Relaxed);
        self.0.settled_reads.store(reads, Ordering::Relaxed);
        self.0.finished.fetch_add(1, Ordering::Relaxed);
    }
}

/// Looks at a connection now and then.
#[derive(Debug)]
pub(super) struct Watch {
    activity: Arc<Activity>,
    look_every: Duration,
    header_looks: u128,
    idle_looks: u128,
}

impl Watch {
    pub(super) fn new(config: &HttpConfig, activity: Arc<Activity>) -> Self {
        let shorter = config.header_timeout.min(config.idle_timeout);
        let look_every = (shorter / LOOKS_PER_TIMEOUT).max(MIN_LOOK);
        let looks = |timeout: Duration| timeout.as_nanos().div_ceil(look_every.as_nanos());
        Self {
            header_looks: looks(config.header_timeout),
            idle_looks: looks(config.idle_timeout),
            activity,
            look_every,
        }
    }

    /// Ready once no request has been in flight and none has started for one of the timeouts: that of a
    /// head if bytes came that are no request yet, else that of an idle connection. Cancelled, it
    /// starts anew.
    pub(super) async fn let_go(&self) {
        let mut last_started = self.activity.started.load(Ordering::Relaxed);
        let mut quiet_looks: u128 = 0;
        let mut head_looks: u128 = 0;
        loop {
            tokio::time::sleep(self.look_every).await;
            let started = self.activity.started.load(Ordering::Relaxed);
            let finished = self.activity.finished.load(Ordering::Relaxed);
            if started != finished || started != last_started {
                last_started = started;
                (quiet_looks, head_looks) = (0, 0);
                continue;
            }
            quiet_looks += 1;
            let reads = self.activity.reads.load(Ordering::Relaxed);
            let in_head = reads > self.activity.settled_reads.load(Ordering::Relaxed);
            head_looks = if in_head { head_looks + 1 } else { 0 };
            if head_looks > self.header_looks || quiet_looks > self.idle_looks {
                return;
            }
        }
    }
}
