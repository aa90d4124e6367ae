//! The state behind the network's lock: sockets' inboxes, the queue of what is on its way, the orders.
//!
//! No clock and no waiting here: `now` comes in, wakers go out.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    net::SocketAddr,
    task::Waker,
    time::Duration,
};

use quinn::udp::EcnCodepoint;
use rand::{SeedableRng, rngs::StdRng};

use super::{
    Datagram, Fate, Record, Trace,
    link::{Links, Travel},
};

/// The most datagrams on their way at once; more are lost, like in a switch.
const MAX_IN_FLIGHT: usize = 1 << 17;
/// The most datagrams that wait at one socket; more are lost, like in a kernel's buffer.
const MAX_INBOX: usize = 1 << 13;

/// A question of the scenario to each datagram: lose it?
type Predicate = Box<dyn FnMut(Datagram<'_>) -> bool + Send>;

/// The network's state.
pub(super) struct Fabric {
    pub(super) links: Links,
    pub(super) predicate: Option<Predicate>,
    pub(super) trace: Trace,
    random: StdRng,
    inboxes: BTreeMap<SocketAddr, Inbox>,
    /// What is on its way, by (due time, sequence number, number of the copy).
    in_flight: BTreeMap<(Duration, u64, u8), InFlight>,
    sent_on_link: BTreeMap<(SocketAddr, SocketAddr), u64>,
    plugged: u64,
}

/// One plugging-in of a socket: tells a socket from an earlier one of the same address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plug {
    pub(super) address: SocketAddr,
    number: u64,
}

/// A datagram to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing<'a> {
    pub(super) plug: Plug,
    pub(super) to: SocketAddr,
    pub(super) ecn: Option<EcnCodepoint>,
    pub(super) contents: &'a [u8],
}

/// A datagram that arrived.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) from: SocketAddr,
    pub(super) ecn: Option<EcnCodepoint>,
    pub(super) contents: Vec<u8>,
}

/// Of a datagram, and of its copy if it has one.
type TravelTimes = [Option<Duration>; 2];

struct InFlight {
    to: Plug,
    datagram: Arrived,
}

struct Inbox {
    plug: Plug,
    arrived: VecDeque<Arrived>,
    reader: Option<Waker>,
    /// Its holder does not run: what arrives waits, what it sends is lost.
    is_suspended: bool,
}

