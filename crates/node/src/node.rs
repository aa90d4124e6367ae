//! One node: its parts put together, started and stopped.
//!
//! Order of a start: TLS and socket, control (gossip, membership, joining), then the tasks of the data
//! plane. A node that is started answers checks at once: while it is joining, by forwarding or by
//! fallback.

mod counter;
mod report;
mod tasks;
#[cfg(test)]
pub(crate) mod tests;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use thiserror::Error;
use tokio::sync::{Mutex, Notify, watch};
use tollgate_cluster::{PauseWatch, Switch, cluster_fingerprint};
use tollgate_limit::{
    CheckError, Limit, LimitSpec, Nanos, NodeId, Policies, SlotId, SlotSet, SpecError, Store,
    StoreConfig, Tally,
};
use tollgate_wire::{
    identity::{BootId, Phase},
    peer::{Hello, Switches},
};
use tracing::warn;

pub use self::{
    counter::{CounterReading, CounterUnreachable},
    report::{FollowerReport, MemberReport, NodeReport, PeerReport, ReplicaReport},
};
use crate::{
    act::once::Ids,
    check::{KnownDenials, LocalShares},
    clients::{ClientStream, ClientStreams},
    clock::{Clock as _, TokioClock},
    config::{InlineLimits, NodeConfig, Surroundings},
    counters::NodeCounters,
    credentials::Credentials,
    errands::Errands,
    gossip::{Control, ControlError, ControlStart, first_identity},
    link::Dialler,
    replica::Mover,
    routes::{Router, Routes},
    serve::{Boots, Owner},
    transport::{Transport, TransportError, close::CloseCode},
    view::View,
};

/// How long a node that leaves waits at most until its slots are handed over.
const DRAIN: Duration = Duration::from_secs(5);
/// How long it passes checks on after that.
const RELAY: Duration = Duration::from_secs(1);

/// A running node.
#[derive(Debug)]
pub struct Node {
    pub(crate) config: NodeConfig,
    pub(crate) boot: BootId,
    pub(crate) clock: TokioClock,
    pub(crate) policies: ArcSwap<Policies>,
    pub(crate) owner: Arc<Owner>,
    pub(crate) routes: Arc<ArcSwap<Routes>>,
    pub(crate) routes_changed: Arc<Notify>,
    pub(crate) shares: LocalShares,
    pub(crate) known: KnownDenials,
    pub(crate) control: Control,
    pub(crate) next_check: AtomicU64,
    pub(crate) inline_tally: Tally,
    /// Say whether the id of a check was used.
    pub(crate) ids: Ids,
    pub(crate) errands: Arc<Errands>,
    pub(crate) transport: Arc<Transport>,
    clients: Mutex<ClientStreams>,
}

