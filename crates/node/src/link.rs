//! The way to one peer: what this node asks it, and what it hears.
//!
//! A [`Link`] lives as long as the peer is a member. Its connection comes and goes; the rules of when
//! to ask, when to give up and when to ask again are `cluster`'s. Four long-lived streams, the key
//! picks one; all checks in flight share one timer.
//!
//! Invariants: an ask that was taken is told exactly one [`Heard`]; nothing waits for a peer whose
//! breaker is open; numbers are dense and never used twice for different checks; an amendment that was
//! taken is repeated until the peer has it or its time is over, and goes back to the errands if the peer
//! does not own the slot, has restarted or is no member any more (there a give-back becomes a refund: the
//! slice that it names was the other owner's).

mod connection;
mod lane;
mod late;
mod replies;
mod shapes;
mod timer;

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use parking_lot::Mutex;
use quinn::Connection;
use smallvec::SmallVec;
use tokio::sync::{Notify, oneshot};
use tollgate_cluster::{AmendQueue, Breaker, Failure, InFlight, SwitchBoard};
use tollgate_limit::{Ask, KeyHash, Mode, Nanos, NodeId, Verdict};
use tollgate_wire::{
    identity::BootId,
    peer::{CheckHead, PeerAsk, Request, Said, Way, put_check, put_request},
};

pub(crate) use self::{
    connection::{Dialler, run},
    shapes::MAX_SHAPES,
};
use self::{
    lane::{Lane, LaneFull},
    late::LateReplies,
};
use crate::{
    clock::TokioClock,
    counters::{Counter, Latencies},
    errands::{Errands, Room},
};

/// Streams in each direction.
const LANES: usize = 4;
/// Amendments are numbered apart from asks: their ids have this bit.
const AMEND: u64 = 1 << 63;
/// The id of pings.
const PING: u64 = AMEND - 1;
/// The id of what is told of switches.
const SWITCHES: u64 = AMEND - 2;

/// The way to one peer.
#[derive(Debug)]
pub(crate) struct Link {
    peer: NodeId,
    /// Its number: see [`Hello`](tollgate_wire::peer::Hello).
    number: u64,
    clock: TokioClock,
    errands: Arc<Errands>,
    switches: Arc<SwitchBoard>,
    lanes: [Lane; LANES],
    state: Mutex<State>,
    /// Mirrors the breaker and the connection, for those who only want to know.
    usable: AtomicBool,
    became_usable: Notify,
    timer: Notify,
    last_heard: AtomicU64,
    pub(crate) counters: LinkCounters,
}

/// What one link counts.
#[derive(Debug, Default)]
pub(crate) struct LinkCounters {
    /// From asking to hearing, of those that were heard.
    pub(crate) latencies: Latencies,
    /// Asks that nobody answered in time.
    pub(crate) timeouts: Counter,
    /// Times that the breaker opened.
    pub(crate) openings: Counter,
    /// Connections made.
    pub(crate) connects: Counter,
}

#[derive(Debug)]
struct State {
    connection: Option<Connection>,
    in_flight: InFlight<Waiter>,
    breaker: Breaker,
    next_number: u64,
    /// Each with its room among the errands, if it has some: free again when the peer has it.
    amendments: AmendQueue<Option<Room>>,
    /// Whether the peer is no member any more: then nothing is taken.
    is_retired: bool,
    late: LateReplies,
    datagrams: u64,
    fingerprints: Option<Fingerprints>,
    next_ping: Nanos,
}

/// What a peer goes by, as it told last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprints {
    pub(crate) placement: u64,
    pub(crate) policies: u64,
}

#[derive(Debug)]
struct Waiter {
    tell: oneshot::Sender<Heard>,
}

/// What became of an ask.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Heard {
    /// It was decided, by the peer as owner or by who is named; heard at this instant.
    Verdicts(Nanos, Option<Said>, SmallVec<[Verdict; 1]>),
    /// The owner told the state of a counter.
    Counter(Option<Verdict>),
    /// It did not.
    Failed(Failure),
}

/// An ask that was taken.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Its number: the same check is asked again by it.
    pub(crate) number: u64,
    /// The boot of the peer that it was for. A reply to a boot that is gone by then is no other's: the
    /// error is to give nothing back.
    pub(crate) boot: BootId,
    /// Tells what became of it.
    pub(crate) heard: oneshot::Receiver<Heard>,
}

/// A link did not take a change of a counter: too much is outstanding, or the peer is no member any more.
/// Its room is given back.
#[derive(Debug)]
pub(crate) struct NotTaken(pub(crate) Option<Room>);

