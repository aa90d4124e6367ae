//! Starting, dying, sleeping, being cut off, leaving.

use std::{net::UdpSocket, time::Duration};

use tollgate_wire::identity::Phase;

use super::rig::{Member, Site, anywhere, wait_for, wait_for_agreement};
use crate::gossip::events::Command;

const SOON: Duration = Duration::from_secs(10);

/// A free address, kept until it is needed: nobody answers there.
fn reserved() -> UdpSocket {
    UdpSocket::bind(anywhere()).unwrap()
}

fn three(site: &Site) -> [Member; 3] {
    let n1 = site.start("n1", anywhere(), &[]);
    let n2 = site.start("n2", anywhere(), &[n1.address]);
    let n3 = site.start("n3", anywhere(), &[n1.address, n2.address]);
    wait_for_agreement(&[&n1, &n2, &n3], 3, SOON);
    [n1, n2, n3]
}

/// Collects the phases of every view of a member, and whether it ever owned anything unless active.
fn watch(member: &Member) -> std::thread::JoinHandle<Vec<Phase>> {
    let mut changes = member.control.changes();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    std::thread::spawn(move || {
        runtime.block_on(async move {
            let mut phases = Vec::new();
            loop {
                let view = changes.borrow_and_update().clone();
                assert_eq!(
                    view.own.is_some(),
                    view.phase() == Phase::Active,
                    "{view:?}"
                );
                if phases.last() != Some(&view.phase()) {
                    phases.push(view.phase());
                }
                if changes.changed().await.is_err() {
                    return phases;
                }
            }
        })
    })
}

#[test]
fn a_cold_start_of_three_agrees_soon_and_owns_nothing_before() {
    let site = Site::new("cold");
    let sockets = [reserved(), reserved(), reserved()];
    let addresses = sockets.map(|socket| socket.local_addr().unwrap());
    let start = |index: usize| {
        let name = format!("n{}", index + 1);
        site.start(&name, addresses[index], &addresses)
    };
    let members = [start(0), start(1), start(2)];
    let watched: Vec<_> = members.iter().map(watch).collect();
    let took = wait_for_agreement(&members.each_ref(), 3, SOON);
    println!("cold start of three: {took:?}");
    for member in members {
        member.kill();
    }
    for phases in watched {
        assert_eq!(phases.join().unwrap().last(), Some(&Phase::Active));
    }
}

#[test]
fn without_its_seeds_a_node_waits_then_goes_on_alone_and_joins_later() {
    let site = Site::new("alone");
    let seed = reserved();
    let address = seed.local_addr().unwrap();
    let n2 = site.start("n2", anywhere(), &[address]);
    let took = wait_for("going on alone", SOON, || n2.phase() == Phase::Active);
    println!("alone after {took:?}");
    assert!(took > Duration::from_millis(2_900), "{took:?}");
    assert!(took < Duration::from_millis(4_500), "{took:?}");
    drop(seed);
    let n1 = site.start("n1", address, &[]);
    let took = wait_for_agreement(&[&n1, &n2], 2, SOON);
    println!("found by the lone node after {took:?}");
}

#[test]
fn a_killed_member_is_gone_soon_and_comes_back_when_it_is_started_again() {
    let site = Site::new("killed");
    let [n1, n2, n3] = three(&site);
    let (address, boot) = (n2.address, n2.identity.boot);
    let dead = n2.kill();
    let took = wait_for_agreement(&[&n1, &n3], 2, Duration::from_secs(8));
    println!("a killed member is gone after {took:?}");
    let n2 = site.restart(dead, "n2", address, &[n1.address]);
    let took = wait_for_agreement(&[&n1, &n2, &n3], 3, Duration::from_secs(5));
    println!("restarted, it is active after {took:?}");
    let known = n1
        .view()
        .members
        .iter()
        .find(|m| m.node.as_str() == "n2")
        .cloned()
        .unwrap();
    assert_eq!(
        (known.boot, known.peer),
        (boot, address),
        "the seed of the boot is its port"
    );
}

#[test]
fn a_member_that_is_restarted_at_once_is_noticed_at_once() {
    let site = Site::new("restarted");
    let [n1, n2, n3] = three(&site);
    let (address, generation) = (n2.address, n2.view().identity.generation);
    let dead = n2.kill();
    let n2 = site.restart(dead, "n2", address, &[n1.address, n3.address]);
    let took = wait_for("the new boot everywhere", Duration::from_secs(5), || {
        [&n1, &n3].iter().all(|member| {
            let view = member.view();
            let known = view.members.iter().find(|m| m.node.as_str() == "n2");
            known.is_some_and(|m| m.generation > generation && m.phase == Phase::Active)
        })
    });
    println!("a quick restart is known after {took:?}");
    wait_for_agreement(&[&n1, &n2, &n3], 3, Duration::from_secs(5));
}

#[test]
fn a_member_that_slept_comes_back_by_itself_and_joins_first() {
    let site = Site::new("asleep");
    let [n1, n2, n3] = three(&site);
    let generation = n3.view().identity.generation;
    let phases = watch(&n3);
    n3.control.command(Command::Stall(Duration::from_secs(5)));
    let took = wait_for_agreement(&[&n1, &n2], 2, Duration::from_secs(8));
    println!("a sleeping member is gone after {took:?}");
    wait_for("waking up", SOON, || {
        n3.view().identity.generation > generation
    });
    let took = wait_for_agreement(&[&n1, &n2, &n3], 3, Duration::from_secs(5));
    println!("awake, it is back after {took:?}");
    n3.kill();
    assert_eq!(
        phases.join().unwrap(),
        [Phase::Active, Phase::Joining, Phase::Active]
    );
}

#[test]
fn a_member_that_was_cut_off_comes_back_by_itself() {
    let site = Site::new("cut");
    let [n1, n2, n3] = three(&site);
    n1.cut_off();
    let took = wait_for_agreement(&[&n2, &n3], 2, Duration::from_secs(8));
    println!("cut off, it is gone after {took:?}");
    wait_for("being alone", SOON, || n1.placed() == 1);
    let others = [&n2, &n3].map(|member| member.view().identity.generation);
    n1.reconnect();
    let took = wait_for_agreement(&[&n1, &n2, &n3], 3, SOON);
    println!("connected again, it is back after {took:?}");
    let after = [&n2, &n3].map(|member| member.view().identity.generation);
    assert_eq!(others, after, "only the one that was cut off is renewed");
}

#[test]
fn a_leaving_member_says_so_and_is_gone_at_once() {
    let site = Site::new("leaving");
    let [n1, n2, n3] = three(&site);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(n2.control.leave());
    assert_eq!(n2.phase(), Phase::Leaving);
    let took = wait_for_agreement(&[&n1, &n2, &n3], 2, Duration::from_secs(2));
    println!("its slots have moved after {took:?}");
    let known = |member: &Member| {
        member
            .view()
            .members
            .iter()
            .any(|m| m.node.as_str() == "n2")
    };
    assert!(known(&n1) && known(&n3), "it is still a member");
    runtime.block_on(n2.control.depart());
    let took = wait_for("its end", Duration::from_secs(3), || {
        !known(&n1) && !known(&n3)
    });
    println!("it is forgotten after {took:?}");
}
