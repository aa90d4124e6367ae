//! Every datagram that was sent, and a hash over all of them: what two runs are compared by.

use std::{hash::Hasher, net::SocketAddr, time::Duration};

use siphasher::sip::SipHasher13;

/// The most records that are kept to be looked at; the hash goes on.
const MAX_RECORDS: usize = 1 << 19;

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was sent on its way.
    Carried,
    /// It was sent on its way, and a copy of it.
    Copied,
    /// The link lost it.
    Lost,
    /// The link is blocked.
    Blocked,
    /// The scenario's predicate dropped it.
    Dropped,
    /// Nobody has the receiver's address, or the sender was unplugged.
    Unplugged,
    /// Too much is on its way.
    Overflowed,
    /// The sender is suspended.
    Suspended,
}

/// One datagram that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Virtual time since the start of the run.
    pub sent_at: Duration,
    /// The sender.
    pub from: SocketAddr,
    /// The receiver.
    pub to: SocketAddr,
    /// Bytes of payload.
    pub length: usize,
    /// What became of it.
    pub fate: Fate,
}

/// Every datagram that was sent. Equal traces had equal datagrams, the unkept ones included.
#[derive(Clone, Debug)]
pub struct Trace {
    records: Vec<Record>,
    sent: u64,
    hasher: SipHasher13,
}

impl Trace {
    pub(super) fn new() -> Self {
        Self {
            records: Vec::new(),
            sent: 0,
            hasher: SipHasher13::new(),
        }
    }

    /// The first half million or so.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// How many there were.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// A hash of all of them, the same in every process.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hasher.finish()
    }

    /// Where two traces part, if they do within the records kept.
    #[must_use]
    pub fn first_difference<'a>(&'a self, other: &'a Self) -> Option<Difference<'a>> {
        let pairs = self.records.iter().zip(&other.records);
        let common = pairs.take_while(|(one, two)| one == two).count();
        let (one, two) = (self.records.get(common), other.records.get(common));
        (one != two).then_some(Difference {
            index: common,
            one,
            two,
        })
    }

    pub(super) fn push(&mut self, record: Record) {
        self.sent += 1;
        self.hasher.write_u128(record.sent_at.as_nanos());
        hash_address(&mut self.hasher, record.from);
        hash_address(&mut self.hasher, record.to);
        self.hasher.write_usize(record.length);
        self.hasher.write_u8(match record.fate {
            Fate::Carried => 0,
            Fate::Lost => 1,
            Fate::Blocked => 2,
            Fate::Dropped => 3,
            Fate::Unplugged => 4,
            Fate::Overflowed => 5,
            Fate::Copied => 6,
            Fate::Suspended => 7,
        });
        if self.records.len() < MAX_RECORDS {
            self.records.push(record);
        }
    }
}

impl PartialEq for Trace {
    fn eq(&self, other: &Self) -> bool {
        self.sent == other.sent && self.hash() == other.hash() && self.records == other.records
    }
}

/// Where two traces part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference<'a> {
    /// The number of the datagram.
    pub index: usize,
    /// It in one trace; `None`: the trace ends before.
    pub one: Option<&'a Record>,
    /// It in the other.
    pub two: Option<&'a Record>,
}

fn hash_address(hasher: &mut SipHasher13, address: SocketAddr) {
    match address {
        SocketAddr::V4(address) => hasher.write(&address.ip().octets()),
        SocketAddr::V6(address) => hasher.write(&address.ip().octets()),
    }
    hasher.write_u16(address.port());
}
