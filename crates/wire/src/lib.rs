//! What is said: frames, and the messages in them.
//!
//! The only crate that names bincode, so that another encoding is a change of `codec` alone. Must not
//! know sockets, time or decisions. Invariants: the frame header never changes; a message's layout
//! belongs to the version byte and its enums only grow at the end; every decode is bounded and
//! must read all bytes; golden bytes of every message are a test.

pub mod client;
mod codec;
pub mod frame;
pub mod identity;
pub mod peer;
pub mod receipt;
pub mod replica;
mod rule;
mod verdict;

pub use self::codec::{CodecError, decode_gossip, encode_gossip};

/// The version of the messages that this program speaks.
pub const PROTOCOL_VERSION: u8 = 1;
/// The oldest version that it understands.
pub const OLDEST_PROTOCOL_VERSION: u8 = 1;

/// ALPN of the data connections between peers.
pub const ALPN_PEER: &[u8] = b"tollgate-peer/1";
/// ALPN of the gossip connections between peers.
pub const ALPN_GOSSIP: &[u8] = b"tollgate-gossip/1";
/// ALPN of clients.
pub const ALPN_CLIENT: &[u8] = b"tollgate/1";
