//! Changes of counters on links that are cut and at owners that are dead: answered in time, and applied
//! just once.

use std::{sync::Arc, time::Duration};

use tokio::time::{sleep, timeout};
use tollgate_limit::{
    Action, ActionError, Counted, Ending, Fallback, LimitSpec, Nanos, Outcome, Reason, Receipt,
};
use tollgate_node::{Node, Timeouts};
use tollgate_sim::{LinkConditions, Simulation};

use crate::{
    asking::{
        Done, HOUR, Values, acquire, act, ask, limit, permits, receipt, refund, settling, used_in,
        window,
    },
    cluster::{Cluster, await_that},
};

pub(crate) const NODES: u8 = 3;
pub(crate) const ENTRY: usize = 0;
pub(crate) const OWNER: usize = 1;
pub(crate) const OTHER: usize = 2;
/// The check deadline of the default timeouts, and a tick of the simulated network.
const IN_TIME: Duration = Duration::from_millis(52);
/// What room can be reserved for: more than a link's queue takes.
pub(crate) const MOST_OUTSTANDING: u64 = 4_096;

/// Runs a scenario on three nodes with these limits.
pub(crate) fn run(
    seed: u64,
    limits: &[LimitSpec],
    scenario: impl AsyncFnOnce(&Simulation, &Cluster),
) {
    let run = Simulation::run(seed, async |simulation| {
        let timeouts = Timeouts::default();
        let cluster = Cluster::start_limits(simulation, NODES, timeouts, limits).await;
        scenario(simulation, &cluster).await;
    });
    run.unwrap();
}

fn users() -> LimitSpec {
    limit("user", 1_000, window(HOUR))
}

/// Which way is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    /// Amendments do not arrive.
    There,
    /// They do, but nobody learns of it.
    Back,
    /// Neither.
    Both,
}

impl Cut {
    pub(crate) fn strike(self, simulation: &Simulation, cluster: &Cluster) {
        let (entry, owner) = (cluster.address(ENTRY), cluster.address(OWNER));
        match self {
            Self::There => simulation.network().block(entry, owner),
            Self::Back => simulation.network().block(owner, entry),
            Self::Both => simulation.network().block_both(entry, owner),
        }
    }
}

pub(crate) async fn settle_cut(node: &Arc<Node>, receipt: &Receipt, units: u64) {
    let done = timeout(IN_TIME, act(node, receipt, settling(units))).await;
    let done = done.expect("answered in time").unwrap();
    assert!(done.iter().all(|limit| limit.now.is_none()), "{done:?}");
}

/// Cuts the link of two nodes in the middle of three changes for so long, while a third keeps them
/// members; what the owner counts in the end.
fn amend_while_cut(cut: Cut, length: Duration) {
    run(40, &[users()], async |simulation, cluster| {
        let entry = &cluster.nodes[ENTRY];
        let user = cluster.value_at(OWNER, "user", 0);
        let values = &[("user", &*user)];
        let more = receipt(entry, &ask(entry, values, 100).await);
        let less = receipt(entry, &ask(entry, values, 100).await);
        cut.strike(simulation, cluster);
        settle_cut(entry, &more, 130).await;
        settle_cut(entry, &less, 60).await;
        let by_question = timeout(IN_TIME, refund(entry, values, 7)).await;
        assert_eq!(by_question.expect("in time").unwrap()[0].now, None);
        sleep(length).await;
        let members = |node: &Arc<Node>| node.report().members.len();
        assert!(cluster.nodes.iter().all(|node| members(node) == 3));
        simulation.network().heal_all();
        cluster.settle().await;
        sleep(Duration::from_secs(2)).await;
        let used = cluster.used(OTHER, "user", &user).await;
        assert_eq!(used, 130 + 60 - 7, "{cut:?} for {length:?}");
    });
}

#[test]
fn a_change_that_does_not_arrive_is_sent_again_and_applied_once() {
    for cut in [Cut::There, Cut::Both] {
        amend_while_cut(cut, Duration::from_millis(300));
        amend_while_cut(cut, Duration::from_secs(60));
    }
}

