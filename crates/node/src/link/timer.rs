//! The one timer of a link: timeouts, pings, give-backs sent again, signs of life.

use std::sync::{Arc, Weak, atomic::Ordering};

use tollgate_cluster::{Failure, Turn};
use tollgate_limit::Nanos;
use tollgate_wire::peer::{Request, put_request};
use tracing::{debug, info, warn};

use super::{Heard, Link, PING, SWITCHES, State};
use crate::clock::Clock as _;

/// How often a link looks for signs of life, pings a silent peer and sends give-backs again.
const TICK: Nanos = Nanos::from_millis(100);
/// How often a peer that answers is asked what it goes by.
const STATUS_INTERVAL: Nanos = Nanos::from_millis(1000);
/// A timeout that our own loop noticed later than this says nothing of the peer.
const OWN_LATENESS: Nanos = Nanos::from_millis(10);

/// Runs until the link is gone.
pub(super) async fn run(link: Weak<Link>) {
    let mut next_tick = Nanos::ZERO;
    loop {
        let Some(strong) = link.upgrade() else { return };
        let now = strong.clock.now();
        let in_flight = strong.expire(now);
        if now >= next_tick {
            strong.tick(now);
            next_tick = now.saturating_add(TICK);
        }
        let wake = in_flight.map_or(next_tick, |deadline| deadline.min(next_tick));
        let wake = strong.clock.instant(wake);
        tokio::select! {
            biased;
            () = strong.timer.notified() => {}
            () = tokio::time::sleep_until(wake) => {}
        }
    }
}

impl Link {
    /// Tells those whose time is up; returns the next deadline.
    fn expire(self: &Arc<Self>, now: Nanos) -> Option<Nanos> {
        let mut state = self.state.lock();
        if state
            .in_flight
            .next_deadline()
            .is_none_or(|deadline| deadline > now)
        {
            return state.in_flight.next_deadline();
        }
        self.listen(&mut state, now);
        let last_heard = Nanos::new(self.last_heard.load(Ordering::Relaxed));
        let State {
            in_flight,
            breaker,
            late,
            ..
        } = &mut *state;
        let mut turns = Vec::new();
        in_flight.expire(now, |number, pending| {
            self.counters.timeouts.raise();
            late.handle_timeout(now, number);
            if now.saturating_sub(pending.deadline) > OWN_LATENESS {
                breaker.handle_late_timeout();
            } else {
                turns.extend(breaker.handle_timeout(pending.sent_at, last_heard));
            }
            // The asker may have gone away: then nobody needs to know.
            drop(pending.payload.tell.send(Heard::Failed(Failure::Timeout)));
        });
        let next = state.in_flight.next_deadline();
        for turn in turns {
            self.turn(&state, turn);
        }
        next
    }

    fn tick(self: &Arc<Self>, now: Nanos) {
        let mut state = self.state.lock();
        self.listen(&mut state, now);
        state.amendments.expire(now);
        if state.connection.is_none() {
            return;
        }
        let is_ping_due = state.breaker.ping_due(now) || state.next_ping <= now;
        if is_ping_due {
            state.next_ping = now.saturating_add(STATUS_INTERVAL);
        }
        let due: Vec<_> = state.amendments.due(now, TICK).collect();
        drop(state);
        if is_ping_due {
            self.ping(now);
        }
        for (sequence, amendment) in due {
            self.send_amendment(sequence, &amendment);
        }
    }

    /// Notices datagrams of the peer since the last look.
    pub(super) fn listen(&self, state: &mut State, now: Nanos) {
        let Some(connection) = &state.connection else {
            return;
        };
        let datagrams = connection.stats().udp_rx.datagrams;
        if datagrams != state.datagrams {
            state.datagrams = datagrams;
            self.last_heard.store(now.as_nanos(), Ordering::Relaxed);
        }
    }

    /// Tells the peer how the switches stand. If the stream takes nothing it is told with the next status.
    pub(crate) fn tell_switches(&self) {
        let request = Request::Switches(self.switches.registers());
        let [lane, ..] = &self.lanes;
        let put = lane
            .put(|writer| writer.frame(SWITCHES, Nanos::MAX, |body| put_request(body, &request)));
        if put.is_err() {
            debug!(peer = %self.peer, "switches wait: the stream takes nothing");
        }
    }

    /// Pings the peer: an answer closes the breaker.
    pub(super) fn ping(&self, now: Nanos) {
        let deadline = now.saturating_add(TICK);
        let [lane, ..] = &self.lanes;
        let put = lane
            .put(|writer| writer.frame(PING, deadline, |body| put_request(body, &Request::Ping)));
        if put.is_err() {
            debug!(peer = %self.peer, "ping waits: the stream takes nothing");
        }
    }

    /// Makes a turn of the breaker known.
    pub(super) fn turn(&self, state: &State, turn: Turn) {
        let peer = &self.peer;
        match turn {
            Turn::Opened(opening) => {
                self.counters.openings.raise();
                self.usable.store(false, Ordering::Release);
                warn!(%peer, ?opening, "breaker opened: checks of this peer fall back");
            }
            Turn::Closed => {
                info!(%peer, "breaker closed: the peer answers");
                self.refresh(state);
            }
        }
    }

    /// Sets what those see who only want to know.
    pub(super) fn refresh(&self, state: &State) {
        let is_usable = state.connection.is_some() && !state.breaker.is_open();
        self.usable.store(is_usable, Ordering::Release);
        if is_usable {
            self.became_usable.notify_waiters();
        }
    }
}
