//! Who the client of a proxied request is, by `X-Forwarded-For`.
//!
//! Each proxy appends the address that it was asked from, so only what trusted ones appended is true. Read
//! from the right, the first hop that is not trusted is the client; what stands left of it is its own word.

use std::net::IpAddr;

use http::HeaderMap;
use ipnet::IpNet;
use tollgate_limit::parse_address;

use super::original::text;

/// Whether an address is in one of the networks.
pub(super) fn is_one_of(address: IpAddr, networks: &[IpNet]) -> bool {
    let address = address.to_canonical();
    networks.iter().any(|network| network.contains(&address))
}

/// The right-most hop that is not trusted; if all are, the left-most. A hop that is no address is not
/// trusted, and stands for itself. `None` if there is no hop.
pub(super) fn client(headers: &HeaderMap, trusted: &[IpNet]) -> Option<String> {
    let mut nearest_trusted = None;
    for line in headers.get_all("x-forwarded-for").iter().rev() {
        let line = text(line);
        let hops = line.rsplit(',').map(str::trim);
        for hop in hops.filter(|hop| !hop.is_empty()) {
            match parse_address(hop) {
                Some(address) if is_one_of(address, trusted) => nearest_trusted = Some(address),
                Some(address) => return Some(address.to_string()),
                None => return Some(hop.to_owned()),
            }
        }
    }
    nearest_trusted.map(|address| address.to_string())
}
