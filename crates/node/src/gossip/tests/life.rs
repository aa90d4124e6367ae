//! Starting, dying, sleeping, being cut off, leaving.

#![expect(clippy::print_stdout, reason = "the times that were measured")]

use std::{
    io,
    net::{SocketAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tollgate_wire::identity::Phase;

use super::rig::{Member, Plan, Site, anywhere, lines, wait_for, wait_for_agreement};
use crate::{
    config::Seed,
    gossip::events::Command,
    seeds::{LookUp, Resolve},
};

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
    let seeds = format!("seeds=\"{address}\"");
    let told = lines(&["WARN", "no seed answered within the join timeout", &seeds]);
    assert_eq!(told.len(), 1, "{told:#?}");
    drop(seed);
    let n1 = site.start("n1", address, &[]);
    let took = wait_for_agreement(&[&n1, &n2], 2, SOON);
    println!("found by the lone node after {took:?}");
    let warned = lines(&["WARN", &seeds]);
    assert_eq!(warned.len(), 1, "not again within a minute: {warned:#?}");
}

#[test]
fn a_killed_member_is_gone_soon_and_comes_back_when_it_is_started_again() {
    let site = Site::new("killed");
    let [n1, n2, n3] = three(&site);
    let (address, boot) = (n2.address, n2.identity.boot);
    let dead = n2.kill();
    let took = wait_for_agreement(&[&n1, &n3], 2, Duration::from_secs(8));
    println!("a killed member is gone after {took:?}");
    let n2 = site.restart(dead, &[n1.address]);
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
    let generation = n2.view().identity.generation;
    let dead = n2.kill();
    let n2 = site.restart(dead, &[n1.address, n3.address]);
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
fn a_member_that_was_restarted_with_another_key_and_no_seeds_is_found_again() {
    let site = Site::new("rekeyed");
    let [n1, n2, n3] = three(&site);
    let address = n2.address;
    n2.kill();
    // Nothing tells the others that their connections lead to nobody.
    let n2 = site.start("n2", address, &[]);
    let took = wait_for_agreement(&[&n1, &n2, &n3], 3, Duration::from_secs(12));
    println!("with another key and no seeds, it is found after {took:?}");
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
    let renewed = format!("generation={}", n3.view().identity.generation - 1);
    let told = lines(&[
        "this node comes back under a new identity",
        &renewed,
        "slept",
    ]);
    assert_eq!(
        told.len(),
        1,
        "it noticed by itself, before it was told: {told:#?}"
    );
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
    let n1 = site.start("n1", anywhere(), &[]);
    let n2 = site.start("leaver", anywhere(), &[n1.address]);
    let n3 = site.start("n3", anywhere(), &[n1.address, n2.address]);
    wait_for_agreement(&[&n1, &n2, &n3], 3, SOON);
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
            .any(|m| m.node.as_str() == "leaver")
    };
    assert!(known(&n1) && known(&n3), "it is still a member");
    runtime.block_on(n2.control.depart());
    let took = wait_for("its end", Duration::from_secs(3), || {
        !known(&n1) && !known(&n3)
    });
    println!("it is forgotten after {took:?}");
    let gone = ["INFO", "a member is gone", "node_id=leaver", "why=\"left\""];
    wait_for("the lines of both", SOON, || lines(&gone).len() == 2);
    let doubted = lines(&["is doubted", "node_id=leaver"]);
    assert!(doubted.is_empty(), "{doubted:#?}");
    let warned = lines(&["WARN", "leaver"]);
    assert!(warned.is_empty(), "{warned:#?}");
}

#[test]
fn a_member_that_the_data_plane_hears_keeps_its_slots() {
    let site = Site::new("heard");
    let [n1, n2, n3] = three(&site);
    for other in [&n1, &n2] {
        other.hears.store(true, Ordering::SeqCst);
    }
    n3.control.command(Command::Stall(Duration::from_secs(30)));
    let vetoed = ["a member is said to be down, but it is heard", "node_id=n3"];
    let before = lines(&vetoed).len();
    wait_for("the veto of both", SOON, || {
        lines(&vetoed).len() >= before + 2
    });
    assert_eq!([n1.placed(), n2.placed()], [3, 3]);
    for other in [&n1, &n2] {
        other.hears.store(false, Ordering::SeqCst);
    }
    wait_for_agreement(&[&n1, &n2], 2, Duration::from_secs(3));
}

/// Finds nothing until it was asked three times.
#[derive(Debug)]
struct LateName {
    asked: AtomicU32,
    address: SocketAddr,
}

impl Resolve for LateName {
    fn look_up<'a>(&'a self, host: &'a str, _port: u16) -> LookUp<'a> {
        assert_eq!(host, "seed.test");
        let asked = self.asked.fetch_add(1, Ordering::SeqCst);
        let found = if asked < 2 {
            Err(io::ErrorKind::NotFound.into())
        } else {
            Ok(vec![self.address])
        };
        Box::pin(async move { found })
    }
}

#[test]
fn the_name_of_a_seed_is_looked_up_until_it_is_found() {
    let site = Site::new("names");
    let n1 = site.start("n1", anywhere(), &[]);
    let resolver = Arc::new(LateName {
        asked: AtomicU32::new(0),
        address: n1.address,
    });
    let seed = Seed::Name {
        host: "seed.test".to_owned(),
        port: 7601,
    };
    let plan = Plan::new("n2", anywhere(), &[]);
    let n2 = site.run(Plan {
        seeds: vec![seed],
        resolver: resolver.clone(),
        ..plan
    });
    wait_for_agreement(&[&n1, &n2], 2, SOON);
    assert!(resolver.asked.load(Ordering::SeqCst) >= 3);
}

#[test]
fn a_pull_copies_the_state_of_the_one_that_is_named() {
    let site = Site::new("pulls");
    let n1 = site.start("puller", anywhere(), &[]);
    let n2 = site.start("pulled", anywhere(), &[n1.address]);
    wait_for_agreement(&[&n1, &n2], 2, SOON);
    let copies = || lines(&["a member copies the state", "node_id=puller"]).len();
    assert_eq!(copies(), 0);
    n1.control.pull(&n2.identity.node);
    wait_for("the copy", SOON, || copies() == 1);
}
