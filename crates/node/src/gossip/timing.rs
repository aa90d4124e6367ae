//! How often, how long, how much: the numbers of gossip.
//!
//! Invariants: a probe ends before the next begins; a packet fits a QUIC datagram on every path.

use std::{
    num::{NonZeroU8, NonZeroU32, NonZeroUsize},
    time::Duration,
};

use foca::{Config, PeriodicParams};
use tollgate_limit::Nanos;

/// How often a member is probed, one after the other.
pub(super) const PROBE_PERIOD: Duration = Duration::from_millis(500);
/// How long the direct answer to a probe may take.
pub(super) const PROBE_RTT: Duration = Duration::from_millis(150);
/// How often news is passed on, and to how many.
const GOSSIP_PERIOD: Duration = Duration::from_millis(100);
const GOSSIP_MEMBERS: usize = 3;
/// How often a member is asked for what it knows.
const ANNOUNCE_PERIOD: Duration = Duration::from_secs(10);
const ANNOUNCE_MEMBERS: usize = 1;
/// How often members that are down are called, and how many: they may be back.
const ANNOUNCE_DOWN_PERIOD: Duration = Duration::from_secs(3);
const ANNOUNCE_DOWN_MEMBERS: usize = 2;
/// How often each member passes a piece of news on, as a multiple of the preset's 4 log10 N: with the preset one
/// member in a hundred misses each, and finds out by itself only when its own probes have gone round.
const NEWS_TIMES: NonZeroU8 = match NonZeroU8::new(3) {
    Some(times) => times,
    None => NonZeroU8::MIN,
};
/// How long a member that is down is remembered, and called.
const REMOVE_DOWN_AFTER: Duration = Duration::from_secs(24 * 3600);
/// The largest packet: fits the smallest datagram that QUIC promises, less its overhead.
pub(super) const MAX_PACKET: usize = 1_150;

/// How often seeds are asked while this node is alone or joining.
pub(super) const SEEK_PERIOD: Nanos = Nanos::from_millis(1_000);
/// The longest sleep of the driver: what its lateness is measured by.
pub(super) const HEARTBEAT: Nanos = Nanos::from_millis(500);
/// How long leaving may take to be told, in all.
pub const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);
/// How often goodbye is said, and with which pause.
pub(super) const GOODBYES: u32 = 4;
/// The pause between goodbyes.
pub(super) const GOODBYE_PAUSE: Nanos = Nanos::from_millis(100);

/// The settings of the gossip library for a cluster of `members`.
pub(super) fn config(members: usize) -> Config {
    let members = u32::try_from(members).ok().and_then(NonZeroU32::new);
    let lan = Config::new_lan(members.unwrap_or(NonZeroU32::MIN));
    Config {
        probe_period: PROBE_PERIOD,
        probe_rtt: PROBE_RTT,
        // The preset's is 4 * max(1, log10 N) s.
        suspect_to_down_after: lan.suspect_to_down_after / 2,
        remove_down_after: Some(REMOVE_DOWN_AFTER),
        max_transmissions: lan.max_transmissions.saturating_mul(NEWS_TIMES),
        max_packet_size: NonZeroUsize::new(MAX_PACKET).unwrap_or(lan.max_packet_size),
        periodic_announce: periodic(ANNOUNCE_PERIOD, ANNOUNCE_MEMBERS),
        periodic_announce_to_down_members: periodic(ANNOUNCE_DOWN_PERIOD, ANNOUNCE_DOWN_MEMBERS),
        periodic_gossip: periodic(GOSSIP_PERIOD, GOSSIP_MEMBERS),
        ..lan
    }
}

/// How long a suspect has to answer; a driver that slept longer may have been given up by the others.
pub(super) fn suspicion(members: usize) -> Nanos {
    config(members).suspect_to_down_after.into()
}

fn periodic(frequency: Duration, members: usize) -> Option<PeriodicParams> {
    NonZeroUsize::new(members).map(|num_members| PeriodicParams {
        frequency,
        num_members,
    })
}
