//! Servers as child processes: started on the servers' core, told by one line of JSON where they
//! listen, and ended with the bench.

use std::{
    ffi::OsString,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::processor::Cores;

/// How long a server may take until it prints its line; a cluster has to find itself first.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// How long a server may take to end once it is told to.
const STOP_DEADLINE: Duration = Duration::from_secs(15);
const STOP_POLL: Duration = Duration::from_millis(20);

/// A running server process; told to end when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
}

impl Server {
    /// Starts a program and waits for the first line that it prints.
    pub(crate) fn start(
        cores: &Cores,
        program: &Path,
        arguments: &[OsString],
    ) -> anyhow::Result<(Self, String)> {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let child = cores.on_server(|| command.spawn());
        let child = child.with_context(|| format!("starting {}", program.display()))?;
        let mut server = Self { child };
        let line = server.first_line();
        let line = line.with_context(|| format!("waiting for {}", program.display()))?;
        Ok((server, line))
    }

    /// The process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Reads standard output on a thread of its own, which goes on reading so that the server never
    /// waits for us.
    fn first_line(&mut self) -> anyhow::Result<String> {
        let stdout = self.child.stdout.take().context("no standard output")?;
        let (sender, receiver) = mpsc::sync_channel(1);
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // Only the first line is awaited; the others find nobody.
                drop(sender.try_send(line));
            }
        });
        match receiver.recv_timeout(START_DEADLINE) {
            Ok(line) => Ok(line),
            Err(mpsc::RecvTimeoutError::Disconnected) => bail!("it ended without a word"),
            Err(mpsc::RecvTimeoutError::Timeout) => bail!("nothing within {START_DEADLINE:?}"),
        }
    }

    /// Asks it to end, and ends it if it does not.
    fn stop(&mut self) -> std::io::Result<()> {
        if self.child.try_wait()?.is_some() {
            return Ok(());
        }
        let process = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(process) = process {
            kill_process(process, Signal::TERM)?;
        }
        let mut left = STOP_DEADLINE;
        while self.child.try_wait()?.is_none() {
            if left.is_zero() {
                return self.child.kill();
            }
            thread::park_timeout(STOP_POLL);
            left = left.saturating_sub(STOP_POLL);
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            let process = self.child.id();
            crate::report::complain(&anyhow::anyhow!("ending process {process}: {error}"));
        }
    }
}
