//! What is done with checks after their answer, over real sockets: always for keys of another node, and
//! at another node than the one that was asked.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tollgate_cluster::{Amendment, Returned};
use tollgate_limit::{
    Action, ActionError, AlgorithmSpec, AmendedLimit, Ask, Attributes, BanSpec, Call, Change, Cost,
    Counted, DecidedBy, Decision, Ending, Fallback, LimitSpec, Mode, Nanos, Outcome, Question,
    Reason, Receipt, Settling, Subject,
};

use super::cluster::{Cluster, await_that, key_of, limit};
use crate::{clock::Clock as _, node::Node};

type Done = Result<Vec<AmendedLimit>, ActionError>;

fn user(units: u64) -> LimitSpec {
    limit("user", units, Fallback::LocalFull)
}

fn question(user: &str, cost: u64, call: Call) -> Question<'_> {
    let mut attributes = Attributes::new();
    attributes.insert("user", user).unwrap();
    Question {
        subject: Subject::Policy {
            name: "default",
            attributes,
        },
        cost: Cost::new(cost).unwrap(),
        mode: Mode::Consume,
        call,
    }
}

/// A check at one node, permits included, and its receipt.
async fn ask(node: &Arc<Node>, user: &str, cost: u64) -> (Decision, Receipt) {
    let checked = node.check(node.now(), &question(user, cost, Call::Acquire));
    let decision = checked.unwrap().decision().await;
    let receipt = Receipt::of(&decision, node.clock.unix_seconds(node.now()));
    (decision, receipt)
}

async fn act(node: &Arc<Node>, receipt: &Receipt, action: Action) -> Done {
    node.act(node.now(), receipt.clone(), action).await
}

fn settling(cost: u64) -> Action {
    Action::Settle(Settling {
        cost: Cost::new(cost).ok(),
        attributes: Vec::new(),
    })
}

fn used_in(done: &Done) -> u64 {
    let Ok([limit]) = done.as_deref() else {
        panic!("{done:?}")
    };
    limit.now.unwrap().used
}

#[tokio::test]
async fn refund_and_settle_work_at_any_node_and_once() {
    let cluster = Cluster::start(3, vec![user(100)]).await;
    let [entry, owner, other] = &*cluster.nodes else {
        panic!("three nodes")
    };
    let user = cluster.owned_by(1, "user", 0);
    let (_, bought) = ask(entry, &user, 30).await;
    let (_, reserved) = ask(other, &user, 30).await;
    assert_eq!(used_in(&act(other, &bought, Action::Refund).await), 30);
    assert_eq!(used_in(&act(entry, &reserved, settling(110)).await), 110);
    for node in [entry, owner, other] {
        for used in [&bought, &reserved] {
            let again = act(node, used, settling(7)).await;
            assert_eq!(again, Err(ActionError::Used));
        }
    }
    assert!(!ask(entry, &user, 1).await.0.is_allowed());
    let question = question(&user, 50, Call::Check);
    let refunded = Arc::clone(other).refund(other.now(), &question).unwrap();
    assert_eq!(used_in(&refunded.await), 60);
    assert_eq!(cluster.used(1, "user", &user), 60);
}

#[tokio::test]
async fn a_permit_is_released_at_any_node() {
    let permits = LimitSpec {
        algorithm: AlgorithmSpec::Concurrency {
            ttl: Nanos::from_millis(3_600_000),
        },
        ..user(1)
    };
    let cluster = Cluster::start(3, vec![permits]).await;
    let [entry, _, other] = &*cluster.nodes else {
        panic!("three nodes")
    };
    let user = cluster.owned_by(1, "user", 0);
    let (_, mut permit) = ask(entry, &user, 1).await;
    // Its number is nobody else's: who gave it does not matter.
    permit.items[0].charge.boot = 0;
    assert!(!ask(other, &user, 1).await.0.is_allowed());
    for _ in 0..2 {
        assert_eq!(used_in(&act(other, &permit, Action::Release).await), 0);
    }
    assert!(ask(other, &user, 1).await.0.is_allowed());
    assert_eq!(used_in(&act(entry, &permit, Action::Release).await), 1);
}