/// A node that cannot be started.
#[derive(Debug, Error)]
pub enum StartError {
    /// The endpoint cannot be started.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// Control cannot be started.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// A limit of the node itself is wrong: a bug.
    #[error(transparent)]
    Limit(#[from] SpecError),
}

impl Node {
    /// Starts a node on the current runtime.
    ///
    /// # Errors
    /// [`StartError`]: nothing runs.
    pub fn start(
        config: NodeConfig,
        credentials: Credentials,
        policies: Arc<Policies>,
        surroundings: Surroundings,
    ) -> Result<Arc<Self>, StartError> {
        let Surroundings {
            clock,
            seed,
            control: host,
            ..
        } = &surroundings;
        let boot = BootId(StdRng::seed_from_u64(*seed).random());
        let (transport, accepted) = Transport::start(&credentials, config.clients, &surroundings)?;
        let identity = first_identity(&config, boot, clock);
        let routes = Arc::new(ArcSwap::from_pointee(Routes::alone(identity.clone())));
        let last_heard = {
            let routes = Arc::clone(&routes);
            move |node: &NodeId| routes.load().last_heard(node)
        };
        let control = Control::start(ControlStart {
            config: Arc::new(config.clone()),
            identity,
            transport: Arc::clone(&transport),
            accepted: accepted.gossip,
            clock: clock.clone(),
            seed: *seed,
            host: *host,
            resolver: Arc::clone(&surroundings.resolver),
            last_heard: Arc::new(last_heard),
        })?;
        let store = store_config(&config, clock, boot);
        let owner = Arc::new(owner(
            (&config, boot, clock),
            (control.views(), &routes),
            (&policies, store),
        ));
        // A node that is alone decides from its first instant on.
        owner.handle_view(&control.view());
        let router = Router {
            clock: clock.clone(),
            dialler: dialler((&config, boot, *seed), &transport, &owner),
            errands: Arc::default(),
            routes: Arc::clone(&routes),
            changed: Arc::default(),
            links: 0,
        };
        let node = Arc::new(Self {
            boot,
            clock: clock.clone(),
            routes_changed: Arc::clone(&router.changed),
            policies: ArcSwap::new(policies),
            owner,
            routes,
            shares: LocalShares::new(store),
            known: KnownDenials::default(),
            next_check: AtomicU64::new(1),
            inline_tally: Tally::default(),
            ids: Ids::new(&config.hash_key)?,
            errands: Arc::clone(&router.errands),
            clients: Mutex::new(ClientStreams::start(accepted.clients)),
            transport,
            control,
            config,
        });
        tasks::start(&node, router, accepted.peers);
        Ok(node)
    }

    /// A reading of this node's monotonic clock: one for each check or batch.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// This node's clock.
    #[must_use]
    pub const fn clock(&self) -> &TokioClock {
        &self.clock
    }

    /// Its settings.
    #[must_use]
    pub const fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// The cluster as this node sees it.
    #[must_use]
    pub fn view(&self) -> Arc<View> {
        self.control.view()
    }

    /// Tells every change of the view.
    #[must_use]
    pub fn view_changes(&self) -> watch::Receiver<Arc<View>> {
        self.control.changes()
    }

    /// Whether this node is a full member: it owns its share.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.view().phase() == Phase::Active
    }

    /// The policies in force.
    #[must_use]
    pub fn policies(&self) -> Arc<Policies> {
        self.policies.load_full()
    }

    /// Puts other policies in force. Counters are kept, and so is the tally of each limit that keeps its
    /// name.
    pub fn replace_policies(&self, mut policies: Policies) {
        policies.inherit(&self.policies.load());
        let fingerprint = policies.fingerprint();
        self.policies.store(Arc::new(policies));
        let told = &self.owner.policies_fingerprint;
        told.store(fingerprint, Ordering::Relaxed);
    }

    /// What became of checks that brought their own limit.
    #[must_use]
    pub const fn inline_tally(&self) -> &Tally {
        &self.inline_tally
    }

    /// Compiles a limit that came with a check.
    ///
    /// # Errors
    /// [`CheckError`]: the asker's fault.
    pub fn inline_limit(&self, spec: LimitSpec) -> Result<Arc<Limit>, CheckError> {
        match self.config.inline_limits {
            InlineLimits::Refuse => Err(CheckError::InlineOff),
            InlineLimits::Allow => Ok(Arc::new(Limit::inline(spec, &self.config.hash_key)?)),
        }
    }

    /// Sets a switch of the cluster; within a second it is so on every node.
    pub fn set_switch(&self, switch: Switch, on: bool) {
        self.owner.switches.set(&self.config.node, switch, on);
        self.owner.tell_switches();
    }

    /// Whether a switch is on, as far as this node knows.
    #[must_use]
    pub fn is_switched(&self, switch: Switch) -> bool {
        match switch {
            Switch::Kill => self.owner.switches.is_killed(),
            Switch::Shadow => self.owner.switches.is_shadow(),
        }
    }

    /// The switches as this node knows them.
    #[must_use]
    pub fn switches(&self) -> Switches {
        self.owner.switches.registers()
    }

