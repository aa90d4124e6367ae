//! The log of this process, as lines.

use std::{
    io::{self, Write},
    sync::Once,
    time::Duration,
};

use parking_lot::Mutex;

use super::wait_for;

static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static LISTENING: Once = Once::new();

struct Writer;

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes the log of this crate from now on.
pub(super) fn listen() {
    LISTENING.call_once(|| {
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter("tollgate_node=debug")
            .with_ansi(false)
            .with_writer(|| Writer);
        subscriber.init();
    });
}

/// The lines that contain all of `parts`.
pub(in crate::gossip::tests) fn lines(parts: &[&str]) -> Vec<String> {
    let log = LOG.lock();
    let log = String::from_utf8_lossy(&log);
    let found = log
        .lines()
        .filter(|line| parts.iter().all(|part| line.contains(part)));
    found.map(str::to_owned).collect()
}

pub(in crate::gossip::tests) fn wait_for_line(parts: &[&str]) {
    let what = format!("a log line with {parts:?}");
    wait_for(&what, Duration::from_secs(20), || !lines(parts).is_empty());
}