impl Fabric {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            links: Links::default(),
            predicate: None,
            trace: Trace::new(),
            random: StdRng::seed_from_u64(seed),
            inboxes: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            sent_on_link: BTreeMap::new(),
            plugged: 0,
        }
    }

    /// Gives an address a socket; `None` if it has one.
    pub(super) fn plug_in(&mut self, address: SocketAddr) -> Option<Plug> {
        if self.inboxes.contains_key(&address) {
            return None;
        }
        let plug = Plug {
            address,
            number: self.plugged,
        };
        self.plugged += 1;
        let inbox = Inbox {
            plug,
            arrived: VecDeque::new(),
            reader: None,
            is_suspended: false,
        };
        self.inboxes.insert(address, inbox);
        Some(plug)
    }

    /// Takes whatever socket an address has.
    pub(super) fn unplug(&mut self, address: SocketAddr) {
        self.inboxes.remove(&address);
    }

    /// Suspends or resumes an address's socket: whom to wake.
    pub(super) fn set_suspended(
        &mut self,
        address: SocketAddr,
        is_suspended: bool,
    ) -> Option<Waker> {
        let inbox = self.inboxes.get_mut(&address)?;
        inbox.is_suspended = is_suspended;
        if is_suspended {
            None
        } else {
            inbox.reader.take()
        }
    }

    /// Takes this socket, if it is still the one of its address.
    pub(super) fn remove(&mut self, plug: Plug) {
        if self.inbox(plug).is_some() {
            self.inboxes.remove(&plug.address);
        }
    }

    pub(super) fn send(&mut self, now: Duration, outgoing: Outgoing<'_>) {
        let Outgoing {
            plug,
            to,
            ecn,
            contents,
        } = outgoing;
        let sequence = self.trace.sent();
        let (fate, travel) = self.settle_fate(now, sequence, outgoing);
        self.trace.push(Record {
            sent_at: now,
            from: plug.address,
            to,
            length: contents.len(),
            fate,
        });
        let Some((receiver, times)) = travel else {
            return;
        };
        for (copy, travel_time) in (0..).zip(times.into_iter().flatten()) {
            let datagram = Arrived {
                from: plug.address,
                ecn,
                contents: contents.to_vec(),
            };
            let due = now.saturating_add(travel_time);
            let in_flight = InFlight {
                to: receiver,
                datagram,
            };
            self.in_flight.insert((due, sequence, copy), in_flight);
        }
    }

    /// A datagram's fate; if it is carried, who gets it and how long it and its copy take.
    fn settle_fate(
        &mut self,
        now: Duration,
        sequence: u64,
        outgoing: Outgoing<'_>,
    ) -> (Fate, Option<(Plug, TravelTimes)>) {
        let (from, to) = (outgoing.plug.address, outgoing.to);
        let counter = self.sent_on_link.entry((from, to)).or_default();
        let sequence_on_link = *counter;
        *counter += 1;
        // Always drawn, so that an order of the scenario does not shift the fates of other datagrams.
        let conditions = self.links.conditions(from, to);
        let travel = conditions.travel(&mut self.random);
        let sender = self.inbox(outgoing.plug).map(|inbox| inbox.is_suspended);
        let Some(receiver) = self.inboxes.get(&to).map(|inbox| inbox.plug) else {
            return (Fate::Unplugged, None);
        };
        match sender {
            None => return (Fate::Unplugged, None),
            Some(true) => return (Fate::Suspended, None),
            Some(false) => {}
        }
        if self.links.is_blocked(from, to) {
            return (Fate::Blocked, None);
        }
        let (fate, times) = match travel {
            Travel::Lost => return (Fate::Lost, None),
            Travel::Once(time) => (Fate::Carried, [Some(time), None]),
            Travel::Twice(time, copy) => (Fate::Copied, [Some(time), Some(copy)]),
        };
        let datagram = Datagram {
            sequence,
            sequence_on_link,
            sent_at: now,
            from,
            to,
            contents: outgoing.contents,
        };
        if self.predicate.as_mut().is_some_and(|drops| drops(datagram)) {
            return (Fate::Dropped, None);
        }
        if self.in_flight.len() >= MAX_IN_FLIGHT {
            return (Fate::Overflowed, None);
        }
        (fate, Some((receiver, times)))
    }

    /// Puts what is due into the inboxes: whom to wake, in order, and when the next one is due.
    pub(super) fn arrivals(&mut self, now: Duration) -> (Vec<Waker>, Option<Duration>) {
        let mut wakers = Vec::new();
        while let Some(entry) = self.in_flight.first_entry() {
            let (due, _sequence, _copy) = *entry.key();
            if due > now {
                return (wakers, Some(due));
            }
            let InFlight { to, datagram } = entry.remove();
            let Some(inbox) = self.inbox(to) else {
                continue;
            };
            if inbox.arrived.len() < MAX_INBOX {
                inbox.arrived.push_back(datagram);
            }
            if !inbox.is_suspended {
                wakers.extend(inbox.reader.take());
            }
        }
        (wakers, None)
    }

    /// The next datagram at a socket; if there is none, `reader` is woken when there is.
    pub(super) fn receive(&mut self, plug: Plug, reader: &Waker) -> Option<Arrived> {
        let inbox = self.inbox(plug)?;
        let arrived = if inbox.is_suspended {
            None
        } else {
            inbox.arrived.pop_front()
        };
        if arrived.is_none() {
            inbox.reader = Some(reader.clone());
        }
        arrived
    }

    fn inbox(&mut self, plug: Plug) -> Option<&mut Inbox> {
        let inbox = self.inboxes.get_mut(&plug.address)?;
        (inbox.plug == plug).then_some(inbox)
    }
}

impl fmt::Debug for Fabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fabric")
            .field("links", &self.links)
            .field("sockets", &self.inboxes.len())
            .field("in_flight", &self.in_flight.len())
            .field("sent", &self.trace.sent())
            .finish_non_exhaustive()
    }
}
