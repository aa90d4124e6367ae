//! What is done with checks after their answer, for keys of another node than the one that is asked.

use tollgate_limit::{
    Action, ActionError, BanSpec, Counted, Ending, LimitSpec, Nanos, Outcome, Reason,
};
use tollgate_node::Timeouts;
use tollgate_sim::Simulation;

use crate::{
    asking::{
        HOUR, acquire, act, ask, limit, pass, permits, receipt, refund, settling, used_in, window,
    },
    cluster::Cluster,
};

const NODES: u8 = 3;
const ENTRY: usize = 0;
const OWNER: usize = 1;
const OTHER: usize = 2;
const MINUTE: Nanos = Nanos::from_millis(60_000);

/// Runs a scenario on three nodes with these limits.
fn run(seed: u64, limits: &[LimitSpec], scenario: impl AsyncFnOnce(&Cluster)) {
    let run = Simulation::run(seed, async |simulation| {
        let timeouts = Timeouts::default();
        let cluster = Cluster::start_limits(simulation, NODES, timeouts, limits).await;
        scenario(&cluster).await;
    });
    run.unwrap();
}

/// A limit of five that counts failures, and bans for an hour.
fn log_ins() -> LimitSpec {
    LimitSpec {
        count: Counted::Failures,
        ban: Some(BanSpec {
            length: HOUR,
            escalate: 2.0,
            longest: None,
        }),
        ..limit("account", 5, window(MINUTE))
    }
}

#[test]
fn a_refund_by_id_gives_back_just_that_and_once_at_whatever_node() {
    run(20, &[limit("user", 100, window(MINUTE))], async |cluster| {
        let [entry, owner, other] = &*cluster.nodes else {
            panic!("three nodes")
        };
        let user = cluster.value_at(OWNER, "user", 0);
        let values = &[("user", &*user)];
        ask(other, values, 5).await;
        let decision = ask(entry, values, 7).await;
        let bought = receipt(entry, &decision);
        assert_eq!(cluster.used(ENTRY, "user", &user).await, 12);
        let done = act(other, &bought, Action::Refund).await;
        assert_eq!(used_in(&done), 5);
        assert_eq!(done.unwrap()[0].node.as_ref(), Some(&owner.config().node));
        for again in [entry, owner, other] {
            for action in [Action::Refund, settling(9)] {
                let again = act(again, &bought, action).await;
                assert_eq!(again, Err(ActionError::Used));
            }
        }
        assert_eq!(cluster.used(ENTRY, "user", &user).await, 5);

        // An id lives as long as its window; a second more, since it is told in whole seconds.
        let kept = receipt(entry, &ask(entry, values, 1).await);
        let old = receipt(entry, &ask(entry, values, 1).await);
        pass(Nanos::from_millis(59_000)).await;
        assert!(act(other, &kept, Action::Refund).await.is_ok());
        pass(Nanos::from_millis(3_000)).await;
        let late = act(other, &old, Action::Refund).await;
        assert_eq!(late, Err(ActionError::Unknown));
    });
}

#[test]
fn a_refused_check_has_nothing_to_refund_and_that_is_no_fault() {
    run(21, &[limit("user", 1, window(MINUTE))], async |cluster| {
        let entry = &cluster.nodes[ENTRY];
        let user = cluster.value_at(OWNER, "user", 0);
        let values = &[("user", &*user)];
        ask(entry, values, 1).await;
        let refused = ask(entry, values, 1).await;
        assert!(!refused.is_allowed());
        let refused = receipt(entry, &refused);
        pass(Nanos::from_millis(5_000)).await;
        assert_eq!(act(entry, &refused, Action::Refund).await, Ok(Vec::new()));
        assert_eq!(cluster.used(ENTRY, "user", &user).await, 1);
    });
}

#[test]
fn a_refund_by_question_takes_the_oldest_first_and_no_more_than_there_is() {
    run(22, &[limit("user", 100, window(MINUTE))], async |cluster| {
        let [entry, _, other] = &*cluster.nodes else {
            panic!("three nodes")
        };
        let user = cluster.value_at(OWNER, "user", 0);
        let values = &[("user", &*user)];
        ask(entry, values, 3).await;
        pass(Nanos::from_millis(30_000)).await;
        ask(entry, values, 2).await;
        assert_eq!(used_in(&refund(other, values, 4).await), 1);
        // All that is left is of the younger ones: it is still there when the older ones would be gone.
        pass(Nanos::from_millis(45_000)).await;
        assert_eq!(cluster.used(ENTRY, "user", &user).await, 1);
        assert_eq!(used_in(&refund(other, values, 1_000).await), 0);
        // There is no credit.
        ask(entry, values, 2).await;
        assert_eq!(cluster.used(ENTRY, "user", &user).await, 2);
    });
}

