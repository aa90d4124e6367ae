//! Nodes for the tests: control and transport on real sockets, each on a runtime of its own so that it can be
//! killed; and the log.

mod cut;
mod lines;

use std::{
    cell::RefCell,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::runtime::Runtime;
use tollgate_cluster::ClusterName;
use tollgate_limit::{HashKey, NodeId};
use tollgate_wire::identity::{BootId, Identity, Phase};

use self::cut::Cut;
pub(super) use self::lines::{lines, wait_for_line};
use crate::{
    certificates::{AUTHORITY_SPAN, Authority, LEAF_SPAN, Pem, Validity},
    clock::TokioClock,
    config::{Clients, ControlHost, InlineLimits, NodeConfig, Seed, Surroundings, Timeouts},
    credentials::{CredentialPem, Credentials, Holder},
    gossip::{Control, ControlStart, first_identity},
    seeds::SystemResolver,
    transport::{Accepted, Transport},
    view::View,
};

/// A cluster to be.
pub(super) struct Site {
    pub(super) cluster: ClusterName,
    pub(super) authority: Authority,
}

/// A node at work.
pub(super) struct Member {
    pub(super) control: Control,
    pub(super) transport: Arc<Transport>,
    pub(super) address: SocketAddr,
    pub(super) identity: Identity,
    pub(super) pem: Pem,
    cut: Arc<Cut>,
    runtime: Runtime,
    /// Kept open: nobody in these tests takes them.
    _accepted: Taken,
}

struct Taken {
    _peers: tokio::sync::mpsc::Receiver<crate::transport::NodeConnection>,
    _clients: tokio::sync::mpsc::Receiver<crate::transport::ClientConnection>,
}

pub(super) fn unix_seconds() -> u64 {
    use crate::clock::Clock as _;
    TokioClock::system().unix_millis_at_origin() / 1000
}

impl Site {
    pub(super) fn new(cluster: &str) -> Self {
        lines::listen();
        let cluster = ClusterName::new(cluster).unwrap();
        let validity = Validity::new(unix_seconds(), AUTHORITY_SPAN);
        let authority = Authority::new(&cluster, validity).unwrap();
        Self { cluster, authority }
    }

    pub(super) fn issue(&self, name: &str) -> Pem {
        let node = NodeId::new(name).unwrap();
        let validity = Validity::new(unix_seconds(), LEAF_SPAN);
        self.authority.issue_node(&node, validity).unwrap()
    }

    pub(super) fn credentials(&self, name: &str, leaf: &Pem) -> Credentials {
        let node = NodeId::new(name).unwrap();
        let authority = self.authority.pem().certificate;
        let pem = CredentialPem {
            authority: &authority,
            certificate: &leaf.certificate,
            key: &leaf.key,
        };
        let unix_seconds = unix_seconds();
        let holder = Holder {
            cluster: &self.cluster,
            node: &node,
            unix_seconds,
        };
        Credentials::from_pem(&pem, &holder).unwrap()
    }

    /// Credentials of this site's authority for whatever the leaf says.
    pub(super) fn unchecked(&self, name: &str, leaf: &Pem) -> Credentials {
        let node = NodeId::new(name).unwrap();
        let authority = self.authority.pem().certificate;
        let pem = CredentialPem {
            authority: &authority,
            certificate: &leaf.certificate,
            key: &leaf.key,
        };
        Credentials::unchecked(&pem, &self.cluster, &node)
    }

    /// Starts a node; port 0 takes any.
    pub(super) fn start(&self, name: &str, address: SocketAddr, seeds: &[SocketAddr]) -> Member {
        let leaf = self.issue(name);
        let credentials = self.credentials(name, &leaf);
        self.start_as(name, &leaf, credentials, (address, seeds))
    }

    pub(super) fn restart(
        &self,
        dead: Pem,
        name: &str,
        at: SocketAddr,
        seeds: &[SocketAddr],
    ) -> Member {
        let credentials = self.credentials(name, &dead);
        self.start_as(name, &dead, credentials, (at, seeds))
    }

    fn start_as(
        &self,
        name: &str,
        leaf: &Pem,
        credentials: Credentials,
        (address, seeds): (SocketAddr, &[SocketAddr]),
    ) -> Member {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let entered = runtime.enter();
        let (surroundings, cut) = surroundings(address);
        let (transport, accepted) =
            Transport::start(&credentials, Clients::Certificate, &surroundings).unwrap();
        let address = transport.local_address().unwrap();
        let config = self.config(name, address, seeds);
        let identity = first_identity(&config, BootId(surroundings.seed), &surroundings.clock);
        let Accepted {
            peers,
            gossip,
            clients,
        } = accepted;
        let control = Control::start(ControlStart {
            config: Arc::new(config),
            identity: identity.clone(),
            transport: transport.clone(),
            accepted: gossip,
            clock: surroundings.clock.clone(),
            seed: surroundings.seed,
            host: ControlHost::OwnThread,
            resolver: surroundings.resolver.clone(),
            last_heard: Arc::new(|_: &NodeId| None),
        })
        .unwrap();
        drop(entered);
        let accepted = Taken {
            _peers: peers,
            _clients: clients,
        };
        let pem = leaf.clone();
        Member {
            control,
            transport,
            address,
            identity,
            pem,
            cut,
            runtime,
            _accepted: accepted,
        }
    }

    fn config(&self, name: &str, address: SocketAddr, seeds: &[SocketAddr]) -> NodeConfig {
        NodeConfig {
            cluster: self.cluster.clone(),
            hash_key: HashKey::new([7; 16]),
            node: NodeId::new(name).unwrap(),
            weight: 1,
            peer_address: address,
            api_address: address,
            seeds: seeds.iter().copied().map(Seed::Address).collect(),
            last_generation: 0,
            max_memory_bytes: 1 << 20,
            inline_limits: InlineLimits::Allow,
            clients: Clients::Certificate,
            timeouts: Timeouts::default(),
        }
    }

    /// An endpoint without control: for those who only knock. Must be called in a runtime.
    pub(super) fn knock(&self, credentials: &Credentials) -> Arc<Transport> {
        let (surroundings, _cut) = surroundings(anywhere());
        Transport::start(credentials, Clients::Certificate, &surroundings)
            .unwrap()
            .0
    }
}

impl Member {
    pub(super) fn view(&self) -> Arc<View> {
        self.control.view()
    }

    pub(super) fn phase(&self) -> Phase {
        self.view().phase()
    }

    /// How many members own slots, by this node's view.
    pub(super) fn placed(&self) -> usize {
        self.view().placement.members().len()
    }

    /// Nothing comes to it or goes from it any more.
    pub(super) fn cut_off(&self) {
        self.cut.cut();
    }

    pub(super) fn reconnect(&self) {
        self.cut.mend();
    }

    /// Ends it as a signal does that nobody can catch: without a word. Gives back its certificate.
    pub(super) fn kill(self) -> Pem {
        self.cut.cut();
        drop((self.control, self.transport));
        self.runtime.shutdown_timeout(Duration::from_secs(5));
        self.pem
    }
}

/// Waits until all of these members see the same placement of `count` members. Says how long it took.
pub(super) fn wait_for_agreement(members: &[&Member], count: usize, within: Duration) -> Duration {
    wait_for("one placement", within, || {
        let first = members.first().unwrap().view().placement.fingerprint();
        members
            .iter()
            .all(|m| m.placed() == count && m.view().placement.fingerprint() == first)
    })
}

/// Waits for a condition; panics when it does not come.
#[expect(
    clippy::disallowed_methods,
    reason = "polls a condition of other threads, with a deadline"
)]
pub(super) fn wait_for(what: &str, within: Duration, condition: impl Fn() -> bool) -> Duration {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < within, "waited {within:?} for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
    start.elapsed()
}

/// Any free port of loopback.
pub(super) fn anywhere() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

fn surroundings(address: SocketAddr) -> (Surroundings, Arc<Cut>) {
    // The kernel gives a killed node's port back when its last task has gone.
    let bound = RefCell::new(None);
    wait_for("the port", Duration::from_secs(5), || {
        *bound.borrow_mut() = crate::transport::bind(address).ok();
        bound.borrow().is_some()
    });
    let bound = bound.into_inner();
    let cut = Arc::new(Cut::new(bound.unwrap()));
    let seed = u64::from(cut.port()) << 32 | u64::from(std::process::id());
    let surroundings = Surroundings {
        clock: TokioClock::system(),
        socket: cut.clone(),
        runtime: Arc::new(quinn::TokioRuntime),
        seed,
        control: ControlHost::OwnThread,
        resolver: Arc::new(SystemResolver),
    };
    (surroundings, cut)
}
