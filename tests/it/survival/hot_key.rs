//! A key that is flooded at a node that does not own it costs its owner, and the other keys, next to nothing.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use tollgate_client::{Check, Client, ClientConfig, Credentials, Pairs, Subject, Trust};

use super::{
    cluster,
    load::{Load, faulty, quantile},
    owner_of,
};
use crate::harness::{Dev, Node, now, until};

const LIMIT: u64 = 100;
/// How often the hot key is asked, each second.
const FLOOD: u32 = 9_000;
/// How long.
const SECONDS: u32 = 6;
/// Checks a second of other keys.
const OTHERS: u32 = 100;
/// Forwards of the hot key that are a few: one for each second that its denial is known, the hundred that were
/// admitted, and what was under way when the first denial came.
const FEW: u64 = LIMIT + 300;

/// What a node counts under a name and labels.
fn metric(node: &mut Node, line: &str) -> u64 {
    let text = node.get("/metrics").unwrap().text;
    let value = text.lines().find_map(|one| one.strip_prefix(line));
    value.map_or(0, |value| value.trim().parse().unwrap())
}

/// A client of the node of that number over QUIC.
async fn client(cluster: &Dev, number: usize) -> Client {
    let read = |name: &str| std::fs::read(cluster.folder.join(name)).unwrap();
    let trust = Trust::from_pem(&read("authority.pem")).unwrap();
    let address = cluster.nodes[number].quic.parse().unwrap();
    let mut config = ClientConfig::new("dev", vec![address], trust);
    let credentials = Credentials::from_pem(&read("client.pem"), &read("client.key"));
    config.credentials = Some(credentials.unwrap());
    let client = Client::start(config).unwrap();
    client.connected(Duration::from_secs(5)).await.unwrap();
    client
}

/// What the flood came to.
#[derive(Debug, Default)]
struct Flood {
    asked: AtomicU64,
    admitted: AtomicU64,
    failed: AtomicU64,
    is_over: AtomicBool,
}

async fn flood(cluster: &Dev, number: usize, ip: &str, told: &Arc<Flood>) {
    let client = Arc::new(client(cluster, number).await);
    let mut ticks = tokio::time::interval(Duration::from_millis(1));
    let mut checks = tokio::task::JoinSet::new();
    for _ in 0..SECONDS * 1_000 {
        ticks.tick().await;
        for _ in 0..FLOOD / 1_000 {
            let (client, told, ip) = (Arc::clone(&client), Arc::clone(told), ip.to_owned());
            checks.spawn(async move {
                let check = Check {
                    subject: Subject::Policy {
                        name: "default".into(),
                        attributes: Pairs::from_iter([("ip", &*ip)]),
                    },
                    cost: 1,
                    peek: false,
                };
                told.asked.fetch_add(1, Ordering::Relaxed);
                let counter = match client.check(&check).await {
                    Ok(answer) if answer.is_allowed() => &told.admitted,
                    Ok(_refused) => return,
                    Err(_unanswered) => &told.failed,
                };
                counter.fetch_add(1, Ordering::Relaxed);
            });
        }
        while checks.try_join_next().is_some() {}
    }
    checks.join_all().await;
}

#[test]
fn a_flooded_key_is_refused_where_it_is_asked() {
    let cluster = cluster(3, LIMIT, "1m");
    let ip = "192.0.2.44";
    let owner = owner_of(&cluster, 0, ip).unwrap();
    let owner: usize = owner[1..].parse::<usize>().unwrap() - 1;
    let entry = (owner + 1) % 3;
    let urls = [cluster.nodes[entry].http.clone()];
    let others = |number: u32| format!("10.{}.{}.1", number / 250 % 250, number % 250);
    let quiet = Load::start(&urls, OTHERS, others);
    until(
        "the others asked for a while",
        Duration::from_secs(30),
        || (quiet.so_far().len() > usize::try_from(OTHERS * 3).unwrap()).then_some(()),
    );
    let quiet = quiet.end();
    let decided = "tollgate_owner_checks_total{outcome=\"decided\"} ";
    let cached = "tollgate_limit_checks_total{policy=\"default\",limit=\"per-ip\",outcome=\"refused\",decided_by=\"cached\"} ";
    let mut at_owner = cluster.node(owner);
    let before = metric(&mut at_owner, decided);
    let load = Load::start(&urls, OTHERS, move |number| {
        format!("11.{}.{}.1", number / 250 % 250, number % 250)
    });
    let told = Arc::new(Flood::default());
    let started = now();
    thread::scope(|scope| {
        scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(flood(&cluster, entry, ip, &told));
            told.is_over.store(true, Ordering::Relaxed);
        });
        until("the flood is over", Duration::from_secs(120), || {
            told.is_over.load(Ordering::Relaxed).then_some(())
        });
    });
    let took = started.elapsed();
    let sent = load.end();
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    // Of the other keys some were the owner's, too.
    let keys: BTreeSet<_> = sent.iter().map(|one| &one.client).collect();
    let others_there = keys
        .iter()
        .filter(|ip| owner_of(&cluster, entry, ip).as_deref() == Some(&format!("n{}", owner + 1)))
        .count();
    let forwards = metric(&mut at_owner, decided) - before;
    let forwards = forwards.saturating_sub(u64::try_from(others_there).unwrap());
    let known = metric(&mut cluster.node(entry), cached);
    println!(
        "hot key: {} asked in {took:?}, {} admitted, {} without an answer, {forwards} forwarded, \
         {known} refused where they were asked ({} in a thousand); p99 of other keys {:?}, {:?} without it",
        count(&told.asked),
        count(&told.admitted),
        count(&told.failed),
        known * 1_000 / count(&told.asked),
        quantile(&sent, 990),
        quantile(&quiet, 990),
    );
    assert_eq!(count(&told.admitted), LIMIT);
    assert_eq!(count(&told.failed), 0);
    assert!(forwards <= FEW, "{forwards} forwarded");
    assert!(known + FEW >= count(&told.asked), "{known}");
    let faulty = faulty(&sent);
    assert!(faulty.is_empty(), "{}: {:?}", faulty.len(), faulty[0]);
}
