//! `tollgate node`: one node, from its files to its end.
//!
//! Order: all configuration is read and checked; the ports are bound; the node starts; HTTP and client
//! streams are served. One runtime of one thread for each processor: the first runs the node and serves
//! too, the others serve HTTP alone.

mod http_threads;
mod stop;

use std::{net::TcpListener, sync::Arc, time::Duration};

use rand::{TryRng as _, rngs::SysRng};
use socket2::{Domain, Socket, Type};
use tokio::time::timeout;
use tollgate_api::{Http, HttpConfig, serve, serve_stream};
use tollgate_node::{
    Node, NodeConfig, Surroundings, TokioClock,
    credentials::{CredentialPem, Credentials, Holder},
};
use tracing::{error, info};

use self::{http_threads::HttpThreads, stop::Stop};
use super::{Exit, Failure};
use crate::{
    arguments::NodeArguments,
    config::{DataDir, DataDirError, Environment, NodeFile, Settings},
    policy_watch::PolicyWatch,
    telemetry,
    wiring::Edge,
};

/// How long leaving may take; then the process ends as it is.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(9);
/// Connections that wait to be accepted.
const LISTEN_BACKLOG: i32 = 1024;

pub(super) fn run(arguments: &NodeArguments) -> Result<Exit, Failure> {
    let file = NodeFile::load(&arguments.config, &Environment::read()?)?;
    telemetry::start(&file.log);
    let seed = seed()?;
    let data = DataDir::open(&file.data_dir).map_err(|error| unusable(&error))?;
    let plan = Plan::new(file, &data, seed)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let until_stdin_ends = arguments.until_stdin_ends;
    let exit = runtime.block_on(run_node(plan, data, until_stdin_ends));
    // Whatever still runs has had its time.
    runtime.shutdown_background();
    exit
}

/// All that a node is made of, checked.
#[derive(Debug)]
struct Plan {
    file: NodeFile,
    config: NodeConfig,
    credentials: Credentials,
    settings: Settings,
    seed: u64,
}

impl Plan {
    fn new(mut file: NodeFile, data: &DataDir, seed: u64) -> Result<Self, Failure> {
        let node = match file.node_id.take() {
            Some(node) => node,
            None => data.node_id(seed).map_err(|error| unusable(&error))?,
        };
        let pem = CredentialPem {
            authority: &file.quic.authority,
            certificate: &file.quic.certificate,
            key: &file.quic.key.0,
        };
        let holder = Holder {
            cluster: &file.cluster.name,
            node: &node,
            unix_seconds: TokioClock::system_unix_seconds(),
        };
        let credentials = Credentials::from_pem(&pem, &holder);
        let config = NodeConfig {
            cluster: file.cluster.name.clone(),
            hash_key: file.cluster.hash_key,
            node: node.clone(),
            weight: file.weight,
            peer_address: file.quic.advertise,
            api_address: file.http.advertise,
            seeds: std::mem::take(&mut file.seeds),
            last_generation: data.last_generation().map_err(|error| unusable(&error))?,
            max_memory_bytes: file.max_memory_bytes,
            inline_limits: file.inline_limits,
            clients: file.quic.clients,
            timeouts: file.timeouts,
        };
        Ok(Self {
            credentials: credentials.map_err(|error| Failure::Usage(error.to_string()))?,
            settings: std::mem::take(&mut file.policies.settings),
            file,
            config,
            seed,
        })
    }
}

async fn run_node(plan: Plan, data: DataDir, until_stdin_ends: bool) -> Result<Exit, Failure> {
    let mut stop = Stop::new(until_stdin_ends)?;
    let failed = |error: &dyn std::fmt::Display| Failure::Runtime(error.to_string());
    let http_address = plan.file.http.listen;
    let listener = listen(http_address)
        .map_err(|error| Failure::Runtime(format!("cannot bind {http_address}: {error}")))?;
    let surroundings = Surroundings::system(plan.file.quic.listen, plan.seed);
    let surroundings = surroundings.map_err(|error| {
        let source = std::error::Error::source(&error).map(ToString::to_string);
        failed(&format_args!("{error}: {}", source.unwrap_or_default()))
    })?;
    let digest = plan.file.policies.digest;
    let policies = Arc::new(plan.file.policies.policies);
    let name = plan.config.node.clone();
    let node = Node::start(plan.config, plan.credentials, policies, surroundings);
    let node = node.map_err(|error| failed(&error))?;
    info!(node_id = %name, cluster = %plan.file.cluster.name, http = %http_address,
        quic = %plan.file.quic.listen, seed = plan.seed, "the node has started");
    let edge = Arc::new(Edge::new(Arc::clone(&node), plan.settings));
    let _watch = PolicyWatch::start(plan.file.policies_path, digest, Arc::clone(&edge))?;
    let config = HttpConfig {
        token: plan.file.http.token,
        trusted_proxies: plan.file.http.trusted_proxies,
        max_wait: plan.file.http.max_wait,
        ..HttpConfig::default()
    };
    let http = Arc::new(Http::new(config, Arc::clone(&edge), Arc::clone(&edge)));
    let threads = HttpThreads::start(&listener, &http)?;
    let here = tokio::net::TcpListener::from_std(listener)?;
    let serving = tokio::spawn(serve(here, Arc::clone(&http), threads.shutdown()));
    tokio::spawn(keep_generation(Arc::clone(&node), data));
    tokio::spawn(serve_clients(Arc::clone(&node), Arc::clone(&edge)));
    stop.asked().await;
    info!(node_id = %name, "the node leaves");
    edge.leave();
    http.leave();
    let left = timeout(LEAVE_TIMEOUT, async {
        node.hand_over().await;
        // Before the peers are gone, so that whoever asks here until the end gets their answers.
        threads.end().await;
        drop(serving.await);
        node.depart().await;
    });
    if left.await.is_err() {
        error!(node_id = %name, "leaving has taken too long");
    }
    info!(node_id = %name, "the node has left");
    Ok(Exit::Done)
}

/// Keeps the largest generation that the node has had, so that its next start has a larger one.
async fn keep_generation(node: Arc<Node>, data: DataDir) {
    let mut changes = node.view_changes();
    let mut kept = 0;
    loop {
        let generation = changes.borrow_and_update().identity.generation;
        if generation > kept {
            kept = generation;
            if let Err(error) = data.keep_generation(generation) {
                error!(%error, "the generation cannot be kept: a restart may be taken for the old node");
            }
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// Answers the streams of clients until the node stops.
async fn serve_clients(node: Arc<Node>, edge: Arc<Edge>) {
    while let Some(stream) = node.next_client_stream().await {
        let serving = serve_stream(stream.receive, stream.send, Arc::clone(&edge));
        tokio::spawn(async move {
            if let Err(error) = serving.await {
                tracing::debug!(%error, client = stream.client, "a client's stream ended early");
            }
        });
    }
}

fn listen(address: std::net::SocketAddr) -> std::io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(LISTEN_BACKLOG)?;
    Ok(socket.into())
}

/// The seed of all randomness of this run.
fn seed() -> Result<u64, Failure> {
    let random = SysRng.try_next_u64();
    random.map_err(|error| Failure::Runtime(format!("the system has no randomness: {error}")))
}

fn unusable(error: &DataDirError) -> Failure {
    Failure::Runtime(error.to_string())
}