    /// Whether this node decides in just the slots that it owns, and none is on its way.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let view = self.view();
        let owns = |slot| view.own.is_some() && view.placement.owner(slot) == view.own;
        let mut slots = (0..=u16::MAX).map(SlotId::new);
        self.owner.mover.moving() == (0, 0)
            && slots.all(|slot| self.owner.states.holds(slot) == owns(slot))
    }

    /// Whether this node decides in a slot.
    #[must_use]
    pub fn holds(&self, slot: SlotId) -> bool {
        self.owner.states.holds(slot)
    }

    /// The next stream of a client of the QUIC protocol; `None` when the node has stopped.
    pub async fn next_client_stream(&self) -> Option<ClientStream> {
        self.clients.lock().await.next().await
    }

    /// Leaves the cluster: [`hand_over`](Self::hand_over), then [`depart`](Self::depart).
    pub async fn leave(&self) {
        self.hand_over().await;
        self.depart().await;
    }

    /// Hands its slots over, and still answers whoever asks. Takes six seconds at most.
    pub async fn hand_over(&self) {
        self.control.leave().await;
        if !self.view().members.is_empty() {
            let drained = self.owner.mover.drained(|| self.view());
            if tokio::time::timeout(DRAIN, drained).await.is_err() {
                warn!("leaving before all slots were handed over");
            }
            // Those who do not know yet still ask this node.
            tokio::time::sleep(RELAY).await;
        }
    }

    /// Tells the others that it goes and closes all connections: no peer can be asked any more. Takes the
    /// timeouts of control and transport at most, a few seconds.
    pub async fn depart(&self) {
        self.control.depart().await;
        self.transport.close(CloseCode::Leaving).await;
    }
}

fn store_config(config: &NodeConfig, clock: &TokioClock, boot: BootId) -> StoreConfig {
    StoreConfig {
        max_bytes: config.max_memory_bytes,
        unix_origin: Nanos::from_millis(clock.unix_millis_at_origin()),
        // A boot id is random, so the numbers of two boots never meet.
        writer: boot.0,
        first_permit: boot.0.max(1),
    }
}

fn owner(
    (config, boot, clock): (&NodeConfig, BootId, &TokioClock),
    (view, routes): (Arc<ArcSwap<View>>, &Arc<ArcSwap<Routes>>),
    (policies, store): (&Policies, StoreConfig),
) -> Owner {
    let (mover, states) = Mover::new();
    let deadline: Nanos = config.timeouts.check_deadline.into();
    let now = clock.now();
    Owner {
        node: config.node.clone(),
        boot,
        routes: Arc::clone(routes),
        states,
        mover,
        switches: Arc::default(),
        cluster: config.cluster.clone(),
        cluster_fingerprint: cluster_fingerprint(&config.cluster, &config.hash_key),
        clock: clock.clone(),
        store: closed_store(&store),
        view,
        policies_fingerprint: AtomicU64::new(policies.fingerprint()),
        pause: PauseWatch::new(now, deadline),
        // Verdicts are kept for two check deadlines.
        boots: Boots::new(deadline.saturating_add(deadline)),
        counters: NodeCounters::default(),
    }
}

/// It decides nowhere until the mover opens what this node holds.
fn closed_store(config: &StoreConfig) -> Store {
    let store = Store::new(config);
    store.close(&SlotSet::all());
    store
}

fn dialler(
    (config, boot, seed): (&NodeConfig, BootId, u64),
    transport: &Arc<Transport>,
    owner: &Arc<Owner>,
) -> Dialler {
    Dialler {
        owner: Arc::clone(owner),
        transport: Arc::clone(transport),
        hello: Hello {
            cluster: config.cluster.as_str().to_owned(),
            cluster_fingerprint: cluster_fingerprint(&config.cluster, &config.hash_key),
            node: config.node.as_str().to_owned(),
            boot,
            link: 0,
        },
        seed,
    }
}
