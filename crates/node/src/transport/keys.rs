//! Keys that stay the same over restarts, derived from the node's private key.
//!
//! A restarted node thereby recognises the connection ids of the boot before and answers packets on them
//! with a reset that the peer believes: the restart is noticed at once, not after the idle timeout.

use quinn_proto::HashedConnectionIdGenerator;
use ring::{hkdf, hmac};

use crate::credentials::Credentials;

/// The key of stateless resets.
pub(super) fn reset_key(credentials: &Credentials) -> hmac::Key {
    hmac::Key::new(
        hmac::HMAC_SHA256,
        &credentials.secret(b"tollgate stateless reset"),
    )
}

/// The key of address validation tokens.
pub(super) fn token_key(credentials: &Credentials) -> hkdf::Prk {
    let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"tollgate address validation");
    salt.extract(&credentials.secret(b"tollgate address validation"))
}

/// Makes and recognises connection ids.
pub(super) fn connection_ids(key: u64) -> HashedConnectionIdGenerator {
    HashedConnectionIdGenerator::from_key(key)
}

/// The key of [`connection_ids`].
pub(super) fn connection_id_key(credentials: &Credentials) -> u64 {
    let secret = credentials.secret(b"tollgate connection ids");
    secret
        .first_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