#[test]
fn a_change_that_arrives_unacknowledged_is_applied_once_however_long_the_cut() {
    for length in [300, 5_000, 60_000] {
        amend_while_cut(Cut::Back, Duration::from_millis(length));
    }
}

#[test]
fn changes_under_loss_are_applied_once() {
    run(41, &[users()], async |simulation, cluster| {
        let lossy = LinkConditions::default().with_loss_per_mille(200);
        simulation.network().set_conditions(lossy);
        let user = cluster.value_at(OWNER, "user", 0);
        let values = &[("user", &*user)];
        let (mut charged, mut done) = (0, 0);
        for round in 0..200 {
            let entry = &cluster.nodes[round % 3];
            let decision = ask(entry, values, 3).await;
            // Without its owner a check is charged to nobody else.
            if decision.is_degraded() || !decision.is_allowed() {
                continue;
            }
            charged += 1;
            let other = &cluster.nodes[(round + 1) % 3];
            done += u64::from(
                act(other, &receipt(entry, &decision), settling(5))
                    .await
                    .is_ok(),
            );
        }
        simulation
            .network()
            .set_conditions(LinkConditions::default());
        cluster.settle().await;
        sleep(Duration::from_secs(2)).await;
        // A claim whose answer is lost may be taken for used when it is asked for again elsewhere.
        assert!(charged > 50 && done <= charged, "{charged} and {done}");
        assert!(charged - done <= charged / 20, "{charged} and {done}");
        let used = cluster.used(OTHER, "user", &user).await;
        // A check whose replies were lost may be charged all the same, at the owner, at the standby and in the
        // share: towards refusing.
        assert!(
            used >= 5 * done && used <= 5 * done + 3 * 3 * (200 - done),
            "{used} of {done} settled"
        );
    });
}

#[test]
fn with_its_owner_dead_a_change_is_answered_in_time_and_told_to_the_next() {
    let failures = LimitSpec {
        count: Counted::Failures,
        ..users()
    };
    run(42, &[failures], async |simulation, cluster| {
        let entry = &cluster.nodes[ENTRY];
        let user = cluster.value_at(OWNER, "user", 0);
        let values = &[("user", &*user)];
        let more = receipt(entry, &ask(entry, values, 10).await);
        let less = receipt(entry, &ask(entry, values, 10).await);
        let bad = receipt(entry, &ask(entry, values, 10).await);
        // The standby has it all by then.
        sleep(Duration::from_secs(1)).await;
        simulation.network().unplug(cluster.address(OWNER));
        settle_cut(entry, &more, 25).await;
        settle_cut(entry, &less, 1).await;
        let failure = Action::Report(Ending::Failure);
        let reported = timeout(IN_TIME, act(entry, &bad, failure)).await;
        assert_eq!(reported.expect("in time").unwrap()[0].now, None);
        let reset = timeout(IN_TIME, cluster.reset(ENTRY, "user", &user)).await;
        assert!(reset.expect("in time").is_err());
        await_that("the owner is given up", || {
            entry.report().members.len() == 2 && cluster.nodes[OTHER].report().members.len() == 2
        })
        .await;
        sleep(Duration::from_secs(2)).await;
        // What the dead owner counted is not lost, and what was to be taken out of it is. The reset was not told
        // as done, and does not strike late.
        assert_eq!(cluster.used(ENTRY, "user", &user).await, 25 + 1 + 10);
    });
}

