//! The load generators of the bench, which `tollgate bench` shares: over HTTP/1.1 and over QUIC.
//!
//! Must not know how servers are started or compared; the bench program does that.

pub mod load;
