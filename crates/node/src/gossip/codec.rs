//! Gossip packets as bytes.
//!
//! The layout is `wire`'s encoding of plain tuples, so that the library's own types may change. Invariant:
//! what does not fit is not written at all.

use bytes::{Buf, BufMut};
use foca::{Header, Incarnation, Member, Message, ProbeNumber, State};
use tollgate_wire::{CodecError, decode_gossip, encode_gossip, identity::Identity};

use super::identity::Gossiped;

/// Writes and reads the parts of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct GossipCodec;

/// A message: which one, its probe's number, and the member that it is about.
type MessageParts<I> = (u8, ProbeNumber, Option<I>);
type HeaderParts<I> = (I, Incarnation, I, MessageParts<I>);
type MemberParts<I> = (I, Incarnation, u8);

impl foca::Codec<Gossiped> for GossipCodec {
    type Error = CodecError;

    fn encode_header(
        &mut self,
        header: &Header<Gossiped>,
        buffer: impl BufMut,
    ) -> Result<(), CodecError> {
        let message = message_parts(&header.message);
        let parts: HeaderParts<&Identity> = (
            &header.src.0,
            header.src_incarnation,
            &header.dst.0,
            message,
        );
        encode_gossip(&parts, buffer)
    }

    fn decode_header(&mut self, buffer: impl Buf) -> Result<Header<Gossiped>, CodecError> {
        let (src, src_incarnation, dst, message): HeaderParts<Identity> = decode_gossip(buffer)?;
        let message = message_of(message)?;
        Ok(Header {
            src: Gossiped(src),
            src_incarnation,
            dst: Gossiped(dst),
            message,
        })
    }

    fn encode_member(
        &mut self,
        member: &Member<Gossiped>,
        buffer: impl BufMut,
    ) -> Result<(), CodecError> {
        let state = match member.state() {
            State::Alive => 0,
            State::Suspect => 1,
            State::Down => 2,
        };
        let parts: MemberParts<&Identity> = (&member.id().0, member.incarnation(), state);
        encode_gossip(&parts, buffer)
    }

    fn decode_member(&mut self, buffer: impl Buf) -> Result<Member<Gossiped>, CodecError> {
        let (identity, incarnation, state): MemberParts<Identity> = decode_gossip(buffer)?;
        let state = match state {
            0 => State::Alive,
            1 => State::Suspect,
            2 => State::Down,
            _unknown => return Err(CodecError::Malformed),
        };
        Ok(Member::new(Gossiped(identity), incarnation, state))
    }
}

/// Whether a packet with this message is answered.
pub(super) const fn expects_answer(message: &Message<Gossiped>) -> bool {
    match message {
        Message::Ping(_)
        | Message::PingReq { .. }
        | Message::IndirectPing { .. }
        | Message::Announce => true,
        Message::Ack(_)
        | Message::IndirectAck { .. }
        | Message::ForwardedAck { .. }
        | Message::Feed
        | Message::Gossip
        | Message::Broadcast
        | Message::TurnUndead => false,
    }
}

fn message_parts(message: &Message<Gossiped>) -> MessageParts<&Identity> {
    match message {
        Message::Ping(number) => (0, *number, None),
        Message::Ack(number) => (1, *number, None),
        Message::PingReq {
            target,
            probe_number,
        } => (2, *probe_number, Some(&target.0)),
        Message::IndirectPing {
            origin,
            probe_number,
        } => (3, *probe_number, Some(&origin.0)),
        Message::IndirectAck {
            target,
            probe_number,
        } => (4, *probe_number, Some(&target.0)),
        Message::ForwardedAck {
            origin,
            probe_number,
        } => (5, *probe_number, Some(&origin.0)),
        Message::Announce => (6, 0, None),
        Message::Feed => (7, 0, None),
        Message::Gossip => (8, 0, None),
        Message::Broadcast => (9, 0, None),
        Message::TurnUndead => (10, 0, None),
    }
}

