//! What peers say to each other on a data stream.
//!
//! The caller opens the stream, says [`Hello`] first and then asks; the owner answers with the
//! request id of what it answers, in any order. A rule is sent once per stream as a numbered shape and
//! named by its number from then on; a number may be sent again with another rule, which holds for
//! the frames behind it.
//!
//! A check is its head and then its asks one by one in the same body, so that neither side makes a
//! list to read or write it. [`Request`] and [`Reply`] are what a reader gets.

mod check;
mod reply;
mod request;
mod switches;

pub use self::{
    check::{CheckHead, MAX_ASKS, PeerAsk, Way},
    reply::{Reply, Said, Verdicts, put_reply, put_verdicts, read_reply, read_verdict},
    request::{Amend, Hello, Request, put_check, put_request, read_ask, read_request},
    switches::{Register, Switches},
};
