//! The network alone, by bare sockets.

use std::{future::poll_fn, io::IoSliceMut, net::SocketAddr, time::Duration};

use quinn::{
    AsyncUdpSocket,
    udp::{RecvMeta, Transmit},
};
use tokio::time::{sleep, timeout};

use super::{BindError, Fate, LinkConditions, Network, SimSocket};
use crate::Simulation;

const MILLISECOND: Duration = Duration::from_millis(1);

fn address(number: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, number], 1))
}

fn conditions(delay_ms: u32, jitter_ms: u32) -> LinkConditions {
    LinkConditions {
        delay: MILLISECOND * delay_ms,
        jitter: MILLISECOND * jitter_ms,
        ..LinkConditions::default()
    }
}

fn send(socket: &SimSocket, to: SocketAddr, contents: &[u8]) {
    let transmit = Transmit {
        destination: to,
        ecn: None,
        contents,
        segment_size: None,
        src_ip: None,
    };
    socket.try_send(&transmit).unwrap();
}

/// The next datagram's sender and first byte.
async fn receive(socket: &SimSocket) -> (SocketAddr, u8) {
    let (mut buffer, mut metas) = ([0; 2000], [RecvMeta::default()]);
    let received = poll_fn(|context| {
        socket.poll_recv(context, &mut [IoSliceMut::new(&mut buffer)], &mut metas)
    });
    assert_eq!(received.await.unwrap(), 1);
    (metas[0].addr, buffer[0])
}

fn fates(network: &Network) -> Vec<Fate> {
    network
        .trace()
        .records()
        .iter()
        .map(|record| record.fate)
        .collect()
}

#[test]
fn a_datagram_takes_the_delay_of_its_link() {
    let run = Simulation::run(1, async |simulation| {
        let network = simulation.network();
        let (one, two) = (
            network.bind(address(1)).unwrap(),
            network.bind(address(2)).unwrap(),
        );
        network.set_conditions(conditions(7, 0));
        network.set_link(address(2), address(1), conditions(40, 0));
        send(&one, address(2), b"a");
        assert_eq!(receive(&two).await, (address(1), b'a'));
        assert_eq!(network.now(), MILLISECOND * 7);
        send(&two, address(1), b"b");
        assert_eq!(receive(&one).await, (address(2), b'b'));
        assert_eq!(network.now(), MILLISECOND * 47);
    });
    run.unwrap();
}

#[test]
fn equal_times_keep_the_order_of_sending_and_jitter_breaks_it() {
    let run = Simulation::run(1, async |simulation| {
        let network = simulation.network();
        let (one, two) = (
            network.bind(address(1)).unwrap(),
            network.bind(address(2)).unwrap(),
        );
        let mut orders = Vec::new();
        for jitter_ms in [0, 20] {
            network.set_conditions(conditions(5, jitter_ms));
            (0..50).for_each(|number| send(&one, address(2), &[number]));
            let mut order = Vec::new();
            for _ in 0..50 {
                order.push(receive(&two).await.1);
            }
            orders.push(order);
        }
        assert!(orders[0].is_sorted());
        assert!(!orders[1].is_sorted());
    });
    run.unwrap();
}

#[test]
fn loss_is_the_share_that_was_asked_for() {
    let run = Simulation::run(1, async |simulation| {
        let network = simulation.network();
        let (one, _two) = (
            network.bind(address(1)).unwrap(),
            network.bind(address(2)).unwrap(),
        );
        network.set_conditions(LinkConditions::default().with_loss_per_mille(100));
        (0..5000).for_each(|_| send(&one, address(2), b"x"));
        fates(network)
            .iter()
            .filter(|fate| **fate == Fate::Lost)
            .count()
    });
    let lost = run.unwrap().output;
    assert!((400..600).contains(&lost), "{lost} of 5000");
}

#[test]
fn an_order_does_not_shift_the_fates_of_other_datagrams() {
    let lost = |blocks: bool| {
        let run = Simulation::run(9, async |simulation| {
            let network = simulation.network();
            let sockets = [1, 2, 3].map(|number| network.bind(address(number)).unwrap());
            network.set_conditions(LinkConditions::default().with_loss_per_mille(500));
            if blocks {
                network.block(address(1), address(2));
            }
            for _ in 0..100 {
                send(&sockets[0], address(2), b"x");
                send(&sockets[0], address(3), b"x");
            }
            fates(network)
                .into_iter()
                .skip(1)
                .step_by(2)
                .collect::<Vec<Fate>>()
        });
        run.unwrap().output
    };
    assert_eq!(lost(false), lost(true));
}

