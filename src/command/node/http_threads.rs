//! The threads that serve HTTP beside the node's own: one runtime each, one listening socket for all.

use std::{io, net::TcpListener, num::NonZero, sync::Arc, thread};

use tokio::{sync::watch, task::JoinSet};
use tollgate_api::{Http, serve};
use tracing::error;

use crate::wiring::Edge;

/// The most threads that serve HTTP.
const MAX_THREADS: usize = 64;

/// Threads that serve HTTP until they are ended.
#[derive(Debug)]
pub(super) struct HttpThreads {
    end: watch::Sender<bool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl HttpThreads {
    /// Starts one thread for each processor but the one that the caller's own thread has.
    pub(super) fn start(listener: &TcpListener, http: &Arc<Http<Edge, Edge>>) -> io::Result<Self> {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let mut started = Self {
            end: watch::Sender::new(false),
            threads: Vec::new(),
        };
        for number in 1..processors.min(MAX_THREADS) {
            let (listener, http) = (listener.try_clone()?, Arc::clone(http));
            let shutdown = started.shutdown();
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let thread = thread::Builder::new().name(format!("http-{number}"));
            started.threads.push(thread.spawn(move || {
                runtime.block_on(async {
                    let served = match tokio::net::TcpListener::from_std(listener) {
                        Ok(listener) => serve(listener, http, shutdown).await,
                        Err(error) => return error!(%error, "a listener cannot be used"),
                    };
                    if let Err(error) = served {
                        error!(%error, "a listener cannot be served");
                    }
                });
            })?);
        }
        Ok(started)
    }

    /// Is ready when the threads are to end.
    pub(super) fn shutdown(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut end = self.end.subscribe();
        async move {
            // Without a sender nobody is left to serve for.
            drop(end.wait_for(|end| *end).await);
        }
    }

    /// Lets the requests in flight end, then the threads.
    pub(super) async fn end(self) {
        self.end.send_replace(true);
        let mut threads = JoinSet::new();
        for thread in self.threads {
            threads.spawn_blocking(move || thread.join());
        }
        while threads.join_next().await.is_some() {}
    }
}