#[test]
fn a_reservation_is_settled_once_for_more_or_for_less() {
    run(23, &[limit("user", 100, window(MINUTE))], async |cluster| {
        let [entry, _, other] = &*cluster.nodes else {
            panic!("three nodes")
        };
        let user = cluster.value_at(OWNER, "user", 0);
        let values = &[("user", &*user)];
        let less = receipt(entry, &ask(entry, values, 40).await);
        assert_eq!(used_in(&act(other, &less, settling(10)).await), 10);
        let same = receipt(entry, &ask(entry, values, 5).await);
        assert_eq!(used_in(&act(other, &same, settling(5)).await), 15);
        let more = receipt(entry, &ask(entry, values, 40).await);
        assert_eq!(used_in(&act(other, &more, settling(150)).await), 165);
        for repeated in [&less, &same, &more] {
            let again = act(entry, repeated, settling(1)).await;
            assert_eq!(again, Err(ActionError::Used));
        }
        // The debt counts against later requests, until its window has passed.
        let verdict = cluster.read(ENTRY, "user", &user).await.unwrap();
        assert_eq!((verdict.used, verdict.remaining), (165, 0));
        let wait = ask(entry, values, 1).await.limits[0].verdict.retry_after;
        pass(wait.unwrap()).await;
        assert!(ask(entry, values, 1).await.is_allowed());
        // One that nobody settles stands as charged.
        let (before, nothing) = (cluster.used(ENTRY, "user", &user).await, Nanos::ZERO);
        ask(entry, values, 30).await;
        pass(nothing).await;
        assert_eq!(cluster.used(OTHER, "user", &user).await, before + 30);
    });
}

#[test]
fn two_nodes_that_use_one_id_at_the_same_time_change_its_counter_once() {
    run(24, &[limit("user", 100, window(MINUTE))], async |cluster| {
        let entry = &cluster.nodes[ENTRY];
        let user = cluster.value_at(OWNER, "user", 0);
        let values = &[("user", &*user)];
        for round in 0..20 {
            let both = receipt(entry, &ask(entry, values, 3).await);
            let (one, two) = tokio::join!(
                act(&cluster.nodes[round % 3], &both, Action::Refund),
                act(&cluster.nodes[(round + 1) % 3], &both, settling(0)),
            );
            let mut ends = [one.map(drop), two.map(drop)];
            ends.sort_by_key(Result::is_err);
            assert_eq!(ends, [Ok(()), Err(ActionError::Used)], "round {round}");
            assert_eq!(cluster.used(OTHER, "user", &user).await, 0);
        }
    });
}

#[test]
fn permits_are_released_at_any_node_and_a_second_time_to_no_effect() {
    let limits = [limit("job", 2, permits(MINUTE))];
    run(25, &limits, async |cluster| {
        let [entry, owner, other] = &*cluster.nodes else {
            panic!("three nodes")
        };
        let job = cluster.value_at(OWNER, "job", 0);
        let values = &[("job", &*job)];
        let first = acquire(entry, values).await;
        let second = acquire(other, values).await;
        assert!(first.is_allowed() && second.is_allowed());
        assert!(!acquire(owner, values).await.is_allowed());
        let first = receipt(entry, &first);
        for releaser in [other, other, entry] {
            assert_eq!(used_in(&act(releaser, &first, Action::Release).await), 1);
        }
        assert!(acquire(other, values).await.is_allowed());
        assert!(!acquire(entry, values).await.is_allowed());
        // To release what is released already takes nobody else's permit away.
        act(entry, &first, Action::Release).await.unwrap();
        assert!(!acquire(entry, values).await.is_allowed());
        // A permit is no charge to refund.
        let second = receipt(other, &second);
        assert_eq!(act(entry, &second, Action::Refund).await, Ok(Vec::new()));
        assert_eq!(cluster.used(ENTRY, "job", &job).await, 2);
    });
}

