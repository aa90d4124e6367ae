//! Nodes for the tests: control and transport on real sockets, each on a runtime of its own so that it can be
//! killed; and the log.

mod cut;
mod lines;

use std::{
    cell::RefCell,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{runtime::Runtime, sync::mpsc::Receiver};
use tollgate_cluster::ClusterName;
use tollgate_limit::{HashKey, NodeId};
use tollgate_wire::identity::{BootId, Identity, Phase};

use self::cut::Cut;
pub(super) use self::lines::{lines, wait_for_line};
use crate::{
    certificates::{AUTHORITY_SPAN, Authority, LEAF_SPAN, Pem, Validity},
    clock::{Clock as _, TokioClock},
    config::{Clients, ControlHost, InlineLimits, NodeConfig, Seed, Surroundings, Timeouts},
    credentials::{CredentialPem, Credentials, Holder},
    gossip::{Control, ControlStart, first_identity},
    seeds::{Resolve, SystemResolver},
    transport::{ClientConnection, NodeConnection, Transport},
    view::View,
};

/// A cluster to be.
pub(super) struct Site {
    pub(super) cluster: ClusterName,
    pub(super) authority: Authority,
}

/// A node to be.
pub(super) struct Plan {
    pub(super) name: String,
    /// Its certificate; a new one if none.
    pub(super) pem: Option<Pem>,
    pub(super) address: SocketAddr,
    pub(super) seeds: Vec<Seed>,
    pub(super) resolver: Arc<dyn Resolve>,
    pub(super) hash_key: [u8; 16],
}

/// A node at work.
pub(super) struct Member {
    pub(super) control: Control,
    pub(super) transport: Arc<Transport>,
    pub(super) address: SocketAddr,
    pub(super) identity: Identity,
    /// Whether its data plane hears every node at every time; else it never hears any.
    pub(super) hears: Arc<AtomicBool>,
    pem: Pem,
    cut: Arc<Cut>,
    runtime: Runtime,
    /// Kept open: nobody in these tests takes them.
    _accepted: (Receiver<NodeConnection>, Receiver<ClientConnection>),
}

/// What is left of a killed node.
pub(super) struct Dead {
    name: String,
    address: SocketAddr,
    pem: Pem,
}

impl Plan {
    pub(super) fn new(name: &str, address: SocketAddr, seeds: &[SocketAddr]) -> Self {
        Self {
            name: name.to_owned(),
            pem: None,
            address,
            seeds: seeds.iter().copied().map(Seed::Address).collect(),
            resolver: Arc::new(SystemResolver),
            hash_key: [7; 16],
        }
    }
}

/// There are no counts to wait for.
async fn be_warm(control: Control) {
    let mut changes = control.changes();
    while changes.changed().await.is_ok() {
        control.warm(&changes.borrow_and_update());
    }
}

pub(super) fn unix_seconds() -> u64 {
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
        self.run(Plan::new(name, address, seeds))
    }

    /// Starts a node with what a killed one left behind.
    pub(super) fn restart(&self, dead: Dead, seeds: &[SocketAddr]) -> Member {
        let plan = Plan::new(&dead.name, dead.address, seeds);
        self.run(Plan {
            pem: Some(dead.pem),
            ..plan
        })
    }

    pub(super) fn run(&self, plan: Plan) -> Member {
        let pem = plan.pem.clone().unwrap_or_else(|| self.issue(&plan.name));
        let credentials = self.credentials(&plan.name, &pem);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let entered = runtime.enter();
        let (surroundings, cut) = surroundings(plan.address);
        let clock = surroundings.clock.clone();
        let (transport, accepted) =
            Transport::start(&credentials, Clients::Certificate, &surroundings).unwrap();
        let address = transport.local_address().unwrap();
        let config = self.config(&plan, address);
        let identity = first_identity(&config, BootId(surroundings.seed), &clock);
        let hears = Arc::new(AtomicBool::new(false));
        let control = Control::start(ControlStart {
            config: Arc::new(config),
            identity: identity.clone(),
            transport: transport.clone(),
            accepted: accepted.gossip,
            clock: clock.clone(),
            seed: surroundings.seed,
            host: ControlHost::OwnThread,
            resolver: plan.resolver,
            last_heard: Arc::new({
                let hears = hears.clone();
                move |_: &NodeId| hears.load(Ordering::SeqCst).then(|| clock.now())
            }),
        })
        .unwrap();
        tokio::spawn(be_warm(control.clone()));
        drop(entered);
        let kept = (accepted.peers, accepted.clients);
        Member {
            control,
            transport,
            address,
            identity,
            pem,
            hears,
            cut,
            runtime,
            _accepted: kept,
        }
    }

    fn config(&self, plan: &Plan, address: SocketAddr) -> NodeConfig {
        NodeConfig {
            cluster: self.cluster.clone(),
            hash_key: HashKey::new(plan.hash_key),
            node: NodeId::new(&plan.name).unwrap(),
            weight: 1,
            peer_address: address,
            api_address: address,
            seeds: plan.seeds.clone(),
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

    /// Ends it as a signal does that nobody can catch: without a word.
    pub(super) fn kill(self) -> Dead {
        self.cut.cut();
        drop((self.control, self.transport));
        self.runtime.shutdown_timeout(Duration::from_secs(5));
        let name = self.identity.node.as_str().to_owned();
        Dead {
            name,
            address: self.address,
            pem: self.pem,
        }
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