#[test]
fn where_no_more_can_wait_an_action_is_refused_and_its_id_stays_good() {
    let many = limit("user", 100_000, window(HOUR));
    run(43, &[many], async |simulation, cluster| {
        let entry = &cluster.nodes[ENTRY];
        let user = cluster.value_at(OWNER, "user", 0);
        let values = &[("user", &*user)];
        let bought = receipt(entry, &ask(entry, values, 10_000).await);
        Cut::Both.strike(simulation, cluster);
        for number in 0..MOST_OUTSTANDING {
            let waits: Done = refund(entry, values, 1).await;
            assert!(waits.is_ok(), "refund {number}");
        }
        let full = Err(ActionError::Unreachable);
        assert_eq!(refund(entry, values, 1).await, full);
        assert_eq!(act(entry, &bought, settling(9_000)).await, full);
        simulation.network().heal_all();
        cluster.settle().await;
        sleep(Duration::from_secs(3)).await;
        let used = cluster.used(OTHER, "user", &user).await;
        assert_eq!(used, 10_000 - MOST_OUTSTANDING);
        let settled = act(entry, &bought, settling(9_000)).await;
        // The refunds took their units from the slice that the reservation went to.
        assert_eq!(used_in(&settled), 9_000 - MOST_OUTSTANDING);
    });
}

#[test]
fn an_action_is_done_though_its_asker_goes_away() {
    run(44, &[users()], async |simulation, cluster| {
        let entry = &cluster.nodes[ENTRY];
        let slow = LinkConditions {
            delay: Duration::from_millis(3),
            ..LinkConditions::default()
        };
        simulation.network().set_conditions(slow);
        let user = cluster.value_at(OWNER, "user", 0);
        let values: Values<'_> = &[("user", &*user)];
        for round in 0..10 {
            let bought = receipt(entry, &ask(entry, values, 4).await);
            // Ids lie at all nodes: for most the asker goes while the id is being claimed.
            let left = timeout(
                Duration::from_millis(2),
                act(entry, &bought, Action::Refund),
            );
            assert!(left.await.is_err(), "round {round}");
            sleep(Duration::from_millis(100)).await;
            assert_eq!(cluster.used(OTHER, "user", &user).await, 0, "round {round}");
            let again = act(entry, &bought, Action::Refund).await;
            assert_eq!(again, Err(ActionError::Used));
        }
    });
}

#[test]
fn permits_given_without_their_owner_are_released_where_they_were_given() {
    let jobs = limit("job", 2, permits(HOUR));
    run(45, &[jobs], async |simulation, cluster| {
        let (entry, other) = (&cluster.nodes[ENTRY], &cluster.nodes[OTHER]);
        let view = entry.view();
        let is_here = |value: &String| {
            let slot = cluster.key_and_rule("job", value).0.slot();
            view.placement.standby(slot) == view.own
        };
        let values = (0..).map(|from| cluster.value_at(OWNER, "job", from * 10));
        let job = values.into_iter().find(|value| !is_here(value)).unwrap();
        let values = &[("job", &*job)];
        // Neither is the standby there, for the entry node.
        let network = simulation.network();
        network.block_both(cluster.address(ENTRY), cluster.address(OWNER));
        network.block_both(cluster.address(ENTRY), cluster.address(OTHER));
        let held = [acquire(entry, values).await, acquire(entry, values).await];
        assert!(
            held.iter()
                .all(|held| held.is_allowed() && held.is_degraded())
        );
        assert!(!acquire(entry, values).await.is_allowed());
        let [first, _] = held.map(|held| receipt(entry, &held));
        let elsewhere = act(other, &first, Action::Release).await;
        assert_eq!(elsewhere, Err(ActionError::Unknown));
        for _ in 0..2 {
            act(entry, &first, Action::Release).await.unwrap();
        }
        assert!(acquire(entry, values).await.is_allowed());
        assert!(!acquire(entry, values).await.is_allowed());
    });
}

/// A limit that takes its cost from an attribute, at one owner, and one of each check at another.
fn tokens_and_calls(calls: u64) -> [LimitSpec; 2] {
    let tokens = LimitSpec {
        cost: tollgate_limit::CostSource::Attribute("tokens".to_owned()),
        ..users()
    };
    [tokens, limit("route", calls, window(HOUR))]
}

