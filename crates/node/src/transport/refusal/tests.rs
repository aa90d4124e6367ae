//! Tests of what a failed handshake means.

use quinn::{ConnectionClose, ConnectionError, TransportErrorCode};

use super::{CRYPTO_ERRORS, Refusal};
use crate::transport::may_heal;

fn closed(code: TransportErrorCode, reason: &'static str) -> ConnectionError {
    ConnectionError::ConnectionClosed(ConnectionClose {
        error_code: code,
        frame_type: None,
        reason: reason.into(),
    })
}

#[test]
fn a_dial_that_is_given_up_is_no_refusal_and_heals() {
    let given_up = closed(TransportErrorCode::APPLICATION_ERROR, "");
    assert_eq!(Refusal::of_handshake(&given_up), None);
    assert!(may_heal(&given_up));
    let busy = closed(TransportErrorCode::CONNECTION_REFUSED, "");
    assert_eq!(Refusal::of_handshake(&busy), None);
    assert!(may_heal(&busy));
}

#[test]
fn alerts_about_certificates_and_protocols_are_refusals_even_without_a_word() {
    let unknown_authority = closed(TransportErrorCode::crypto(48), "");
    let refusal = Refusal::CertificateOfOurs(String::new());
    assert_eq!(Refusal::of_handshake(&unknown_authority), Some(refusal));
    assert!(!may_heal(&unknown_authority));
    let no_protocol = closed(TransportErrorCode::crypto(120), "");
    assert_eq!(u64::from(TransportErrorCode::crypto(0)), CRYPTO_ERRORS);
    assert_eq!(
        Refusal::of_handshake(&no_protocol),
        Some(Refusal::UnknownProtocol)
    );
}

#[test]
fn a_broken_handshake_that_says_why_is_a_refusal() {
    let broken = closed(TransportErrorCode::PROTOCOL_VIOLATION, "nonsense");
    let refusal = Refusal::Handshake("nonsense".to_owned());
    assert_eq!(Refusal::of_handshake(&broken), Some(refusal));
}
