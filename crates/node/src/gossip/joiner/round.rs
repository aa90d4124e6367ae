//! One round of asking: looks up the names, dials all addresses at once, copies what it can.
//!
//! Invariant: it ends, at the latest after a look-up, a dial and a copy have each timed out.

use std::{collections::BTreeSet, net::SocketAddr, sync::Arc};

use tokio::{sync::mpsc, task::JoinSet, time::timeout};

use super::super::{
    copy::{self, Copied, CopyError},
    events::Event,
};
use crate::{
    config::Seed,
    seeds::{LOOK_UP_TIMEOUT, MAX_ADDRESSES, Resolve},
    transport::{DialError, Transport},
};

/// The most addresses of one round.
pub(super) const MAX_TARGETS: usize = 64;

/// What came of asking.
#[derive(Debug)]
pub(in crate::gossip) enum Sought {
    /// Somebody answered.
    Answer {
        /// Where it was asked.
        address: SocketAddr,
        /// What it said.
        result: Result<Box<Copied>, CopyError>,
    },
    /// The name of a seed has no address.
    NoAddress {
        /// The name.
        host: String,
        /// Why.
        error: String,
    },
    /// The round is over.
    Over {
        /// Whether everybody was found and answered.
        complete: bool,
    },
}

/// One round.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) seeds: Vec<Seed>,
    pub(super) addresses: BTreeSet<SocketAddr>,
    pub(super) own: SocketAddr,
    pub(super) transport: Arc<Transport>,
    pub(super) resolver: Arc<dyn Resolve>,
    pub(super) fingerprint: u64,
}

impl Round {
    pub(super) async fn run(mut self, events: mpsc::Sender<Event>) {
        let mut complete = self.look_up(&events).await;
        self.addresses.remove(&self.own);
        let mut asked = JoinSet::new();
        for address in self.addresses.iter().take(MAX_TARGETS) {
            asked.spawn(ask(self.transport.clone(), *address, self.fingerprint));
        }
        while let Some(answered) = asked.join_next().await {
            let Ok((address, result)) = answered else {
                complete = false;
                continue;
            };
            // This node's own address among its seeds is nobody who could be missing.
            if matches!(result, Err(CopyError::Dial(DialError::Itself))) {
                continue;
            }
            complete &= result.is_ok();
            let result = result.map(Box::new);
            let event = Event::Sought(Sought::Answer { address, result });
            if events.send(event).await.is_err() {
                return;
            }
        }
        if events
            .send(Event::Sought(Sought::Over { complete }))
            .await
            .is_err()
        {
            tracing::trace!("control has ended");
        }
    }

    /// Adds the seeds' addresses; `false` if one has none.
    async fn look_up(&mut self, events: &mpsc::Sender<Event>) -> bool {
        let mut complete = true;
        let mut looked_up = JoinSet::new();
        for seed in &self.seeds {
            match seed {
                Seed::Address(address) => {
                    self.addresses.insert(*address);
                }
                Seed::Name { host, port } => {
                    looked_up.spawn(addresses_of(self.resolver.clone(), host.clone(), *port));
                }
            }
        }
        while let Some(looked_up) = looked_up.join_next().await {
            match looked_up {
                Ok(Ok(addresses)) => self.addresses.extend(addresses),
                Ok(Err((host, error))) => {
                    complete = false;
                    let event = Event::Sought(Sought::NoAddress { host, error });
                    if events.send(event).await.is_err() {
                        tracing::trace!("control has ended");
                    }
                }
                Err(_cancelled) => complete = false,
            }
        }
        complete
    }
}

/// The addresses of a name, at least one; or the name, and why there is none.
async fn addresses_of(
    resolver: Arc<dyn Resolve>,
    host: String,
    port: u16,
) -> Result<Vec<SocketAddr>, (String, String)> {
    match timeout(LOOK_UP_TIMEOUT, resolver.look_up(&host, port)).await {
        Ok(Ok(addresses)) if addresses.is_empty() => Err((host, "it has no address".to_owned())),
        Ok(Ok(addresses)) => Ok(addresses.into_iter().take(MAX_ADDRESSES).collect()),
        Ok(Err(error)) => Err((host, error.to_string())),
        Err(_elapsed) => Err((host, "looking it up took too long".to_owned())),
    }
}

async fn ask(
    transport: Arc<Transport>,
    address: SocketAddr,
    fingerprint: u64,
) -> (SocketAddr, Result<Copied, CopyError>) {
    let result = match transport.connect_gossip(address, None).await {
        Ok(connection) => copy::fetch(connection, fingerprint).await,
        Err(error) => Err(error.into()),
    };
    (address, result)
}
