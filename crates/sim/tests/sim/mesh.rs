//! Bare quinn endpoints, each connected to each other one, that call each other.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use quinn::{Connection, Endpoint, EndpointConfig, IdleTimeout, TokioRuntime, TransportConfig};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::task::JoinSet;
use tollgate_sim::{Finished, LinkConditions, Simulation};

use crate::credentials::{Authority, Credentials, SERVER_NAME};

const ENDPOINTS: u8 = 5;
const CALLS_PER_CONNECTION: u32 = 200;
const MAX_MESSAGE: usize = 512;

/// Calls made by a whole mesh.
pub(crate) const CALLS: u32 = CALLS_PER_CONNECTION * 20;

/// An address of the simulated network.
pub(crate) fn address(number: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, number], 7601))
}

/// A quinn endpoint that echoes, on the simulated network.
pub(crate) fn endpoint(simulation: &Simulation, authority: &Authority, number: u8) -> Endpoint {
    let Credentials { server, client } = authority.issue(&transport());
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&simulation.seed_of_part(u64::from(number)).to_le_bytes());
    let mut config = EndpointConfig::default();
    config.rng_seed(Some(seed));
    let socket = simulation.network().bind(address(number)).unwrap();
    let runtime = Arc::new(TokioRuntime);
    let mut endpoint =
        Endpoint::new_with_abstract_socket(config, Some(server), socket, runtime).unwrap();
    endpoint.set_default_client_config(client);
    tokio::spawn(echo(endpoint.clone()));
    endpoint
}

pub(crate) async fn connect(from: &Endpoint, to: u8) -> Connection {
    from.connect(address(to), SERVER_NAME)
        .unwrap()
        .await
        .unwrap()
}

/// One call; the message must come back.
pub(crate) async fn call(connection: &Connection, message: &[u8]) {
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    send.write_all(message).await.unwrap();
    send.finish().unwrap();
    assert_eq!(receive.read_to_end(MAX_MESSAGE).await.unwrap(), message);
}

/// A whole run: every endpoint connects to every other and calls, with messages of random length.
pub(crate) fn run(seed: u64, loss_per_mille: u16) -> Finished<u32> {
    let finished = Simulation::run(seed, async |simulation| {
        let conditions = LinkConditions::default().with_loss_per_mille(loss_per_mille);
        simulation.network().set_conditions(conditions);
        let authority = Authority::new();
        let endpoints: Vec<Endpoint> = (0..ENDPOINTS)
            .map(|number| endpoint(simulation, &authority, number))
            .collect();
        let mut callers = JoinSet::new();
        for (from, endpoint) in (0..).zip(&endpoints) {
            for to in (0..ENDPOINTS).filter(|to| *to != from) {
                let part = 1000 + u64::from(from) * 10 + u64::from(to);
                callers.spawn(call_often(
                    endpoint.clone(),
                    to,
                    simulation.seed_of_part(part),
                ));
            }
        }
        callers.join_all().await.into_iter().sum()
    });
    finished.unwrap()
}

async fn call_often(from: Endpoint, to: u8, seed: u64) -> u32 {
    let mut random = StdRng::seed_from_u64(seed);
    let connection = connect(&from, to).await;
    for _ in 0..CALLS_PER_CONNECTION {
        let message = vec![7; random.random_range(1..MAX_MESSAGE)];
        call(&connection, &message).await;
    }
    CALLS_PER_CONNECTION
}

async fn echo(endpoint: Endpoint) {
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            let connection = incoming.await?;
            loop {
                let (mut send, mut receive) = connection.accept_bi().await?;
                let message = receive.read_to_end(MAX_MESSAGE).await.unwrap();
                send.write_all(&message).await.unwrap();
                send.finish().unwrap();
            }
            #[expect(unreachable_code, reason = "gives the block its error type")]
            Ok::<(), quinn::ConnectionError>(())
        });
    }
}

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(Some(IdleTimeout::try_from(Duration::from_secs(3)).unwrap()))
        .keep_alive_interval(Some(Duration::from_secs(1)))
        .initial_rtt(Duration::from_millis(20));
    Arc::new(transport)
}
