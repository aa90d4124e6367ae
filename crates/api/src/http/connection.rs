//! One connection, and the watch over it.
//!
//! A client that sends its head byte by byte, or nothing, or never reads, is let go by one slow timer for
//! each connection that looks at counters: no request sets a timer. Knows nothing of calls.

mod activity;

use std::{convert::Infallible, pin::pin, sync::Arc};

use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{net::TcpStream, sync::watch};
use tracing::debug;

use self::activity::{Activity, Watch, Watched};
use crate::{
    checker::Checker,
    http::{Http, Reach},
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
    reach: Reach,
    mut stages: watch::Receiver<Stage>,
) {
    // Answers are gathered into one write already.
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%error, "a connection is gone before it was served");
        return;
    }
    let activity = Arc::new(Activity::default());
    let watching = Watch::new(&http.shared.config, Arc::clone(&activity));
    let io = TokioIo::new(Watched::new(stream, Arc::clone(&activity)));
    let service = service_fn(|request| {
        let (http, activity) = (Arc::clone(&http), Arc::clone(&activity));
        async move {
            let _in_flight = activity.start();
            Ok::<_, Infallible>(http.handle(reach, request).await)
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // Not `pipeline_flush`: with it hyper (1.12) never sends the 400 for a head that it cannot parse.
    builder.http1().max_buf_size(MAX_HEAD);
    builder.http2().max_concurrent_streams(MAX_STREAMS);
    let mut connection = pin!(builder.serve_connection(io, service));
    loop {
        tokio::select! {
            biased;
            served = connection.as_mut() => {
                if let Err(error) = served {
                    debug!(%error, "a connection failed");
                }
                return;
            }
            () = watching.let_go() => {
                debug!("a connection was let go since nothing came of it");
                return;
            }
            changed = stages.changed() => {
                if changed.is_err() || *stages.borrow() == Stage::Closing {
                    return;
                }
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}
