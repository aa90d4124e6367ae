//! Signals to processes, and what they use.

use std::{fs, process::Command};

/// A signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Kill,
    Stop,
    Continue,
    Terminate,
}

/// Sends a signal to one process.
pub(crate) fn send_signal(process_id: u32, signal: Signal) {
    let name = match signal {
        Signal::Kill => "-KILL",
        Signal::Stop => "-STOP",
        Signal::Continue => "-CONT",
        Signal::Terminate => "-TERM",
    };
    let sent = Command::new("kill")
        .args([name, &process_id.to_string()])
        .status()
        .unwrap();
    assert!(sent.success(), "kill {name} {process_id}");
}

/// The resident memory of a process; `None` where the system does not tell.
pub(crate) fn resident_bytes(process_id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process_id}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}
