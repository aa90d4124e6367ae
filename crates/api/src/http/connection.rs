//! One connection, and the watch over it.
//!
//! A client that sends its head byte by byte, or nothing, or never reads, is let go by one slow timer for
//! each connection that looks at counters: no request sets a timer, or looks at one. Knows nothing of
//! calls.

mod activity;
mod aside;
mod watched;

use std::{convert::Infallible, pin::pin, sync::Arc};

use hyper::{
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::graceful::GracefulConnection,
};
use tokio::{net::TcpStream, sync::watch};
use tracing::debug;

use self::{
    activity::{Activity, Watch},
    aside::Aside,
    watched::{Version, Watched},
};
use crate::{
    checker::Checker,
    http::{Http, Origin},
    operator::Operator,
};

/// The most requests of one HTTP/2 connection at once.
const MAX_STREAMS: u32 = 128;
/// The most bytes of a request's head.
const MAX_HEAD: usize = 1 << 16;

/// How far the end of the server has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Not at all.
    Serving,
    /// Requests in flight are answered, no more are taken.
    Draining,
    /// Connections are dropped.
    Closing,
}

/// Serves one connection until it ends, is let go or the server closes.
pub(super) async fn serve<C: Checker, O: Operator>(
    stream: TcpStream,
    http: Arc<Http<C, O>>,
    origin: Origin,
    stages: watch::Receiver<Stage>,
) {
    // Answers are gathered into one write already.
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%error, "a connection is gone before it was served");
        return;
    }
    let activity = Arc::new(Activity::default());
    let watching = Watch::new(&http.shared.config, Arc::clone(&activity));
    let mut ends = Ends { watching, stages };
    let mut stream = Watched::new(stream, Arc::clone(&activity));
    let version = tokio::select! {
        biased;
        version = stream.version() => version,
        // Nothing was asked yet.
        _ = ends.next() => return,
    };
    match version {
        Ok(Version::Http1) => {
            let service = service_fn(|request| {
                let in_flight = activity.start();
                let answer = http.handle_in_turn(origin, request);
                async move {
                    let _in_flight = in_flight;
                    Ok::<_, Infallible>(answer.await)
                }
            });
            let mut builder = http1::Builder::new();
            // Not `pipeline_flush`: with it hyper (1.12) never sends the 400 for a head that it cannot
            // parse. Not `writev`: an answer is short enough to be copied behind its head.
            builder.max_buf_size(MAX_HEAD).writev(false);
            let connection = builder.serve_connection(TokioIo::new(stream), service);
            drive(connection, ends).await;
        }
        Ok(Version::Http2) => {
            let service = service_fn(move |request| {
                let (http, activity) = (Arc::clone(&http), Arc::clone(&activity));
                async move {
                    let _in_flight = activity.start();
                    Ok::<_, Infallible>(http.handle(origin, request).await)
                }
            });
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder.max_concurrent_streams(MAX_STREAMS);
            let connection = builder.serve_connection(TokioIo::new(stream), service);
            drive(connection, ends).await;
        }
        Err(error) => debug!(%error, "a connection failed before it asked"),
    }
}

/// Serves a connection whose version is known.
async fn drive<S: GracefulConnection<Error = hyper::Error>>(connection: S, mut ends: Ends) {
    let mut connection = pin!(connection);
    loop {
        let ending = pin!(ends.next());
        let end = tokio::select! {
            biased;
            served = connection.as_mut() => {
                if let Err(error) = served {
                    debug!(%error, "a connection failed");
                }
                return;
            }
            end = Aside::new(ending) => end,
        };
        match end {
            End::Drain => connection.as_mut().graceful_shutdown(),
            End::LetGo => {
                debug!("a connection was let go since nothing came of it");
                return;
            }
            End::Close => return,
        }
    }
}

/// Why a connection ends though its client goes on.
enum End {
    /// No more requests are taken.
    Drain,
    /// The server closes.
    Close,
    /// Nothing came of it.
    LetGo,
}

/// What may end a connection.
struct Ends {
    watching: Watch,
    stages: watch::Receiver<Stage>,
}

impl Ends {
    async fn next(&mut self) -> End {
        tokio::select! {
            biased;
            () = self.watching.let_go() => End::LetGo,
            changed = self.stages.changed() => {
                if changed.is_err() || *self.stages.borrow() == Stage::Closing {
                    End::Close
                } else {
                    End::Drain
                }
            }
        }
    }
}
