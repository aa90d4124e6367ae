//! Watches the policies file and puts what it newly says in force, without a restart.
//!
//! Looks at the file's content, so that it does not matter how it is changed: in place, by a rename, or
//! by the swap of a link above it, as Kubernetes does. On a thread of its own, since reading and
//! compiling would hold up checks. Knows nothing of counters. Invariant (`INV-LAST-GOOD`): what is in
//! force is the last good content that was seen at rest.

mod settling;

use std::{
    convert::Infallible,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use self::settling::{Content, Look, Settling};
use crate::{
    config::{Digest, PolicyText},
    wiring::Edge,
};

/// Between two looks at a file that has not changed.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Between two looks at a file that has: it may be half written.
const SETTLE_INTERVAL: Duration = Duration::from_millis(250);

/// A watch that goes on until it is dropped.
#[derive(Debug)]
pub(crate) struct PolicyWatch {
    _end: mpsc::Sender<Infallible>,
}

impl PolicyWatch {
    /// Watches `file`, of which the content `in_force` was read last, for that node.
    pub(crate) fn start(file: PathBuf, in_force: Digest, edge: Arc<Edge>) -> io::Result<Self> {
        let (end, ended) = mpsc::channel();
        let thread = thread::Builder::new().name("policies".to_owned());
        // It is never joined: a file that cannot be read to its end must not hold up the node's.
        thread.spawn(move || watch(&file, in_force, &edge, &ended))?;
        Ok(Self { _end: end })
    }
}

fn watch(file: &Path, in_force: Digest, edge: &Edge, ended: &mpsc::Receiver<Infallible>) {
    let mut settling = Settling::new(Content::Text(in_force));
    let mut pause = POLL_INTERVAL;
    loop {
        match ended.recv_timeout(pause) {
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
            Ok(never) => match never {},
        }
        let read = PolicyText::read(file);
        let content = match &read {
            Ok(text) => Content::Text(text.digest()),
            Err(error) => Content::Unreadable(error.clone()),
        };
        pause = match settling.look(content) {
            Look::Known => POLL_INTERVAL,
            Look::Unsettled => SETTLE_INTERVAL,
            Look::New => {
                match read.and_then(|text| text.compile(edge.hash_key())) {
                    Ok(file) => edge.replace_policies(file),
                    Err(error) => edge.reject_policies(&error),
                }
                POLL_INTERVAL
            }
        };
    }
}
