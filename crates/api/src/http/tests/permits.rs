//! Acquire and release.

use serde_json::json;
use tollgate_limit::{Action, DecidedBy};

use super::Tester;
use crate::fakes::REFUSED;

const JOBS: &str = "{\"policy\":\"jobs\",\"attributes\":{\"ip\":\"a\"}}";

#[tokio::test]
async fn an_acquisition_decides_the_whole_policy_and_names_its_permits() {
    let tester = Tester::new();
    let answer = tester.post("/v1/acquire", JOBS).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.header("x-ratelimit-remaining"), Some("1"));
    let said = answer.json();
    let names = [0, 1].map(|place| said["limits"][place]["name"].clone());
    assert_eq!(names, [json!("running"), json!("starts")]);
    let (id, permits) = (tester.open(&said["id"]), tester.open(&said["permit_id"]));
    assert_eq!((id.items.len(), permits.items.len()), (2, 1));
    assert!(permits.items[0].is_permit() && permits.id == id.id);
}

#[tokio::test]
async fn what_takes_no_permit_has_no_permit_id() {
    let tester = Tester::new();
    for body in [
        "{\"policy\":\"api\",\"attributes\":{\"api_key\":\"k\"}}",
        "{\"policy\":\"jobs\"}",
        "{\"policy\":\"jobs\",\"attributes\":{\"ip\":\"a\"},\"peek\":true}",
    ] {
        let answer = tester.post("/v1/acquire", body).await;
        assert_eq!(answer.status, 200);
        assert!(answer.json().get("permit_id").is_none(), "{body}");
    }
    tester.checker.can("starts", REFUSED, DecidedBy::Owner);
    let answer = tester.post("/v1/acquire", JOBS).await;
    assert_eq!(answer.status, 429);
    assert!(answer.json().get("permit_id").is_none());
}

#[tokio::test]
async fn a_check_passes_permits_by() {
    let tester = Tester::new();
    let said = tester.check(JOBS).await.json();
    assert_eq!(said["limits"].as_array().unwrap().len(), 1);
    assert!(said.get("permit_id").is_none());
    let permits = JOBS.replace("jobs", "permits");
    for path in ["/v1/check", "/v1/reserve"] {
        let answer = tester.post(path, permits.clone()).await;
        assert_eq!(answer.status, 400, "{path}");
        let problem = answer.json();
        assert_eq!(problem["field"], "policy", "{path}");
        let expected = problem["expected"].as_str().unwrap();
        assert!(expected.contains("/v1/acquire"), "{expected}");
    }
    let answer = tester.post("/v1/acquire", permits).await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn an_inline_limit_gives_out_permits_too() {
    let tester = Tester::new();
    let limit = "{\"name\":\"l\",\"limit\":1,\"algorithm\":\"concurrency\",\"ttl\":\"30s\"}";
    let body = format!("{{\"limit\":{limit},\"key\":{{\"user\":1}}}}");
    let answer = tester.post("/v1/acquire", body.clone()).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let said = answer.json();
    assert_eq!(said["limits"][0]["algorithm"], "concurrency");
    assert_eq!(said["limits"][0]["window_ms"], 30_000);
    assert_eq!(tester.open(&said["permit_id"]).items.len(), 1);
    assert_eq!(tester.post("/v1/acquire", body.clone()).await.status, 429);
    let problem = tester.check(&body).await;
    assert_eq!(problem.status, 400);
    assert_eq!(problem.json()["field"], "limit.algorithm");
    assert!(problem.text.contains("/v1/acquire"), "{}", problem.text);
}

#[tokio::test]
async fn a_release_gives_permits_back_and_again_is_no_fault() {
    let tester = Tester::new();
    let said = tester.post("/v1/acquire", JOBS).await.json();
    let permit = said["permit_id"].as_str().unwrap();
    let body = format!("{{\"permit_id\":{permit:?}}}");
    let entry = json!({
        "name": "running", "algorithm": "concurrency", "limit": 2, "used": 1, "remaining": 99,
        "reset_after_ms": 60000, "node": "n2"
    });
    for _ in 0..2 {
        let answer = tester.post("/v1/release", body.clone()).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(
            answer.json(),
            json!({"permit_id": permit, "limits": [entry]})
        );
    }
    let acts = tester.checker.acts.lock().unwrap();
    assert!(acts.iter().all(|(_, action)| *action == Action::Release));
    assert_eq!(acts.len(), 2);
}

#[tokio::test]
async fn permits_have_their_own_unit_and_no_window() {
    let answer = Tester::new().post("/v1/acquire", JOBS).await;
    let policy = "\"running\";q=2;qu=\"concurrent-requests\", \"starts\";q=100;w=60";
    assert_eq!(answer.header("ratelimit-policy"), Some(policy));
}