#[test]
fn permits_of_a_client_that_died_are_free_again_after_their_time() {
    let limits = [limit("job", 3, permits(MINUTE))];
    run(26, &limits, async |cluster| {
        let [entry, _, other] = &*cluster.nodes else {
            panic!("three nodes")
        };
        let job = cluster.value_at(OWNER, "job", 0);
        let values = &[("job", &*job)];
        for _ in 0..3 {
            // The client dies with its answer.
            drop(acquire(entry, values).await);
        }
        pass(Nanos::from_millis(59_000)).await;
        let refused = acquire(other, values).await;
        assert!(!refused.is_allowed());
        let wait = refused.limits[0].verdict.retry_after.unwrap();
        assert!(wait <= Nanos::from_millis(1_000), "{wait:?}");
        pass(wait).await;
        for _ in 0..3 {
            assert!(acquire(other, values).await.is_allowed());
        }
        assert!(!acquire(entry, values).await.is_allowed());
    });
}

/// Provisional charges admit no more guesses than the limit before the first report.
#[test]
fn of_a_thousand_guesses_at_once_just_the_limit_passes() {
    run(27, &[log_ins()], async |cluster| {
        let account = cluster.value_at(OWNER, "account", 0);
        let mut guesses = tokio::task::JoinSet::new();
        for guess in 0..1_000 {
            let (node, account) = (cluster.nodes[guess % 3].clone(), account.clone());
            guesses.spawn(async move { ask(&node, &[("account", &*account)], 1).await });
        }
        let decisions = guesses.join_all().await;
        assert!(decisions.iter().all(|decision| !decision.is_degraded()));
        let passed = decisions.iter().filter(|decision| decision.is_allowed());
        assert_eq!(passed.count(), 5);
    });
}

#[test]
fn failures_reported_anywhere_ban_everywhere_and_a_reset_lifts_the_ban_within_a_second() {
    run(28, &[log_ins()], async |cluster| {
        let account = cluster.value_at(OWNER, "account", 0);
        let values = &[("account", &*account)];
        // Successes give back what was charged for them: they never add up.
        for attempt in 0..20 {
            let entry = &cluster.nodes[attempt % 3];
            let decision = ask(entry, values, 1).await;
            assert!(decision.is_allowed());
            let success = Action::Report(Ending::Success);
            let reporter = &cluster.nodes[(attempt + 1) % 3];
            let done = act(reporter, &receipt(entry, &decision), success).await;
            assert_eq!(used_in(&done), 0);
        }
        for attempt in 0..5 {
            let entry = &cluster.nodes[attempt % 3];
            let decision = ask(entry, values, 1).await;
            assert!(decision.is_allowed(), "attempt {attempt}");
            let bad = receipt(entry, &decision);
            let failure = Action::Report(Ending::Failure);
            let reporter = &cluster.nodes[(attempt + 2) % 3];
            act(reporter, &bad, failure.clone()).await.unwrap();
            let again = act(entry, &bad, failure).await;
            assert_eq!(again, Err(ActionError::Used));
        }
        // The ban outlasts the window by far.
        pass(Nanos::from_millis(300_000)).await;
        for node in &cluster.nodes {
            let refused = ask(node, values, 1).await;
            let outcome = refused.limits[0].verdict.outcome;
            assert_eq!(outcome, Outcome::Refuse(Reason::Banned));
        }
        assert_eq!(cluster.reset(OTHER, "account", &account).await, Ok(()));
        pass(Nanos::from_millis(1_000)).await;
        for node in &cluster.nodes {
            let decision = ask(node, values, 1).await;
            assert!(decision.is_allowed() && !decision.is_degraded());
        }
        assert_eq!(cluster.used(ENTRY, "account", &account).await, 3);
    });
}

#[test]
fn what_a_receipt_has_nothing_of_is_told_and_keeps_the_id_good() {
    let limits = [limit("user", 9, window(MINUTE))];
    run(29, &limits, async |cluster| {
        let entry = &cluster.nodes[ENTRY];
        let user = cluster.value_at(OWNER, "user", 0);
        let bought = receipt(entry, &ask(entry, &[("user", &*user)], 4).await);
        for action in [Action::Release, Action::Report(Ending::Failure)] {
            let nothing = act(entry, &bought, action).await;
            assert!(matches!(nothing, Err(ActionError::Nothing { .. })));
        }
        assert_eq!(used_in(&act(entry, &bought, Action::Refund).await), 0);
    });
}
