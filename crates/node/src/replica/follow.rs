//! Following one source: ordering from it, and taking in what it delivers.

use std::sync::Arc;

use quinn::{Connection, RecvStream, SendStream};
use tokio::sync::watch;
use tollgate_limit::{NodeId, Series};
use tollgate_wire::{
    frame,
    identity::{BootId, Identity},
    peer::{Hello, Request, put_request},
    replica::{Delivery, put_order, read_delivery},
};
use tracing::{debug, warn};

use super::orders::Orders;
use crate::{
    clock::Clock as _,
    frames::{Filled, FrameReader},
    serve::Owner,
};

/// Follows the peer at the other end of a connection until it breaks; with each new boot of the peer on a
/// new stream, since what an earlier boot copied says nothing of this one.
pub(crate) async fn follow(
    owner: Arc<Owner>,
    connection: Connection,
    hello: Hello,
    mut identity: watch::Receiver<Identity>,
) {
    loop {
        let Identity { node, boot, .. } = identity.borrow_and_update().clone();
        let Some(streams) = open(&connection, &hello).await else {
            return;
        };
        tokio::select! {
            biased;
            () = converse(&owner, streams, (&node, boot)) => return,
            () = other_boot(&mut identity, boot) => {}
        }
    }
}

async fn other_boot(identity: &mut watch::Receiver<Identity>, boot: BootId) {
    // When it is gone the connection is closed by who keeps it.
    if identity
        .wait_for(|identity| identity.boot != boot)
        .await
        .is_err()
    {
        std::future::pending::<()>().await;
    }
}

async fn open(connection: &Connection, hello: &Hello) -> Option<(SendStream, RecvStream)> {
    let mut bytes = Vec::new();
    for request in [Request::Hello(hello.clone()), Request::Follow] {
        frame::put(&mut bytes, 0, |body| put_request(body, &request)).ok()?;
    }
    let (mut send, receive) = connection.open_bi().await.ok()?;
    send.write_all(&bytes).await.ok()?;
    Some((send, receive))
}

/// A stream to a source, as the mover knows it.
struct Connected<'a> {
    owner: &'a Owner,
    source: &'a NodeId,
    orders: Arc<Orders>,
}

impl Drop for Connected<'_> {
    fn drop(&mut self) {
        let Owner { mover, store, .. } = self.owner;
        let now = self.owner.clock.now();
        mover.disconnect(store, now, (self.source, &self.orders));
    }
}

async fn converse(
    owner: &Owner,
    (send, receive): (SendStream, RecvStream),
    (source, boot): (&NodeId, BootId),
) {
    let now = owner.clock.now();
    let orders = owner.mover.connect(&owner.store, now, (source, boot));
    let connected = Connected {
        owner,
        source,
        orders,
    };
    tokio::select! {
        biased;
        () = write(&connected.orders, send) => {}
        () = read(owner, source, receive) => {}
    }
}

async fn write(orders: &Orders, mut send: SendStream) {
    let mut bytes = Vec::new();
    while let Some(order) = orders.next().await {
        bytes.clear();
        if let Err(error) = frame::put(&mut bytes, 0, |body| put_order(body, &order)) {
            warn!(%error, "an order cannot be said");
            return;
        }
        if send.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

async fn read(owner: &Owner, source: &NodeId, receive: RecvStream) {
    let mut frames = FrameReader::new(receive);
    while let Ok(Filled::More) = frames.fill().await {
        loop {
            let delivery = match frames.next() {
                Ok(None) => break,
                Ok(Some(frame)) => read_delivery(frame.body),
                Err(error) => {
                    warn!(%source, %error, "closing peer connection: malformed frame");
                    return;
                }
            };
            match delivery {
                Ok(delivery) => owner.take_delivery(source, delivery),
                Err(error) => {
                    warn!(%source, %error, "closing peer connection: malformed delivery");
                    return;
                }
            }
        }
    }
    debug!(%source, "a replica stream ended");
}

impl Owner {
    fn take_delivery(&self, source: &NodeId, delivery: Delivery) {
        let now = self.clock.now();
        let Self { mover, store, .. } = self;
        match delivery {
            Delivery::Batch(series) => {
                self.take_series(&series);
            }
            Delivery::Copied(slots) => {
                mover.handle(store, now, |motion| {
                    motion.handle_copied(now, source, &slots);
                });
            }
            Delivery::Final(slots) => {
                mover.handle(store, now, |motion| {
                    motion.handle_final(now, source, &slots);
                });
            }
            Delivery::Reported(number) => {
                mover.reports.lock().handle_reported(source, number);
            }
        }
    }

    /// Merges what another node has counted; who follows this node is told of what is new.
    pub(super) fn take_series(&self, series: &[Series]) -> usize {
        let now = self.clock.now();
        self.mover.take_in(&self.store, now, series)
    }
}