fn message_of(parts: MessageParts<Identity>) -> Result<Message<Gossiped>, CodecError> {
    let (kind, probe_number, about) = parts;
    let about = about.map(Gossiped);
    Ok(match (kind, about) {
        (0, None) => Message::Ping(probe_number),
        (1, None) => Message::Ack(probe_number),
        (2, Some(target)) => Message::PingReq {
            target,
            probe_number,
        },
        (3, Some(origin)) => Message::IndirectPing {
            origin,
            probe_number,
        },
        (4, Some(target)) => Message::IndirectAck {
            target,
            probe_number,
        },
        (5, Some(origin)) => Message::ForwardedAck {
            origin,
            probe_number,
        },
        (6, None) => Message::Announce,
        (7, None) => Message::Feed,
        (8, None) => Message::Gossip,
        (9, None) => Message::Broadcast,
        (10, None) => Message::TurnUndead,
        (_kind, _about) => return Err(CodecError::Malformed),
    })
}

#[cfg(test)]
mod tests {
    use bytes::BufMut as _;
    use foca::{Codec as _, Header, Member, Message, State};
    use tollgate_wire::CodecError;

    use super::{GossipCodec, Gossiped, message_of};
    use crate::gossip::tests::identity;

    fn messages() -> Vec<Message<Gossiped>> {
        let about = Gossiped(identity("n3", 3));
        let (target, origin) = (about.clone(), about);
        vec![
            Message::Ping(1),
            Message::Ack(2),
            Message::PingReq {
                target: target.clone(),
                probe_number: 3,
            },
            Message::IndirectPing {
                origin: origin.clone(),
                probe_number: 4,
            },
            Message::IndirectAck {
                target,
                probe_number: 5,
            },
            Message::ForwardedAck {
                origin,
                probe_number: 6,
            },
            Message::Announce,
            Message::Feed,
            Message::Gossip,
            Message::Broadcast,
            Message::TurnUndead,
        ]
    }

    fn header(message: Message<Gossiped>) -> Header<Gossiped> {
        let (src, dst) = (Gossiped(identity("n1", 1)), Gossiped(identity("n2", 2)));
        Header {
            src,
            src_incarnation: 7,
            dst,
            message,
        }
    }

    #[test]
    fn every_part_comes_back_and_leaves_what_follows() {
        for message in messages() {
            let header = header(message);
            let mut bytes = Vec::new();
            GossipCodec.encode_header(&header, &mut bytes).unwrap();
            bytes.extend_from_slice(b"rest");
            let mut rest = bytes.as_slice();
            assert_eq!(GossipCodec.decode_header(&mut rest).unwrap(), header);
            assert_eq!(rest, b"rest");
        }
        for state in [State::Alive, State::Suspect, State::Down] {
            let member = Member::new(Gossiped(identity("n1", 1)), 65_535, state);
            let mut bytes = Vec::new();
            GossipCodec.encode_member(&member, &mut bytes).unwrap();
            assert_eq!(GossipCodec.decode_member(bytes.as_slice()).unwrap(), member);
        }
    }

    #[test]
    fn what_does_not_fit_is_not_begun() {
        let member = Member::alive(Gossiped(identity("n1", 1)));
        let mut whole = Vec::new();
        GossipCodec.encode_member(&member, &mut whole).unwrap();
        for room in 0..whole.len() {
            let mut buffer = Vec::new().limit(room);
            let refused = GossipCodec.encode_member(&member, &mut buffer);
            assert_eq!(refused, Err(CodecError::TooLarge));
            assert!(buffer.get_ref().is_empty());
        }
    }

    #[test]
    fn a_part_that_is_cut_short_or_unknown_is_refused() {
        let header = header(Message::Announce);
        let mut bytes = Vec::new();
        GossipCodec.encode_header(&header, &mut bytes).unwrap();
        for length in 0..bytes.len() {
            assert!(
                GossipCodec.decode_header(&bytes[..length]).is_err(),
                "{length}"
            );
        }
        let about = || Some(identity("n3", 3));
        for parts in [(11, 0, None), (255, 0, None), (0, 0, about()), (2, 0, None)] {
            assert_eq!(message_of(parts), Err(CodecError::Malformed));
        }
    }
}
