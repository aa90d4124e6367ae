//! What callers and the link share: the unsent bytes, the calls in flight, and whether there is a
//! connection.
//!
//! A caller writes its frame straight into the unsent bytes under one short lock; the link takes them
//! all at once. Knows nothing of sockets. Invariants: nothing is unsent or in flight without a
//! connection; every call that was let in ends by a reply, by its deadline or with the connection.

use std::{mem, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};
use tollgate_wire::{
    client::{Answer, Check, Fault, put_check},
    frame,
};

use crate::{
    calls::{Call, Calls, Taken},
    clock,
    error::CheckError,
};

#[cfg(test)]
mod tests;

/// The most unsent bytes that a further check may be added to.
const MAX_UNSENT: usize = 1 << 20;
/// Deadlines in a row, each of its own stretch of time, after which a node that said nothing at all
/// is given up.
const MAX_SILENCES: u32 = 3;

/// Where a call's end is told.
pub(crate) type Reply = oneshot::Sender<Result<Answer, CheckError>>;

/// The shared part of a client.
#[derive(Debug)]
pub(crate) struct Shared {
    deadline: Duration,
    max_in_flight: usize,
    state: Mutex<State>,
    /// There is something to write.
    unsent: Notify,
    /// A call is in flight and the timer sleeps without end.
    due: Notify,
    /// There is a connection, or there is none any more.
    turned: Notify,
}

#[derive(Debug)]
struct State {
    /// Why there is no connection; `None` while there is one.
    down: Option<Arc<str>>,
    unsent: Vec<u8>,
    calls: Calls<Reply>,
    timer: Timer,
    silence: Silence,
}

/// What the one timer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// It sleeps until a deadline.
    Set,
    /// It sleeps until it is told of a call.
    Idle,
}

/// How long the node has said nothing.
#[derive(Clone, Copy, Debug)]
struct Silence {
    count: u32,
    /// A call that was sent before is of a stretch that was counted.
    counted: Option<Instant>,
}

/// What the timer is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// Look again then.
    At(Instant),
    /// Nothing is in flight.
    Idle,
    /// The node says nothing at all: give it up.
    Silent,
}

/// A reply to what was never asked. The node's fault: the connection cannot be used on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeverAsked;

impl Shared {
    pub(crate) fn new(deadline: Duration, max_in_flight: usize) -> Self {
        let state = State {
            down: Some("not yet connected".into()),
            unsent: Vec::new(),
            calls: Calls::new(max_in_flight),
            timer: Timer::Set,
            silence: Silence::none(),
        };
        Self {
            deadline,
            max_in_flight,
            state: Mutex::new(state),
            unsent: Notify::new(),
            due: Notify::new(),
            turned: Notify::new(),
        }
    }

    /// Sends a check, if there is a connection and room; its end comes by `reply`.
    pub(crate) fn send(&self, check: &Check<'_>, reply: Reply) -> Result<(), CheckError> {
        let max = self.max_in_flight;
        let mut guard = self.state.lock();
        let state = &mut *guard;
        if let Some(cause) = &state.down {
            let cause = Arc::clone(cause);
            return Err(CheckError::Disconnected { cause });
        }
        let room = state.unsent.len() < MAX_UNSENT;
        let id = state.calls.next_id().filter(|_| room);
        let id = id.ok_or(CheckError::TooManyInFlight { max })?;
        let first = state.unsent.is_empty();
        frame::put(&mut state.unsent, id, |body| put_check(body, check))
            .map_err(CheckError::Unsendable)?;
        // Read under the lock, so that deadlines are in the order of ids.
        let sent = clock::now();
        let due = sent.checked_add(self.deadline).unwrap_or(sent);
        state.calls.push(Call { sent, due, reply });
        let idle = mem::replace(&mut state.timer, Timer::Set) == Timer::Idle;
        drop(guard);
        if first {
            self.unsent.notify_one();
        }
        if idle {
            self.due.notify_one();
        }
        Ok(())
    }

    /// Waits for unsent bytes and takes them all; `spare`, emptied, takes their place.
    pub(crate) async fn take_unsent(&self, spare: &mut Vec<u8>) {
        spare.clear();
        loop {
            mem::swap(&mut self.state.lock().unsent, spare);
            if !spare.is_empty() {
                return;
            }
            self.unsent.notified().await;
        }
    }

    /// Ends the call that a reply is for; late ones are passed over.
    pub(crate) fn complete(&self, id: u64, reply: Result<Answer, Fault>) -> Result<(), NeverAsked> {
        let mut state = self.state.lock();
        state.silence = Silence::none();
        let taken = state.calls.take(id);
        drop(state);
        match taken {
            Taken::Call(call) => tell(call, reply.map_err(CheckError::Fault)),
            Taken::Late => {}
            Taken::Unknown => return Err(NeverAsked),
        }
        Ok(())
    }

    /// Ends the calls that are due.
    pub(crate) fn expire(&self, now: Instant) -> Expiry {
        let deadline = self.deadline;
        let mut state = self.state.lock();
        while let Some(call) = state.calls.pop_due(now) {
            state.silence.count(call.sent, now);
            tell(call.reply, Err(CheckError::DeadlineExceeded { deadline }));
        }
        if state.silence.count >= MAX_SILENCES {
            return Expiry::Silent;
        }
        match state.calls.next_due() {
            Some(due) => Expiry::At(due),
            None => {
                state.timer = Timer::Idle;
                Expiry::Idle
            }
        }
    }

    /// Waits until there is a call in flight again.
    pub(crate) async fn called(&self) {
        self.due.notified().await;
    }

    /// There is a connection.
    pub(crate) fn up(&self) {
        let mut state = self.state.lock();
        state.down = None;
        state.silence = Silence::none();
        drop(state);
        self.turned.notify_waiters();
    }

    /// There is none any more, or still none: ends all calls in flight.
    pub(crate) fn down(&self, cause: &Arc<str>) {
        let mut state = self.state.lock();
        state.down = Some(Arc::clone(cause));
        state.unsent.clear();
        while let Some(call) = state.calls.pop() {
            let cause = Arc::clone(cause);
            tell(call.reply, Err(CheckError::ConnectionLost { cause }));
        }
        drop(state);
        self.turned.notify_waiters();
    }

    /// Why there is no connection; `None` while there is one.
    pub(crate) fn cause(&self) -> Option<Arc<str>> {
        self.state.lock().down.clone()
    }

    /// Waits until there is a connection.
    pub(crate) async fn connected(&self) {
        loop {
            let turned = self.turned.notified();
            tokio::pin!(turned);
            turned.as_mut().enable();
            if self.cause().is_none() {
                return;
            }
            turned.await;
        }
    }
}

impl Silence {
    const fn none() -> Self {
        Self {
            count: 0,
            counted: None,
        }
    }

    /// Counts a call that was never answered, unless its time overlaps one that was counted.
    fn count(&mut self, sent: Instant, now: Instant) {
        if self.counted.is_none_or(|counted| counted <= sent) {
            self.count = self.count.saturating_add(1);
            self.counted = Some(now);
        }
    }
}

/// Ends a call. A caller that does not wait any more is no error.
fn tell(reply: Reply, end: Result<Answer, CheckError>) {
    drop(reply.send(end));
}
