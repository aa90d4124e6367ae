//! Ports for the nodes of a cluster.
//!
//! Free ports are looked for below the range that the system gives to outgoing connections, so that a
//! node can be started again on its port. They are not held: whoever starts on one may find it taken.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

use rand::{
    RngExt as _, SeedableRng as _,
    rngs::{StdRng, SysRng},
};

use crate::command::Failure;

/// The two ports of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ports {
    /// HTTP, over TCP.
    pub(super) http: SocketAddr,
    /// QUIC, over UDP.
    pub(super) quic: SocketAddr,
}

/// Between two nodes' first ports.
const STEP: u16 = 10;
/// Where free ports are looked for.
const FREE_RANGE: std::ops::Range<u16> = 10_240..32_000;
/// How many ports are tried for each that is needed.
const MAX_TRIES: usize = 1000;

/// Ports for `nodes` nodes from a first port on; free ones if it is 0.
pub(super) fn choose(base: u16, nodes: u16) -> Result<Vec<Ports>, Failure> {
    if base == 0 {
        return free(nodes);
    }
    (0..nodes)
        .map(|number| {
            let http = number
                .checked_mul(STEP)
                .and_then(|offset| base.checked_add(offset))?;
            Some(Ports {
                http: loopback(http),
                quic: loopback(http.checked_add(1)?),
            })
        })
        .collect::<Option<_>>()
        .ok_or_else(|| {
            Failure::Usage(format!(
                "--base-port {base} leaves no ports for {nodes} nodes"
            ))
        })
}

fn free(nodes: u16) -> Result<Vec<Ports>, Failure> {
    let mut chosen: Vec<Ports> = Vec::new();
    let random = StdRng::try_from_rng(&mut SysRng);
    let mut random = random
        .map_err(|error| Failure::Runtime(format!("the system has no randomness: {error}")))?;
    for _ in 0..MAX_TRIES * usize::from(nodes) {
        if chosen.len() == usize::from(nodes) {
            return Ok(chosen);
        }
        // Two ports in a row, the first one even: no two pairs overlap.
        let http = random.random_range(FREE_RANGE) & !1;
        let ports = Ports {
            http: loopback(http),
            quic: loopback(http | 1),
        };
        if !chosen.contains(&ports) && are_free(ports) {
            chosen.push(ports);
        }
    }
    Err(Failure::Runtime("no free ports were found".to_owned()))
}

fn are_free(ports: Ports) -> bool {
    TcpListener::bind(ports.http).is_ok() && UdpSocket::bind(ports.quic).is_ok()
}

fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

#[cfg(test)]
mod tests {
    use super::choose;

    #[test]
    fn nodes_are_ten_ports_apart_and_quic_follows_http() {
        let ports = choose(7600, 3).unwrap();
        let pairs: Vec<_> = ports
            .iter()
            .map(|it| (it.http.port(), it.quic.port()))
            .collect();
        assert_eq!(pairs, [(7600, 7601), (7610, 7611), (7620, 7621)]);
    }

    #[test]
    fn too_high_a_first_port_is_refused() {
        assert!(choose(65_530, 2).is_err());
        assert!(choose(65_535, 1).is_err());
    }

    #[test]
    fn free_ports_differ() {
        let ports = choose(0, 8).unwrap();
        let mut numbers: Vec<_> = ports.iter().flat_map(|it| [it.http, it.quic]).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 16);
    }
}
