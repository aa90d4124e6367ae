//! The breaker of one peer: stops asking a peer that does not answer.
//!
//! Knows nothing of connections, queues or clocks. It bounds what a dead peer costs (P3): the checks
//! in flight and at most [`TIMEOUTS_IN_A_ROW`] more wait for it, each within its own deadline.

use tollgate_limit::Nanos;

/// So many timeouts without an answer between them open the breaker.
pub const TIMEOUTS_IN_A_ROW: u8 = 3;

/// How often an open breaker's peer is pinged.
pub const PING_INTERVAL: Nanos = Nanos::from_millis(100);

/// Why a breaker opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// The connection broke.
    ConnectionLost,
    /// [`TIMEOUTS_IN_A_ROW`].
    Timeouts,
    /// One timeout during which nothing at all came from the peer.
    Silence,
}

/// A change of state, for one log line each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// No check waits for the peer any more.
    Opened(Opening),
    /// Checks are sent again.
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed { timeouts: u8 },
    Open { next_ping: Nanos },
}

/// The breaker of one peer, closed at first.
///
/// Events: [`handle_lost`](Self::handle_lost), [`handle_timeout`](Self::handle_timeout),
/// [`handle_late_timeout`](Self::handle_late_timeout), [`handle_answer`](Self::handle_answer),
/// [`handle_pong`](Self::handle_pong). Each tells the turn that it made, if any.
#[derive(Clone, Copy, Debug)]
pub struct Breaker {
    state: State,
}

impl Default for Breaker {
    fn default() -> Self {
        Self::new()
    }
}

impl Breaker {
    /// A closed breaker.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            state: State::Closed { timeouts: 0 },
        }
    }

    /// The connection broke.
    pub const fn handle_lost(&mut self) -> Option<Turn> {
        self.open(Opening::ConnectionLost)
    }

    /// A check sent at `sent_at` was not answered in time; `last_heard` is when anything at all came
    /// from the peer last.
    pub fn handle_timeout(&mut self, sent_at: Nanos, last_heard: Nanos) -> Option<Turn> {
        let State::Closed { timeouts } = &mut self.state else {
            return None;
        };
        if last_heard <= sent_at {
            return self.open(Opening::Silence);
        }
        *timeouts = timeouts.saturating_add(1);
        if *timeouts >= TIMEOUTS_IN_A_ROW {
            return self.open(Opening::Timeouts);
        }
        None
    }

    /// A timeout that our own loop noticed too late to blame the peer: counts for nothing.
    pub const fn handle_late_timeout(&mut self) {}

    /// A check was answered. Closes nothing: an answer that was under way does not show that the next
    /// will come.
    pub const fn handle_answer(&mut self) {
        if let State::Closed { timeouts } = &mut self.state {
            *timeouts = 0;
        }
    }

    /// A ping was answered.
    pub const fn handle_pong(&mut self) -> Option<Turn> {
        let turn = match self.state {
            State::Closed { .. } => None,
            State::Open { .. } => Some(Turn::Closed),
        };
        self.state = State::Closed { timeouts: 0 };
        turn
    }

    /// Whether no check may wait for the peer.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self.state, State::Open { .. })
    }

    /// Whether to ping now: while open, at once and then every [`PING_INTERVAL`]. A yes counts as sent.
    pub fn ping_due(&mut self, now: Nanos) -> bool {
        match &mut self.state {
            State::Open { next_ping } if *next_ping <= now => {
                *next_ping = now.saturating_add(PING_INTERVAL);
                true
            }
            State::Open { .. } | State::Closed { .. } => false,
        }
    }

    /// When to ask [`ping_due`](Self::ping_due) next; `None` while closed.
    #[must_use]
    pub const fn poll_timeout(&self) -> Option<Nanos> {
        match self.state {
            State::Open { next_ping } => Some(next_ping),
            State::Closed { .. } => None,
        }
    }

    const fn open(&mut self, why: Opening) -> Option<Turn> {
        if self.is_open() {
            return None;
        }
        self.state = State::Open {
            next_ping: Nanos::ZERO,
        };
        Some(Turn::Opened(why))
    }
}

#[cfg(test)]
mod tests {
    use tollgate_limit::Nanos;

    use super::{Breaker, Opening, PING_INTERVAL, Turn};

    const fn at(millis: u64) -> Nanos {
        Nanos::from_millis(millis)
    }

    #[test]
    fn a_lost_connection_opens_it_once() {
        let mut breaker = Breaker::new();
        let opened = Some(Turn::Opened(Opening::ConnectionLost));
        assert_eq!(breaker.handle_lost(), opened);
        assert!(breaker.is_open());
        assert_eq!(breaker.handle_lost(), None);
        assert_eq!(breaker.handle_timeout(at(1), at(0)), None);
    }

    #[test]
    fn one_timeout_in_silence_opens_it() {
        let opened = Some(Turn::Opened(Opening::Silence));
        for (last_heard, turn) in [(9, opened), (10, opened), (11, None)] {
            let mut breaker = Breaker::new();
            assert_eq!(breaker.handle_timeout(at(10), at(last_heard)), turn);
            assert_eq!(breaker.is_open(), turn.is_some());
        }
    }

    #[test]
    fn three_timeouts_in_a_row_open_it() {
        let mut breaker = Breaker::new();
        for _ in 0..2 {
            for _ in 0..2 {
                assert_eq!(breaker.handle_timeout(at(10), at(11)), None);
            }
            breaker.handle_answer();
            assert!(!breaker.is_open(), "an answer between them breaks the row");
        }
        for _ in 0..2 {
            assert_eq!(breaker.handle_timeout(at(10), at(11)), None);
        }
        let opened = Some(Turn::Opened(Opening::Timeouts));
        assert_eq!(breaker.handle_timeout(at(10), at(11)), opened);
    }

    #[test]
    fn timeouts_that_we_noticed_late_do_not_count() {
        let mut breaker = Breaker::new();
        for _ in 0..100 {
            breaker.handle_late_timeout();
        }
        assert!(!breaker.is_open());
        for _ in 0..2 {
            assert_eq!(breaker.handle_timeout(at(10), at(11)), None);
            breaker.handle_late_timeout();
        }
        assert!(
            breaker.handle_timeout(at(10), at(11)).is_some(),
            "nor break a row"
        );
    }

    #[test]
    fn only_a_pong_closes_it() {
        let mut breaker = Breaker::new();
        breaker.handle_lost();
        breaker.handle_answer();
        assert!(breaker.is_open());
        assert_eq!(breaker.handle_pong(), Some(Turn::Closed));
        assert_eq!(breaker.handle_pong(), None);
        assert!(!breaker.is_open());
    }

    #[test]
    fn it_pings_at_once_and_then_at_its_interval() {
        let mut breaker = Breaker::new();
        assert!(!breaker.ping_due(at(0)));
        assert_eq!(breaker.poll_timeout(), None);
        breaker.handle_lost();
        assert!(breaker.ping_due(at(5)));
        assert!(!breaker.ping_due(at(104)));
        assert_eq!(
            breaker.poll_timeout(),
            Some(at(5).saturating_add(PING_INTERVAL))
        );
        assert!(breaker.ping_due(at(105)));
        breaker.handle_pong();
        assert!(!breaker.ping_due(at(500)));
    }
}
