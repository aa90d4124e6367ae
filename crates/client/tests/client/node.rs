//! A small node: accepts connections, reads checks, and answers as it is told to.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use quinn::{Connection, ConnectionError, Endpoint, RecvStream, SendStream, ServerConfig};
use rustls::{
    server::{NoClientAuth, WebPkiClientVerifier, danger::ClientCertVerifier},
    version::TLS13,
};
use tokio::sync::mpsc;
use tollgate_client::{Credentials, Fault};
use tollgate_limit::{
    AlgorithmSpec, CheckId, Cost, DecidedBy, Decision, Fallback, HashKey, KeyHash, Limit,
    LimitDecision, LimitNumber, LimitSpec, Nanos, NodeId, Outcome, Reason, Verdict,
};
use tollgate_wire::{
    ALPN_CLIENT,
    client::{put_decision, put_fault, read_check},
    frame::{self, MAX_CLIENT_FRAME},
};

use crate::{LONG, authority::Authority};

/// What a node does with a check of an id and a cost.
pub(crate) enum Behaviour {
    /// Admits it; the cost is in the answer.
    Admit,
    /// Gathers so many, then admits them in another order.
    Gather(usize),
    /// Says nothing.
    Silence,
    /// Refuses so many, to be retried after so long or never, then admits.
    Refuse(AtomicUsize, Option<Nanos>),
    /// Says what these limits said.
    Decide(Vec<LimitDecision>),
    /// Says what is wrong.
    Fault(Fault),
    /// Sends these bytes for the first check.
    Raw(Vec<u8>),
    /// Ends the stream.
    Finish,
}

/// A check as the node saw it.
#[derive(Clone, Copy)]
struct Asked {
    id: u64,
    cost: u64,
}

pub(crate) struct Node {
    endpoint: Endpoint,
    address: SocketAddr,
    closed: mpsc::UnboundedReceiver<ConnectionError>,
}

impl Node {
    /// A node that lets clients in without certificates.
    pub(crate) fn start(own: Credentials, behaviour: Behaviour) -> Self {
        Self::listen(Arc::new(NoClientAuth), own, behaviour, 0)
    }

    /// A node that lets in only clients with certificates of the authority.
    pub(crate) fn start_closed(authority: &Authority, behaviour: Behaviour) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = Arc::new(authority.roots());
        let clients = WebPkiClientVerifier::builder_with_provider(roots, provider);
        Self::listen(clients.build().unwrap(), authority.node(), behaviour, 0)
    }

    /// A node on a port that was used before. Waits until the port is free.
    pub(crate) async fn start_on(port: u16, own: Credentials, behaviour: Behaviour) -> Self {
        let free = async {
            while std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_err() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(LONG, free)
            .await
            .expect("the port is taken");
        Self::listen(Arc::new(NoClientAuth), own, behaviour, port)
    }

    fn listen(
        clients: Arc<dyn ClientCertVerifier>,
        own: Credentials,
        behaviour: Behaviour,
        port: u16,
    ) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .with_client_cert_verifier(clients)
            .with_single_cert(own.chain, own.key)
            .unwrap();
        tls.alpn_protocols = vec![ALPN_CLIENT.to_vec()];
        let crypto = quinn::crypto::rustls::QuicServerConfig::try_from(tls).unwrap();
        let config = ServerConfig::with_crypto(Arc::new(crypto));
        let endpoint = Endpoint::server(config, (Ipv4Addr::LOCALHOST, port).into()).unwrap();
        let (told, closed) = mpsc::unbounded_channel();
        tokio::spawn(accept(endpoint.clone(), Arc::new(behaviour), told));
        Self {
            address: endpoint.local_addr().unwrap(),
            endpoint,
            closed,
        }
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// How the next connection to end ended.
    pub(crate) async fn closed(&mut self) -> ConnectionError {
        self.closed.recv().await.unwrap()
    }

    /// Ends all connections and frees the port.
    pub(crate) async fn stop(self) -> u16 {
        self.endpoint.close(9_u32.into(), b"stopped");
        self.endpoint.wait_idle().await;
        self.address.port()
    }
}

async fn accept(
    endpoint: Endpoint,
    behaviour: Arc<Behaviour>,
    closed: mpsc::UnboundedSender<ConnectionError>,
) {
    while let Some(incoming) = endpoint.accept().await {
        let (behaviour, closed) = (Arc::clone(&behaviour), closed.clone());
        tokio::spawn(async move {
            if let Ok(connection) = incoming.await {
                tokio::spawn(serve(connection.clone(), behaviour));
                drop(closed.send(connection.closed().await));
            }
        });
    }
}