#[test]
fn what_a_refused_check_gives_back_is_each_limits_own_cost() {
    run(46, &tokens_and_calls(2), async |_simulation, cluster| {
        let entry = &cluster.nodes[ENTRY];
        let user = cluster.value_at(OWNER, "user", 0);
        let route = cluster.value_at(OTHER, "route", 0);
        let values = [("user", &*user), ("route", &*route)];
        let with_tokens = |tokens| [values[0], values[1], ("tokens", tokens)];
        let first = ask(entry, &with_tokens("300"), 1).await;
        let charged: Vec<_> = first
            .limits
            .iter()
            .map(|limit| limit.charged.units())
            .collect();
        assert_eq!(charged, [300, 1]);
        // No tokens: admitted, and no charge on that limit.
        let free = ask(entry, &with_tokens("0"), 1).await;
        assert!(free.is_allowed() && free.limits[0].charged.units() == 0);
        for _ in 0..5 {
            assert!(!ask(entry, &with_tokens("70"), 1).await.is_allowed());
        }
        sleep(Duration::from_secs(1)).await;
        assert_eq!(cluster.used(ENTRY, "user", &user).await, 300);
        assert_eq!(cluster.used(ENTRY, "route", &route).await, 2);
        // Back goes what each was charged.
        let bought = receipt(entry, &first);
        let done = act(&cluster.nodes[OTHER], &bought, Action::Refund).await;
        let left = done
            .unwrap()
            .into_iter()
            .map(|limit| limit.now.unwrap().used);
        assert_eq!(left.collect::<Vec<_>>(), [0, 1]);
    });
}

#[test]
fn a_shadow_limit_refuses_for_itself_alone_wherever_it_is() {
    let shadow = LimitSpec {
        shadow: true,
        ..limit("user", 3, window(HOUR))
    };
    let limits = [
        shadow,
        limit("route", 5, window(HOUR)),
        limit("tenant", 99, window(HOUR)),
    ];
    run(47, &limits, async |_simulation, cluster| {
        let entry = &cluster.nodes[ENTRY];
        let user = cluster.value_at(OWNER, "user", 0);
        let route = cluster.value_at(OTHER, "route", 0);
        let tenant = cluster.value_at(OWNER, "tenant", 0);
        let values = &[("user", &*user), ("route", &*route), ("tenant", &*tenant)];
        let mut admitted = 0;
        for _ in 0..9 {
            let decision = ask(entry, values, 1).await;
            assert_eq!(decision.headline().unwrap().limit.name(), "route");
            admitted += u32::from(decision.is_allowed());
        }
        assert_eq!(admitted, 5);
        sleep(Duration::from_secs(1)).await;
        let told = cluster.read(ENTRY, "user", &user).await.unwrap();
        assert_eq!(
            (told.used, told.outcome),
            (3, Outcome::Refuse(Reason::LimitExceeded))
        );
        assert_eq!(cluster.used(ENTRY, "route", &route).await, 5);
        assert_eq!(cluster.used(ENTRY, "tenant", &tenant).await, 5);
    });
}

#[test]
fn a_failure_reported_of_a_check_decided_without_its_owner_bans_at_the_owner() {
    let banned = LimitSpec {
        count: Counted::Failures,
        ban: Some(tollgate_limit::BanSpec {
            length: Nanos::from_millis(600_000),
            escalate: 1.0,
            longest: None,
        }),
        fallback: Fallback::LocalFull,
        ..limit("user", 2, window(HOUR))
    };
    run(48, &[banned], async |simulation, cluster| {
        let entry = &cluster.nodes[ENTRY];
        let user = cluster.value_at(OWNER, "user", 0);
        let values = &[("user", &*user)];
        Cut::Both.strike(simulation, cluster);
        for reporter in [entry, &cluster.nodes[OTHER]] {
            let guess = ask(entry, values, 1).await;
            assert!(guess.is_allowed());
            let guess = receipt(entry, &guess);
            let failure = Action::Report(Ending::Failure);
            act(reporter, &guess, failure).await.unwrap();
        }
        simulation.network().heal_all();
        cluster.settle().await;
        sleep(Duration::from_secs(1)).await;
        let told = cluster.read(OTHER, "user", &user).await.unwrap();
        assert_eq!(told.outcome, Outcome::Refuse(Reason::Banned));
    });
}
