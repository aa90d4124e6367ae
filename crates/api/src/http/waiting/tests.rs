//! Waits in virtual time.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt as _, future::join_all};
use http::Request;
use http_body_util::Full;
use tokio::time::Instant;
use tollgate_limit::{CheckId, DecidedBy, Decision, Nanos, Verdict};

use super::{MAX_WAITERS, Waiting};
use crate::{
    fakes::{ALLOWED, REFUSED},
    http::tests::Tester,
};

const CHECK: &str = "{\"policy\":\"api\",\"attributes\":{\"api_key\":\"k\"}}";
const LATER: &str = "{\"policy\":\"later\",\"attributes\":{\"ip\":\"k\"}}";

fn after(millis: u64) -> Verdict {
    Verdict {
        delay: Nanos::from_millis(millis),
        ..ALLOWED
    }
}

#[expect(clippy::disallowed_methods, reason = "a clock that stands still")]
fn now() -> Instant {
    Instant::now()
}

/// Milliseconds that an answer took, and the delay that it tells.
async fn ask(tester: &Tester, query: &str, body: &str) -> (u64, u64) {
    let asked = now();
    let answer = tester
        .post(&format!("/v1/check{query}"), body.to_owned())
        .await;
    assert_eq!(answer.status, 200);
    let took = u64::try_from(asked.elapsed().as_millis()).unwrap();
    (took, answer.json()["delay_ms"].as_u64().unwrap())
}

#[tokio::test(start_paused = true)]
async fn an_answer_waits_for_as_long_as_the_request_should() {
    let tester = Tester::new();
    for (delay, waited, left) in [
        (0, 0, 0),
        (1, 1, 0),
        (2500, 2500, 0),
        (5000, 5000, 0),
        (7300, 5000, 2300),
    ] {
        tester
            .checker
            .can("per-key", after(delay), DecidedBy::Owner);
        assert_eq!(ask(&tester, "?wait=true", CHECK).await, (waited, left));
        for query in ["", "?wait=false", "?wait", "?await=true", "?a=b"] {
            assert_eq!(ask(&tester, query, CHECK).await, (0, delay), "{query}");
        }
    }
    tester.checker.can("far", after(700), DecidedBy::Owner);
    tester.checker.gate.add_permits(1);
    assert_eq!(ask(&tester, "?a=b&wait=true", LATER).await, (700, 0));
}

#[tokio::test(start_paused = true)]
async fn what_is_left_is_told_as_it_is_after_the_wait() {
    let tester = Tester::new();
    tester.checker.can("per-key", after(2500), DecidedBy::Owner);
    let answer = tester.post("/v1/check?wait=true", CHECK).await.json();
    assert_eq!(answer["reset_after_ms"], 57_500);
    assert_eq!(answer["limits"][0]["reset_after_ms"], 57_500);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_does_not_wait() {
    let tester = Tester::new();
    let refused = Verdict {
        delay: Nanos::from_millis(900),
        ..REFUSED
    };
    tester.checker.can("per-key", refused, DecidedBy::Owner);
    let asked = now();
    let answer = tester.post("/v1/check?wait=true", CHECK).await;
    assert_eq!(
        (answer.status.as_u16(), asked.elapsed()),
        (429, Duration::ZERO)
    );
}

#[tokio::test]
async fn a_wait_that_is_none_is_told_before_anything_is_counted() {
    let tester = Tester::new();
    let answer = tester.post("/v1/check?wait=yes", CHECK).await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.json()["field"], "wait");
    assert_eq!(tester.checker.used(), 0);
}

async fn decision(tester: &Tester) -> Decision {
    tester.checker.can("per-key", after(1000), DecidedBy::Owner);
    let limits = vec![tester.checker.decided("api", "per-key")];
    let id = CheckId { boot: 0, number: 0 };
    std::future::ready(Decision { id, limits }).await
}

#[tokio::test(start_paused = true)]
async fn who_finds_no_place_is_answered_at_once() {
    let (tester, waiting) = (Tester::new(), Waiting::at_most(2));
    let start = now();
    let hold = async || {
        let mut held = decision(&tester).await;
        waiting.hold(&mut held, Duration::from_secs(5)).await;
        (start.elapsed().as_millis(), held.delay().ceil_millis())
    };
    let told = join_all([hold(), hold(), hold()]).await;
    assert_eq!(told, [(1000, 0), (1000, 0), (0, 1000)]);
    // Places are given back, also of those who do not stay.
    for _ in 0..4 {
        assert_eq!(hold().now_or_never(), None);
    }
    assert_eq!(hold().await, (2000, 0));
    assert_eq!(Waiting::default().0.available_permits(), MAX_WAITERS);
}

#[tokio::test(start_paused = true)]
async fn a_query_takes_nothing_from_a_request_that_is_no_check() {
    let tester = Tester::new();
    let request = Request::get("/v1/check?wait=true");
    let answer = tester.send(request.body(Full::<Bytes>::default()).unwrap());
    assert_eq!(answer.await.status, 405);
}
