//! The settings of QUIC, each with its reason.
//!
//! Knows nothing of who connects. The accepting side serves all protocols with one set, so its idle
//! timeout is the longest; the dialler's shorter one wins, for the smaller of the two counts.

use std::{sync::Arc, time::Duration};

use quinn::{
    ClientConfig, EndpointConfig, IdleTimeout, ServerConfig, TransportConfig, VarInt,
    crypto::rustls::{QuicClientConfig, QuicServerConfig},
};

use super::keys;
use crate::{clock::TokioClock, credentials::Credentials, tls::ClockTime};

/// A data connection on which nothing came for so long is lost.
pub(super) const DATA_IDLE: Duration = Duration::from_secs(3);
/// The dialler of a data connection says something this often, so that a second without any datagram
/// means something.
pub(super) const DATA_KEEP_ALIVE: Duration = Duration::from_millis(300);
/// A gossip connection that nobody used for so long is given up; it is not kept alive.
pub(super) const GOSSIP_IDLE: Duration = Duration::from_secs(30);

/// The assumed round trip before one was measured: a first packet that was lost is sent again soon.
const INITIAL_RTT: Duration = Duration::from_millis(20);
/// Streams that the other side may have open; their state is allocated beforehand.
const MAX_BIDI_STREAMS: VarInt = VarInt::from_u32(16);
const MAX_UNI_STREAMS: VarInt = VarInt::from_u32(8);
const STREAM_WINDOW: VarInt = VarInt::from_u32(256 << 10);
const CONNECTION_WINDOW: VarInt = VarInt::from_u32(2 << 20);
const SEND_WINDOW: u64 = 2 << 20;
/// Gossip packets that wait; the oldest are dropped above it.
const DATAGRAM_BUFFER: usize = 64 << 10;
/// Connection attempts that wait to be looked at, and the bytes that came with them.
const MAX_INCOMING: usize = 4_096;
const INCOMING_BUFFER: u64 = 64 << 10;
const INCOMING_BUFFER_TOTAL: u64 = 16 << 20;

/// The endpoint's own settings. Connection ids and resets survive a restart; packet numbers and the like
/// come from the seed.
pub(super) fn endpoint(credentials: &Credentials, seed: u64) -> EndpointConfig {
    let mut config = EndpointConfig::new(Arc::new(keys::reset_key(credentials)));
    let connection_ids = keys::connection_id_key(credentials);
    config.cid_generator(move || Box::new(keys::connection_ids(connection_ids)));
    config.rng_seed(Some(seed_bytes(seed)));
    config
}

/// The accepting side of all protocols.
pub(super) fn server(
    tls: QuicServerConfig,
    credentials: &Credentials,
    clock: &TokioClock,
) -> ServerConfig {
    let mut config = ServerConfig::new(Arc::new(tls), Arc::new(keys::token_key(credentials)));
    config.transport_config(Arc::new(transport(GOSSIP_IDLE)));
    config.migration(false);
    config.max_incoming(MAX_INCOMING);
    config.incoming_buffer_size(INCOMING_BUFFER);
    config.incoming_buffer_size_total(INCOMING_BUFFER_TOTAL);
    config.time_source(Arc::new(ClockTime::new(clock)));
    config
}

/// The dialling side of data connections.
pub(super) fn peer_client(tls: QuicClientConfig) -> ClientConfig {
    let mut settings = transport(DATA_IDLE);
    settings.keep_alive_interval(Some(DATA_KEEP_ALIVE));
    settings.datagram_receive_buffer_size(None);
    client(tls, settings)
}

/// The dialling side of gossip connections.
pub(super) fn gossip_client(tls: QuicClientConfig) -> ClientConfig {
    client(tls, transport(GOSSIP_IDLE))
}

fn client(tls: QuicClientConfig, settings: TransportConfig) -> ClientConfig {
    let mut config = ClientConfig::new(Arc::new(tls));
    config.transport_config(Arc::new(settings));
    config
}

fn transport(idle: Duration) -> TransportConfig {
    let mut settings = TransportConfig::default();
    settings.max_idle_timeout(IdleTimeout::try_from(idle).ok());
    settings.initial_rtt(INITIAL_RTT);
    settings.max_concurrent_bidi_streams(MAX_BIDI_STREAMS);
    settings.max_concurrent_uni_streams(MAX_UNI_STREAMS);
    settings.stream_receive_window(STREAM_WINDOW);
    settings.receive_window(CONNECTION_WINDOW);
    settings.send_window(SEND_WINDOW);
    settings.datagram_receive_buffer_size(Some(DATAGRAM_BUFFER));
    settings.datagram_send_buffer_size(DATAGRAM_BUFFER);
    settings
}

fn seed_bytes(seed: u64) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (to, from) in bytes.iter_mut().zip(seed.to_le_bytes()) {
        *to = from;
    }
    bytes
}