impl Link {
    /// The way to this boot of a peer; what the peer does not take goes to the errands.
    pub(crate) fn new(
        (peer, boot): (NodeId, BootId),
        number: u64,
        clock: TokioClock,
        (errands, switches): (Arc<Errands>, Arc<SwitchBoard>),
    ) -> Self {
        Self {
            peer,
            number,
            clock,
            errands,
            switches,
            lanes: Default::default(),
            state: Mutex::new(State {
                connection: None,
                in_flight: InFlight::new(),
                breaker: Breaker::new(),
                next_number: 1,
                amendments: AmendQueue::new(boot),
                is_retired: false,
                late: LateReplies::default(),
                datagrams: 0,
                fingerprints: None,
                next_ping: Nanos::ZERO,
            }),
            usable: AtomicBool::new(false),
            became_usable: Notify::new(),
            timer: Notify::new(),
            last_heard: AtomicU64::new(0),
            counters: LinkCounters::default(),
        }
    }

    /// The peer.
    pub(crate) const fn peer(&self) -> &NodeId {
        &self.peer
    }

    /// Its number among this node's links.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Whether an ask would be sent now.
    pub(crate) fn is_usable(&self) -> bool {
        self.usable.load(Ordering::Acquire)
    }

    /// When the peer's last datagram came, as far as it was noticed.
    pub(crate) fn last_heard(&self) -> Option<Nanos> {
        let at = self.last_heard.load(Ordering::Relaxed);
        (at > 0).then(|| Nanos::new(at))
    }

    /// What the peer goes by, as it told last.
    pub(crate) fn fingerprints(&self) -> Option<Fingerprints> {
        self.state.lock().fingerprints
    }

    /// Waits until an ask would be sent. Cancel safe.
    pub(crate) async fn usable(&self) {
        loop {
            let became_usable = self.became_usable.notified();
            if self.is_usable() {
                return;
            }
            became_usable.await;
        }
    }

    /// Asks the peer to decide, under a new number or that of the same check asked before.
    ///
    /// `None` if the ask cannot be sent: the breaker is open, or too much waits.
    pub(crate) fn ask(
        &self,
        (now, deadline): (Nanos, Nanos),
        (mode, asks): (Mode, &[Ask]),
        number: Option<u64>,
        way: Way,
    ) -> Option<Asked> {
        let lane = self.lane_of(asks.first()?.key)?;
        let (asked, was_first) = self.enter(now, deadline, number)?;
        let head = CheckHead {
            budget_micros: budget_micros(now, deadline),
            mode,
            asks: u8::try_from(asks.len()).ok()?,
            way,
        };
        let put = lane.put(|writer| {
            let mut shaped = SmallVec::<[PeerAsk; 2]>::new();
            for ask in asks {
                let shape = writer.shape(&ask.rule)?;
                shaped.push(PeerAsk::new(shape, ask.key, ask.cost));
            }
            writer.frame(asked.number, deadline, |body| {
                put_check(body, &head, shaped)
            })
        });
        self.entered(asked, was_first, put)
    }

    /// Asks the peer for the state of a counter.
    pub(crate) fn read(&self, now: Nanos, deadline: Nanos, ask: &Ask) -> Option<Asked> {
        let lane = self.lane_of(ask.key)?;
        let (asked, was_first) = self.enter(now, deadline, None)?;
        let put = lane.put(|writer| {
            let shape = writer.shape(&ask.rule)?;
            let request = Request::Read(PeerAsk::new(shape, ask.key, ask.cost));
            writer.frame(asked.number, deadline, |body| put_request(body, &request))
        });
        self.entered(asked, was_first, put)
    }

    fn lane_of(&self, key: KeyHash) -> Option<&Lane> {
        let lane = usize::try_from(key.low() % (LANES as u64)).ok()?;
        self.lanes.get(lane)
    }

    /// Takes an ask into those in flight, with whether the timer must be set anew.
    fn enter(&self, now: Nanos, deadline: Nanos, number: Option<u64>) -> Option<(Asked, bool)> {
        let (tell, heard) = oneshot::channel();
        let mut state = self.state.lock();
        if !self.is_usable() {
            return None;
        }
        let timer = state.in_flight.next_deadline();
        let number = number.unwrap_or_else(|| {
            let number = state.next_number;
            state.next_number += 1;
            number
        });
        state
            .in_flight
            .insert(number, now, deadline, Waiter { tell })
            .ok()?;
        let is_first = timer.is_none_or(|timer| deadline < timer);
        let asked = Asked {
            number,
            boot: state.amendments.owner(),
            heard,
        };
        Some((asked, is_first))
    }

    fn entered(&self, asked: Asked, was_first: bool, put: Result<(), LaneFull>) -> Option<Asked> {
        if put.is_err() {
            self.state.lock().in_flight.take(asked.number);
            return None;
        }
        if was_first {
            self.timer.notify_one();
        }
        Some(asked)
    }
}

fn budget_micros(now: Nanos, deadline: Nanos) -> u32 {
    u32::try_from(deadline.saturating_sub(now).as_nanos() / 1000).unwrap_or(u32::MAX)
}