#[test]
fn blocks_have_a_direction() {
    let run = Simulation::run(1, async |simulation| {
        let network = simulation.network();
        let (one, two) = (
            network.bind(address(1)).unwrap(),
            network.bind(address(2)).unwrap(),
        );
        network.block(address(1), address(2));
        send(&one, address(2), b"x");
        send(&two, address(1), b"x");
        network.heal(address(1), address(2));
        send(&one, address(2), b"x");
        network.block_both(address(1), address(2));
        send(&one, address(2), b"x");
        send(&two, address(1), b"x");
        network.heal_all();
        send(&two, address(1), b"x");
        fates(network)
    });
    let (carried, blocked) = (Fate::Carried, Fate::Blocked);
    let expected = [blocked, carried, carried, blocked, blocked, carried];
    assert_eq!(run.unwrap().output, expected);
}

#[test]
fn the_predicate_sees_numbers_and_drops_what_it_chooses() {
    let run = Simulation::run(1, async |simulation| {
        let network = simulation.network();
        let (one, two) = (
            network.bind(address(1)).unwrap(),
            network.bind(address(2)).unwrap(),
        );
        network.drop_where(|datagram| {
            datagram.from == address(1) && datagram.sequence_on_link == 1 && datagram.sequence == 2
        });
        send(&one, address(2), b"a");
        send(&two, address(1), b"b");
        send(&one, address(2), b"c");
        send(&one, address(2), b"d");
        fates(network)
    });
    let (carried, dropped) = (Fate::Carried, Fate::Dropped);
    assert_eq!(run.unwrap().output, [carried, carried, dropped, carried]);
}

#[test]
fn an_unplugged_socket_neither_sends_nor_receives() {
    let run = Simulation::run(1, async |simulation| {
        let network = simulation.network();
        let (one, dead) = (
            network.bind(address(1)).unwrap(),
            network.bind(address(2)).unwrap(),
        );
        assert_eq!(
            network.bind(address(2)).unwrap_err(),
            BindError::InUse(address(2))
        );
        send(&one, address(2), b"on its way");
        network.unplug(address(2));
        let reborn = network.bind(address(2)).unwrap();
        send(&dead, address(1), b"from the grave");
        // Leaves the address to the socket that has it now.
        drop(dead);
        send(&one, address(2), b"new");
        // What was on its way to the dead one does not reach the new one.
        assert_eq!(receive(&reborn).await, (address(1), b'n'));
        drop(reborn);
        send(&one, address(2), b"nobody");
        fates(network)
    });
    let (carried, unplugged) = (Fate::Carried, Fate::Unplugged);
    assert_eq!(
        run.unwrap().output,
        [carried, unplugged, carried, unplugged]
    );
}

#[test]
fn a_scenario_that_waits_for_ever_is_ended() {
    let run = Simulation::run(4, async |_simulation| std::future::pending::<()>().await);
    assert!(matches!(run, Err(crate::RunError::Stuck { seed: 4, .. })));
}

#[test]
fn a_copied_datagram_arrives_twice() {
    let run = Simulation::run(1, async |simulation| {
        let network = simulation.network();
        let (one, two) = (
            network.bind(address(1)).unwrap(),
            network.bind(address(2)).unwrap(),
        );
        network.set_conditions(conditions(5, 20).with_copies_per_mille(1000));
        send(&one, address(2), b"x");
        let mut times = Vec::new();
        for _ in 0..2 {
            assert_eq!(receive(&two).await, (address(1), b'x'));
            times.push(network.now());
        }
        assert!(times[0] < times[1], "each in its own time");
        fates(network)
    });
    assert_eq!(run.unwrap().output, [Fate::Copied]);
}

#[test]
fn a_suspended_socket_sends_nothing_and_gets_later_what_arrived() {
    let run = Simulation::run(1, async |simulation| {
        let network = simulation.network();
        let (one, two) = (
            network.bind(address(1)).unwrap(),
            network.bind(address(2)).unwrap(),
        );
        network.suspend(address(2));
        send(&one, address(2), b"waits");
        send(&two, address(1), b"not sent");
        let early = timeout(MILLISECOND * 100, receive(&two)).await;
        assert!(early.is_err(), "it does not run");
        let resumed = async {
            sleep(MILLISECOND * 100).await;
            network.resume(address(2));
        };
        let (got, ()) = tokio::join!(receive(&two), resumed);
        assert_eq!(
            (got, network.now()),
            ((address(1), b'w'), MILLISECOND * 200)
        );
        fates(network)
    });
    assert_eq!(run.unwrap().output, [Fate::Carried, Fate::Suspended]);
}
