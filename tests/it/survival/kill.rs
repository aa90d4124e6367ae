//! P2: a crash loses at most what was not yet replicated.

use std::time::Duration;

use super::{
    cluster,
    load::{End, Load, Sent},
    owner_of, used,
};
use crate::harness::{Signal, now, send_signal, until};

const LIMIT: u64 = 1000;
/// What is used when the owner is killed.
const USED: u64 = 900;
/// Units that may be unsent: a thirty-second of the limit.
const UNSENT: u64 = LIMIT / 32;
/// How long a charge waits at most until it is sent.
const INTERVAL: Duration = Duration::from_millis(250);
/// Checks a second.
const RATE: u32 = 150;
const CLIENT: &str = "192.0.2.7";

#[test]
fn a_killed_owner_takes_no_more_with_it_than_it_had_not_replicated() {
    let cluster = cluster(5, LIMIT, "1h");
    let owner = owner_of(&cluster, 0, CLIENT).unwrap();
    let number: usize = owner[1..].parse().unwrap();
    let number = number - 1;
    let others: Vec<_> = (0..5).filter(|other| *other != number).collect();
    let urls: Vec<_> = others
        .iter()
        .map(|other| cluster.nodes[*other].http.clone())
        .collect();
    let load = Load::start(&urls, RATE, |_| CLIENT.to_owned());
    until("900 are used", Duration::from_secs(60), || {
        let admitted = load.so_far().iter().filter(|one| one.is_admitted()).count();
        (u64::try_from(admitted).unwrap() >= USED).then_some(())
    });
    let killed = now();
    send_signal(cluster.nodes[number].pid, Signal::Kill);
    let dead = now();
    for other in &others {
        cluster.until_seen(
            *other,
            "the owner is gone",
            Duration::from_secs(15),
            |seen| seen.active().len() == 4,
        );
    }
    until("the new owner refuses", Duration::from_secs(60), || {
        let sent = load.so_far();
        let last: Vec<_> = sent.iter().rev().take(20).collect();
        let refused = |one: &&Sent| matches!(&one.end, End::Refused(said) if !said.degraded);
        (last.len() == 20 && last.iter().all(refused)).then_some(())
    });
    let sent = load.end();
    let count = |is: &dyn Fn(&Sent) -> bool| {
        u64::try_from(sent.iter().filter(|one| is(one)).count()).unwrap()
    };
    let admitted = count(&Sent::is_admitted);
    let in_flight = count(&|one| one.at < dead && one.at + one.took > killed);
    let before = |one: &Sent| one.at + one.took > killed - INTERVAL && one.at < dead;
    let interval = count(&|one| one.is_admitted() && before(one));
    let degraded = count(&|one| one.is_admitted() && one.is_degraded());
    let (least, most) = (LIMIT - in_flight, LIMIT + UNSENT + interval + degraded);
    println!(
        "killed owner: {admitted} admitted of {LIMIT}, within {least} and {most}: {in_flight} in \
         flight, {interval} admitted in one interval, {degraded} degraded; {} counted",
        used(&cluster, others[0], CLIENT)
    );
    assert!((least..=most).contains(&admitted), "{admitted}");
    let faulty = super::load::faulty(&sent);
    assert!(faulty.is_empty(), "{}: {:?}", faulty.len(), faulty[0]);
}