/// Serves the streams of a connection until it ends.
async fn serve(connection: Connection, behaviour: Arc<Behaviour>) {
    while let Ok((send, receive)) = connection.accept_bi().await {
        tokio::spawn(answer(send, receive, Arc::clone(&behaviour)));
    }
}

async fn answer(mut send: SendStream, mut receive: RecvStream, behaviour: Arc<Behaviour>) {
    let (mut buffer, mut gathered) = (Vec::new(), Vec::new());
    while let Ok(Some(chunk)) = receive.read_chunk(usize::MAX, true).await {
        buffer.extend_from_slice(&chunk.bytes);
        let mut out = Vec::new();
        while let Some((frame, length)) = frame::split(&buffer, MAX_CLIENT_FRAME).unwrap() {
            let (id, cost) = (frame.id, read_check(frame.body).unwrap().cost);
            say(&behaviour, Asked { id, cost }, &mut gathered, &mut out);
            buffer.drain(..length);
        }
        if matches!(*behaviour, Behaviour::Finish) {
            drop(send.finish());
        } else if send.write_all(&out).await.is_err() {
            return;
        }
    }
}

fn say(behaviour: &Behaviour, asked: Asked, gathered: &mut Vec<Asked>, out: &mut Vec<u8>) {
    match behaviour {
        Behaviour::Admit => put(out, asked, Outcome::Allow, None),
        Behaviour::Gather(all) => {
            gathered.push(asked);
            if gathered.len() == *all {
                // A fixed order that is neither that of asking nor its reverse.
                gathered.sort_by_key(|asked| asked.id.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                for asked in gathered.drain(..) {
                    put(out, asked, Outcome::Allow, None);
                }
            }
        }
        Behaviour::Refuse(left, retry_after) => {
            let one_less = |left: usize| left.checked_sub(1);
            let refuse = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
            match refuse {
                Ok(_) => put(
                    out,
                    asked,
                    Outcome::Refuse(Reason::LimitExceeded),
                    *retry_after,
                ),
                Err(_) => put(out, asked, Outcome::Allow, None),
            }
        }
        Behaviour::Decide(limits) => put_limits(out, asked, limits.clone()),
        Behaviour::Fault(fault) => {
            frame::put(out, asked.id, |body| put_fault(body, fault)).unwrap();
        }
        Behaviour::Raw(bytes) => {
            if asked.id == 1 {
                out.extend_from_slice(bytes);
            }
        }
        Behaviour::Silence | Behaviour::Finish => {}
    }
}

fn put(out: &mut Vec<u8>, asked: Asked, outcome: Outcome, retry_after: Option<Nanos>) {
    let verdict = Verdict {
        outcome,
        used: asked.cost,
        remaining: 0,
        retry_after,
        more_after: Nanos::ZERO,
        reset_after: Nanos::ZERO,
        delay: Nanos::ZERO,
        charged_slice: 0,
    };
    let limit = decided("per-ip", Nanos::from_millis(60_000), verdict);
    put_limits(out, asked, vec![limit]);
}

fn put_limits(out: &mut Vec<u8>, asked: Asked, limits: Vec<LimitDecision>) {
    let decision = Decision {
        id: CheckId {
            boot: 1,
            number: asked.id,
        },
        limits,
    };
    frame::put(out, asked.id, |body| put_decision(body, &decision)).unwrap();
}

/// What a limit of 100 said.
pub(crate) fn decided(name: &str, window: Nanos, verdict: Verdict) -> LimitDecision {
    let algorithm = AlgorithmSpec::SlidingWindow {
        window,
        slices: 10,
        hard: false,
    };
    let spec = LimitSpec {
        key: vec!["ip".to_owned()],
        fallback: Fallback::Deny,
        ..LimitSpec::new(name, LimitNumber::One(100), algorithm)
    };
    let limit = Limit::inline(spec, &HashKey::new([0; 16])).unwrap();
    LimitDecision {
        key: KeyHash::from_halves(1, 2),
        rule: *limit.usual_rule().unwrap(),
        charged: Cost::ZERO,
        limit: Arc::new(limit),
        verdict,
        decided_by: DecidedBy::Owner,
        node: NodeId::new("n1").unwrap(),
        boot: 1,
        degraded: false,
    }
}
