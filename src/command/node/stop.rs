//! Being told to stop: SIGTERM, SIGINT, or the end of standard input.

use std::{
    io::{self, Read as _},
    thread,
};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
};

/// What tells this process to stop.
#[derive(Debug)]
pub(super) struct Stop {
    interrupt: Signal,
    terminate: Signal,
    stdin: Option<oneshot::Receiver<()>>,
}

impl Stop {
    /// Listens from now on.
    pub(super) fn new(until_stdin_ends: bool) -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            stdin: if until_stdin_ends {
                Some(stdin_end()?)
            } else {
                None
            },
        })
    }

    /// Waits until told to stop.
    pub(super) async fn asked(&mut self) {
        let stdin = async {
            match self.stdin.as_mut() {
                Some(end) => drop(end.await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = stdin => {}
        }
    }
}

/// Tells when standard input ends. On a thread that is never waited for: a read cannot be ended.
fn stdin_end() -> io::Result<oneshot::Receiver<()>> {
    let (end, ended) = oneshot::channel::<()>();
    thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            let mut ignored = [0; 512];
            let mut stdin = io::stdin().lock();
            while stdin.read(&mut ignored).is_ok_and(|read| read > 0) {}
            // Ending the channel tells it, too.
            drop(end);
        })?;
    Ok(ended)
}
