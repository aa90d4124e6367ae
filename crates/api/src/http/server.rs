//! Connections: accepted, bounded, and let go when the node stops.
//!
//! Invariants: at most `max_connections` at once over all listeners of one [`Http`]; no connection
//! outlives `serve` by more than it takes to drop it.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use thiserror::Error;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, watch},
};
use tracing::warn;

use crate::{
    checker::Checker,
    http::{
        Http, Origin, Reach,
        connection::{self, Stage},
    },
    operator::Operator,
};

/// The wait after a connection could not be accepted, as when file descriptors have run out.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(20);

/// The most connections that are taken once the server is to stop.
const MAX_LAST: usize = 1_024;

/// A listener that cannot be served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The listener has no address.
    #[error("the listener has no address")]
    NoAddress(#[source] io::Error),
}

/// Serves a listener until `shutdown` is ready, then lets the requests in flight end. May be called for
/// several listeners and from several runtimes at once; the bounds of the config hold for all together.
///
/// # Errors
/// [`ServeError`]: the listener is unusable.
pub async fn serve<C: Checker, O: Operator>(
    listener: TcpListener,
    http: Arc<Http<C, O>>,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let address = listener.local_addr().map_err(ServeError::NoAddress)?;
    let reach = if address.ip().to_canonical().is_loopback() {
        Reach::Loopback
    } else {
        Reach::Network
    };
    let (stage, stages) = watch::channel(Stage::Serving);
    let start = |(stream, peer, permit): (TcpStream, SocketAddr, OwnedSemaphorePermit)| {
        let origin = Origin {
            reach,
            peer: Some(peer.ip()),
        };
        let serving = connection::serve(stream, Arc::clone(&http), origin, stages.clone());
        tokio::spawn(async move {
            serving.await;
            drop(permit);
        });
    };
    let accepting = async {
        while let Some(accepted) = accept(&listener, &http).await {
            start(accepted);
        }
    };
    tokio::select! {
        () = accepting => {}
        () = shutdown => {}
    }
    // Who has connected already is answered: else the system would reset the connection.
    for _ in 0..MAX_LAST {
        tokio::task::yield_now().await;
        tokio::select! {
            biased;
            accepted = accept(&listener, &http) => match accepted {
                Some(accepted) => start(accepted),
                None => break,
            },
            () = std::future::ready(()) => break,
        }
    }
    drop(listener);
    drop(stages);
    stage.send_replace(Stage::Draining);
    let drained = tokio::time::timeout(http.shared.config.shutdown_timeout, stage.closed());
    if drained.await.is_err() {
        stage.send_replace(Stage::Closing);
        stage.closed().await;
    }
    Ok(())
}

/// The next connection, once there is room for it; `None` never, but if the room is taken away.
async fn accept<C: Checker, O: Operator>(
    listener: &TcpListener,
    http: &Http<C, O>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let permit = Arc::clone(&http.connections).acquire_owned().await.ok()?;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return Some((stream, peer, permit)),
            Err(error) => {
                warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_BACKOFF).await;
            }
        }
    }
}