/// A receipt of an owner that has restarted or has handed over: its counts are here, its slices are not.
#[tokio::test]
async fn what_another_boot_charged_is_refunded() {
    let cluster = Cluster::start(3, vec![user(100)]).await;
    let owner = cluster.nodes[1].boot.0;
    let user = cluster.owned_by(1, "user", 0);
    for node in &cluster.nodes {
        for (action, less) in [(Action::Refund, 5), (settling(1), 4)] {
            let (_, mut old) = ask(node, &user, 5).await;
            assert!(!old.items.is_empty());
            for item in &mut old.items {
                assert_eq!(item.charge.boot, owner);
                item.charge.boot = owner.wrapping_add(1);
            }
            let before = cluster.used(1, "user", &user);
            let done = act(node, &old, action.clone()).await;
            assert_eq!(used_in(&done), before - less, "{action:?}");
            assert_eq!(cluster.used(1, "user", &user), before - less, "{action:?}");
            // Charged by whoever owns it now.
            let (_, more) = ask(node, &user, 1).await;
            let used = used_in(&act(node, &more, settling(2)).await);
            assert_eq!(used, before - less + 2);
        }
    }
}

#[tokio::test]
async fn reports_ban_and_a_reset_lifts_the_ban_everywhere() {
    let log_ins = LimitSpec {
        count: Counted::Failures,
        ban: Some(BanSpec {
            length: Nanos::from_millis(3_600_000),
            escalate: 1.0,
            longest: None,
        }),
        ..user(2)
    };
    let cluster = Cluster::start(3, vec![log_ins]).await;
    let user = cluster.owned_by(1, "user", 0);
    let report = async |number: usize, ending| {
        let (decision, receipt) = ask(&cluster.nodes[number % 3], &user, 1).await;
        assert!(decision.is_allowed(), "{number}");
        let reporter = &cluster.nodes[(number + 1) % 3];
        act(reporter, &receipt, Action::Report(ending))
            .await
            .unwrap();
    };
    for number in 0..6 {
        report(number, Ending::Success).await;
    }
    report(0, Ending::Failure).await;
    report(1, Ending::Failure).await;
    for node in &cluster.nodes {
        let outcome = ask(node, &user, 1).await.0.limits[0].verdict.outcome;
        assert_eq!(outcome, Outcome::Refuse(Reason::Banned));
    }
    let policies = cluster.nodes[0].policies();
    let limit = policies.policy("default").unwrap().limit("user").unwrap();
    let key = key_of(limit, "user", &user);
    let rule = *limit.usual_rule().unwrap();
    cluster.nodes[2].reset(key, rule).await.unwrap();
    // It is in force where it was asked for at once, elsewhere when the denial that is known is over.
    let (decision, _) = ask(&cluster.nodes[2], &user, 1).await;
    assert_eq!(decision.limits[0].verdict.used, 1, "{decision:?}");
    let reset = cluster.nodes[0].now();
    while !ask(&cluster.nodes[0], &user, 1).await.0.is_allowed() {
        let since = cluster.nodes[0].now().saturating_sub(reset);
        assert!(
            since < Nanos::from_millis(1_500),
            "in force within a second"
        );
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_all_that_use_one_id_at_once_one_wins() {
    let cluster = Cluster::start(3, vec![user(1_000)]).await;
    let user = cluster.owned_by(1, "user", 0);
    for _ in 0..20 {
        let (_, bought) = ask(&cluster.nodes[0], &user, 5).await;
        let mut users = tokio::task::JoinSet::new();
        for number in 0..9 {
            let (node, bought) = (cluster.nodes[number % 3].clone(), bought.clone());
            users.spawn(async move { act(&node, &bought, settling(6)).await });
        }
        let ends = users.join_all().await;
        let wins = ends.iter().filter(|end| end.is_ok());
        assert_eq!(wins.count(), 1, "{ends:?}");
    }
    assert_eq!(cluster.used(1, "user", &user), 20 * 6);
}

#[tokio::test]
async fn ids_are_in_no_tally_and_take_no_place_of_the_last_answers() {
    let cluster = Cluster::start(3, vec![user(1_000)]).await;
    let user = cluster.owned_by(1, "user", 0);
    let entry = &cluster.nodes[0];
    for _ in 0..30 {
        let (_, bought) = ask(entry, &user, 1).await;
        act(entry, &bought, Action::Refund).await.unwrap();
    }
    let tally = entry.inline_tally();
    assert_eq!(tally.allowed(DecidedBy::Owner), 0);
    let policies = entry.policies();
    let limit = policies.policy("default").unwrap().limit("user").unwrap();
    assert_eq!(limit.tally().allowed(DecidedBy::Owner), 30);
    assert_eq!(entry.shares.last_answers(), 1, "that of the user");
}

/// A change of the user's counter, as one for whoever owns it.
fn amendment(cluster: &Cluster, user: &str, change: Change) -> Amendment {
    let policies = cluster.nodes[0].policies();
    let limit = policies.policy("default").unwrap().limit("user").unwrap();
    let ask = Ask {
        key: key_of(limit, "user", user),
        rule: *limit.usual_rule().unwrap(),
        cost: Cost::new(3).unwrap(),
    };
    Amendment { ask, change }
}

#[tokio::test]
async fn a_change_told_to_a_node_that_is_not_the_owner_reaches_the_owner_once() {
    let cluster = Cluster::start(3, vec![user(1_000)]).await;
    let (entry, wrong) = (&cluster.nodes[0], &cluster.nodes[1]);
    let routes = entry.routes.load_full();
    let link = routes.link_to(&wrong.config().node).unwrap();
    let (theirs, own) = (
        cluster.owned_by(2, "user", 0),
        cluster.owned_by(0, "user", 0),
    );
    let send = |user: &str, change| {
        let amendment = amendment(&cluster, user, change);
        let change = Returned {
            amendment,
            expires: Nanos::MAX,
            boot: None,
        };
        link.amend_until(entry.now(), change, None).unwrap()
    };
    let mut sent = Vec::new();
    for _ in 0..50 {
        sent.push(send(&theirs, Change::Charge));
        sent.push(send(&own, Change::Charge));
    }
    await_that("all is counted", || {
        cluster.used(2, "user", &theirs) >= 150 && cluster.used(0, "user", &own) >= 150
    })
    .await;
    // A give-back names a slice of whoever charged: to another it is a refund of as much.
    let slice = 0;
    sent.push(send(&theirs, Change::GiveBack { slice }));
    await_that("nothing is on its way", || {
        sent.iter().all(|sequence| link.has_amended(*sequence)) && entry.errands.waiting() == 0
    })
    .await;
    // Behind all that was sent to the owner.
    let (_, last) = ask(entry, &theirs, 1).await;
    assert_eq!(used_in(&act(entry, &last, Action::Refund).await), 147);
    assert_eq!(cluster.used(0, "user", &own), 150);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_that_are_replaced_keep_counters_and_tallies_and_the_others_hear_of_it() {
    let cluster = Cluster::start(3, vec![user(40)]).await;
    let user_value = cluster.owned_by(1, "user", 0);
    let before = cluster.nodes[0].report().policies;
    let mut clients = tokio::task::JoinSet::new();
    let asked = Arc::new(AtomicU64::new(0));
    for node in cluster.nodes.clone() {
        let (user, asked) = (user_value.clone(), Arc::clone(&asked));
        clients.spawn(async move {
            let mut admitted = 0;
            for _ in 0..300 {
                admitted += u64::from(ask(&node, &user, 1).await.0.is_allowed());
                asked.fetch_add(1, Ordering::Relaxed);
            }
            admitted
        });
    }
    for units in 41..=60 {
        // Each replaces policies that have decided something.
        await_that("checks go on", || {
            asked.load(Ordering::Relaxed) >= 20 * (units - 40)
        })
        .await;
        for node in &cluster.nodes {
            node.replace_policies(super::cluster::policies(&[user(units)]));
        }
    }
    let admitted: u64 = clients.join_all().await.into_iter().sum();
    assert!((40..=60).contains(&admitted), "{admitted}");
    // Counted on: the last limit leaves what the checks so far have left of it.
    let mut late = 0;
    while ask(&cluster.nodes[0], &user_value, 1).await.0.is_allowed() {
        late += 1;
    }
    assert_eq!(admitted + late, 60);
    assert_eq!(cluster.used(1, "user", &user_value), 60);
    let mut told = 0;
    for node in &cluster.nodes {
        let policies = node.policies();
        let limit = policies.policy("default").unwrap().limit("user").unwrap();
        told += limit.tally().allowed(DecidedBy::Owner) + limit.tally().refused(DecidedBy::Owner);
        told += limit.tally().refused(DecidedBy::Cached);
    }
    assert_eq!(told, 900 + late + 1);
    // One node goes by other policies, and the others hear of it.
    cluster.nodes[0].replace_policies(super::cluster::policies(&[user(7)]));
    let own = cluster.nodes[0].report().policies;
    assert_ne!(own, before);
    let name = &cluster.nodes[0].config().node;
    await_that("the others know", || {
        cluster.nodes[1..].iter().all(|node| {
            let members = node.report().members;
            let told = members.iter().find(|member| member.identity.node == *name);
            told.is_some_and(|member| member.policies == Some(own))
        })
    })
    .await;
}
