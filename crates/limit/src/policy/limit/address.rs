//! The key attribute `ip`: one bucket for one client, however its address is written.
//!
//! IPv4 in IPv6 is IPv4, ports and zones are cut off, and IPv6 is grouped by a prefix, since a client has
//! at least a /64 of its own (RFC 6177). What is no address stands for itself. Knows nothing of hashing.

use std::{
    borrow::Cow,
    net::{IpAddr, Ipv6Addr, SocketAddr},
};

/// The text that an address counts by.
pub(super) fn bucket(value: &str, ipv6_prefix: u8) -> Cow<'_, str> {
    // IPv4 without a port is as it should be already.
    if !value.contains(':') {
        return Cow::Borrowed(value);
    }
    match parse_address(value) {
        Some(IpAddr::V4(address)) => Cow::Owned(address.to_string()),
        Some(IpAddr::V6(address)) => {
            let network = network(address, ipv6_prefix);
            Cow::Owned(format!("{network}/{ipv6_prefix}"))
        }
        None => Cow::Borrowed(value),
    }
}

/// The address in a text that may have a port, brackets or a zone; IPv4 in IPv6 is IPv4. `None` if it is
/// no address.
#[must_use]
pub fn parse_address(value: &str) -> Option<IpAddr> {
    if let Ok(address) = value.parse::<IpAddr>() {
        return Some(address.to_canonical());
    }
    if let Ok(with_port) = value.parse::<SocketAddr>() {
        return Some(with_port.ip().to_canonical());
    }
    let bare = value
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'));
    let bare = bare.map_or(value, |(address, _)| address);
    let (address, _zone) = bare.split_once('%').unwrap_or((bare, ""));
    let address: IpAddr = address.parse().ok()?;
    Some(address.to_canonical())
}

fn network(address: Ipv6Addr, prefix: u8) -> Ipv6Addr {
    let host_bits = 128_u32.saturating_sub(u32::from(prefix));
    let mask = u128::MAX.unbounded_shl(host_bits);
    Ipv6Addr::from_bits(address.to_bits() & mask)
}

#[cfg(test)]
mod tests {
    use super::bucket;

    fn check(prefix: u8, same: &[&str], expected: &str) {
        for value in same {
            assert_eq!(bucket(value, prefix), expected, "{value}");
        }
    }

    #[test]
    fn one_client_is_one_bucket() {
        let v4 = [
            "203.0.113.7",
            "203.0.113.7:1234",
            "203.0.113.7:1235",
            "::ffff:203.0.113.7",
        ];
        check(64, &v4, "203.0.113.7");
        check(64, &["[::ffff:203.0.113.7]:443"], "203.0.113.7");
        let v6 = [
            "[2001:db8::1]:443",
            "2001:db8::1",
            "[2001:db8::2]",
            "2001:DB8:0:0:ffff::9",
        ];
        check(64, &v6, "2001:db8::/64");
        check(64, &["fe80::1%eth0", "[fe80::2%25eth0]:80"], "fe80::/64");
        check(
            56,
            &["2001:db8:0:1::1", "2001:db8:0:ff::1"],
            "2001:db8::/56",
        );
        check(128, &["2001:db8::1"], "2001:db8::1/128");
        check(1, &["ffff::"], "8000::/1");
    }

    #[test]
    fn what_is_no_address_stands_for_itself() {
        for value in [
            "",
            "unknown",
            "a:b",
            "::g",
            "[",
            "[]",
            "]:1",
            "1.2.3.4.5:1",
            "%:",
        ] {
            assert_eq!(bucket(value, 64), value);
        }
    }
}
