//! Blocks, drops and unplugging, as quinn sees them.

use std::time::Duration;

use quinn::ConnectionError;
use tollgate_sim::{Fate, Simulation};

use crate::{
    credentials::Authority,
    mesh::{address, call, connect, endpoint},
};

/// Longer than the idle timeout of the mesh's connections.
const PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn a_one_way_block_silences_one_direction_until_healed() {
    let finished = Simulation::run(1, async |simulation| {
        let (network, authority) = (simulation.network(), Authority::new());
        let caller = endpoint(simulation, &authority, 0);
        let _callee = endpoint(simulation, &authority, 1);
        let connection = connect(&caller, 1).await;
        call(&connection, b"before").await;
        network.block(address(0), address(1));
        assert_eq!(connection.closed().await, ConnectionError::TimedOut);
        network.heal(address(0), address(1));
        call(&connect(&caller, 1).await, b"after").await;
    });
    let trace = finished.unwrap().trace;
    let blocked = |record: &&tollgate_sim::Record| record.fate == Fate::Blocked;
    let from: Vec<_> = trace
        .records()
        .iter()
        .filter(blocked)
        .map(|record| record.from)
        .collect();
    assert!(!from.is_empty());
    assert!(from.iter().all(|from| *from == address(0)), "{from:?}");
}

#[test]
fn a_dropped_datagram_is_sent_again() {
    let finished = Simulation::run(2, async |simulation| {
        let (network, authority) = (simulation.network(), Authority::new());
        let caller = endpoint(simulation, &authority, 0);
        let _callee = endpoint(simulation, &authority, 1);
        let connection = connect(&caller, 1).await;
        call(&connection, b"before").await;
        let mut left = 3;
        network.drop_where(move |datagram| {
            let drops = datagram.from == address(1) && left > 0;
            left -= u32::from(drops);
            drops
        });
        call(&connection, b"the reply is lost at first").await;
    });
    let trace = finished.unwrap().trace;
    let dropped = trace
        .records()
        .iter()
        .filter(|record| record.fate == Fate::Dropped);
    assert_eq!(dropped.count(), 3);
}

#[test]
fn an_unplugged_endpoint_falls_silent_and_its_address_can_be_taken() {
    let finished = Simulation::run(3, async |simulation| {
        let (network, authority) = (simulation.network(), Authority::new());
        let caller = endpoint(simulation, &authority, 0);
        let _dead = endpoint(simulation, &authority, 1);
        let connection = connect(&caller, 1).await;
        network.unplug(address(1));
        let closed = tokio::time::timeout(PATIENCE, connection.closed()).await;
        assert_eq!(closed.unwrap(), ConnectionError::TimedOut);
        let _reborn = endpoint(simulation, &authority, 1);
        call(&connect(&caller, 1).await, b"hello again").await;
    });
    finished.unwrap();
}
