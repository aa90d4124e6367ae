//! `tollgate dev`: a cluster of real node processes on this machine.
//!
//! The nodes are child processes of this program, so that one can be killed by its process id. Each
//! leaves when its standard input ends, which this process holds: so none outlives it, however it
//! ends. A node that dies is told and not started again.

mod announce;
mod children;
mod layout;
mod ports;
mod settled;

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use self::{
    children::{Children, Ended},
    layout::Layout,
    settled::NotSettled,
};
use super::{Exit, Failure};
use crate::{arguments::DevArguments, output};

/// How often free ports are looked for, when others take them in between.
const MAX_ATTEMPTS: u32 = 5;

pub(super) async fn run(arguments: DevArguments) -> Result<Exit, Failure> {
    let mut stop = Stop::new()?;
    let mut attempt = 1;
    loop {
        let layout = Layout::make(&arguments)?;
        let mut children = Children::start(&layout)?;
        if !arguments.json {
            output::note(format_args!(
                "starting {} nodes, files in {}",
                arguments.nodes,
                layout.folder()
            ));
        }
        match first_event(&layout, &mut children, &mut stop).await {
            Event::Settled => {
                announce::announce(&layout, &children, arguments.json)?;
                return watch(layout, children, stop).await;
            }
            Event::NotSettled(reason) => {
                children.end().await;
                return Err(failed(layout, &reason.to_string()));
            }
            Event::Died(ended)
                if arguments.base_port == 0
                    && attempt < MAX_ATTEMPTS
                    && !ended.was_misconfigured() =>
            {
                children.end().await;
                attempt += 1;
            }
            Event::Died(ended) => {
                children.end().await;
                return Err(died(layout, &ended));
            }
            Event::Stopped => {
                children.end().await;
                return Ok(Exit::Done);
            }
        }
    }
}

/// What ends the start of a cluster.
#[derive(Debug)]
enum Event {
    Settled,
    NotSettled(NotSettled),
    Died(Ended),
    Stopped,
}

async fn first_event(layout: &Layout, children: &mut Children, stop: &mut Stop) -> Event {
    tokio::select! {
        settled = settled::wait(&layout.nodes) => match settled {
            Ok(()) => Event::Settled,
            Err(reason) => Event::NotSettled(reason),
        },
        Some(ended) = children.next_ended() => Event::Died(ended),
        () = stop.asked() => Event::Stopped,
    }
}

/// Tells of nodes that die, until this process is told to stop or none is left.
async fn watch(layout: Layout, mut children: Children, mut stop: Stop) -> Result<Exit, Failure> {
    loop {
        tokio::select! {
            ended = children.next_ended() => match ended {
                Some(ended) => output::note(&ended),
                None => return Err(failed(layout, "no node is left")),
            },
            () = stop.asked() => {
                children.end().await;
                keep_if_used(layout);
                return Ok(Exit::Done);
            }
        }
    }
}

/// Leaves the files of a cluster whose nodes have ended to those that were started by hand.
fn keep_if_used(layout: Layout) {
    let running = layout.still_running().join(", ");
    if !running.is_empty() {
        let folder = layout.keep();
        output::note(format_args!(
            "{running} still runs, started by hand: the files stay in {}",
            folder.display()
        ));
    }
}

/// A node that ended while starting, with all that it said of it.
fn died(layout: Layout, ended: &Ended) -> Failure {
    let words = layout.last_words(&ended.id);
    let reason = format!("{ended} while starting: {words}\n");
    if !ended.was_misconfigured() {
        return failed(layout, reason.trim_end());
    }
    let folder = layout.keep();
    Failure::Usage(format!(
        "{reason}the nodes' files are in {}",
        folder.display()
    ))
}

/// A failure that leaves the nodes' logs to be read.
fn failed(layout: Layout, reason: &str) -> Failure {
    let folder = layout.keep();
    Failure::Runtime(format!(
        "{reason}; the nodes' logs are in {}",
        folder.display()
    ))
}

/// Being told to stop, by Ctrl-C or SIGTERM.
#[derive(Debug)]
struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
