//! The network between the nodes of one simulation: datagrams that are late, lost, or cut off, by the
//! seed and by what the scenario orders.
//!
//! A datagram's fate is settled when it is sent; a block that comes later does not catch it. What is on
//! its way waits in one queue ordered by (due time, sequence number), which one task empties
//! ([`Network::deliver`]).
//!
//! Invariants: a fate depends on the seed, the orders and the datagrams sent before, on nothing else;
//! every datagram sent is in the trace once; wakers are called without the lock.
//!
//! Tokio's timers tick in milliseconds, so a datagram arrives at the first tick at or after its due
//! time; datagrams of one tick arrive in the order of their due times.

mod fabric;
mod link;
mod socket;
#[cfg(test)]
mod tests;
mod trace;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use thiserror::Error;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use self::fabric::{Fabric, Outgoing};
pub use self::{
    link::LinkConditions,
    socket::SimSocket,
    trace::{Difference, Fate, Record, Trace},
};

/// A network. Clones are handles to the same one.
#[derive(Clone, Debug)]
pub struct Network {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    origin: Instant,
    fabric: Mutex<Fabric>,
    /// Told when the head of the queue may have changed.
    queued: Notify,
}

/// What a drop predicate is shown of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Its number among all datagrams of the network, from 0.
    pub sequence: u64,
    /// Its number among those of this sender to this receiver, from 0.
    pub sequence_on_link: u64,
    /// Virtual time since the start of the run.
    pub sent_at: Duration,
    /// The sender.
    pub from: SocketAddr,
    /// The receiver.
    pub to: SocketAddr,
    /// The bytes, encrypted as they are on a wire.
    pub contents: &'a [u8],
}

/// A socket could not be made. The scenario's fault; nothing was changed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum BindError {
    /// The address has a socket. Unplug it first.
    #[error("{0} is in use")]
    InUse(SocketAddr),
}

impl Network {
    /// A network without sockets whose time starts now, under [`LinkConditions::default`].
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the simulation's clock starts here"
    )]
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            shared: Arc::new(Shared {
                origin: Instant::now(),
                fabric: Mutex::new(Fabric::new(seed)),
                queued: Notify::new(),
            }),
        }
    }

    /// Virtual time since the start of the run.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the simulation's clock")]
    pub fn now(&self) -> Duration {
        Instant::now().saturating_duration_since(self.shared.origin)
    }

    /// A socket with that address, which ends with the last clone of its `Arc`.
    ///
    /// # Errors
    /// [`BindError`] if the address has a socket that is not unplugged.
    pub fn bind(&self, address: SocketAddr) -> Result<Arc<SimSocket>, BindError> {
        let plug = self.shared.fabric.lock().plug_in(address);
        let plug = plug.ok_or(BindError::InUse(address))?;
        Ok(Arc::new(SimSocket::new(self.clone(), plug)))
    }

    /// Takes the socket of that address off the network for ever, without a word to its holder: what it
    /// sends is lost, and nothing arrives. The address is free at once. So it looks when a machine dies.
    pub fn unplug(&self, address: SocketAddr) {
        self.shared.fabric.lock().unplug(address);
    }

    /// Keeps what arrives at an address for later and loses what it sends, as if its holder did not run;
    /// its holder does not notice.
    pub fn suspend(&self, address: SocketAddr) {
        let waker = self.shared.fabric.lock().set_suspended(address, true);
        debug_assert!(waker.is_none(), "nobody is woken by a suspension");
    }

    /// Ends [`suspend`](Self::suspend): what waited arrives now.
    pub fn resume(&self, address: SocketAddr) {
        let waker = self.shared.fabric.lock().set_suspended(address, false);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The conditions of every link without conditions of its own.
    pub fn set_conditions(&self, conditions: LinkConditions) {
        self.shared.fabric.lock().links.common = conditions;
    }

    /// The conditions of one direction between two addresses, instead of the common ones.
    pub fn set_link(&self, from: SocketAddr, to: SocketAddr, conditions: LinkConditions) {
        self.shared
            .fabric
            .lock()
            .links
            .own
            .insert((from, to), conditions);
    }

    /// Ends the conditions of their own of all links.
    pub fn reset_links(&self) {
        self.shared.fabric.lock().links.own.clear();
    }

    /// Loses everything from now on in one direction between two addresses.
    pub fn block(&self, from: SocketAddr, to: SocketAddr) {
        self.shared.fabric.lock().links.blocked.insert((from, to));
    }

    /// Loses everything from now on between two addresses, in both directions.
    pub fn block_both(&self, one: SocketAddr, other: SocketAddr) {
        self.block(one, other);
        self.block(other, one);
    }

    /// Ends a block in one direction.
    pub fn heal(&self, from: SocketAddr, to: SocketAddr) {
        self.shared.fabric.lock().links.blocked.remove(&(from, to));
    }

    /// Ends every block.
    pub fn heal_all(&self) {
        self.shared.fabric.lock().links.blocked.clear();
    }

    /// Loses every datagram that the predicate says yes to; replaces the predicate before it. It is
    /// asked once for each datagram that nothing else lost. It must not call the network.
    pub fn drop_where(&self, predicate: impl FnMut(Datagram<'_>) -> bool + Send + 'static) {
        self.shared.fabric.lock().predicate = Some(Box::new(predicate));
    }

    /// Ends [`drop_where`](Self::drop_where).
    pub fn drop_nothing(&self) {
        self.shared.fabric.lock().predicate = None;
    }

    /// All datagrams sent until now.
    #[must_use]
    pub fn trace(&self) -> Trace {
        self.shared.fabric.lock().trace.clone()
    }

    /// Sends a datagram from a plugged socket.
    fn send(&self, outgoing: Outgoing<'_>) {
        let now = self.now();
        self.shared.fabric.lock().send(now, outgoing);
        self.shared.queued.notify_one();
    }

    /// Carries datagrams to their receivers, for ever.
    pub(crate) async fn deliver(self) {
        loop {
            let (wakers, next_due) = self.shared.fabric.lock().arrivals(self.now());
            for waker in wakers {
                waker.wake();
            }
            let queued = self.shared.queued.notified();
            // `None` waits for the next datagram sent; an overflow can only be centuries away.
            match next_due.and_then(|due| self.shared.origin.checked_add(due)) {
                None => queued.await,
                Some(due) => tokio::select! {
                    biased;
                    () = queued => {}
                    () = sleep_until(due) => {}
                },
            }
        }
    }
}
