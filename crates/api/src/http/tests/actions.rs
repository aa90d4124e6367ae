//! Reserve, settle, refund, report: what is done with a check after it was answered.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tollgate_limit::{Action, ActionError, Cost, DecidedBy, Ending, Settling};

use super::{Answer, Tester};
use crate::fakes::{ALLOWED, REFUSED};

const CHECK: &str = "{\"policy\":\"api\",\"attributes\":{\"api_key\":\"k1\"},\"cost\":3}";

impl Tester {
    /// The id of a check of that call.
    async fn id_of(&self, call: &str, body: &'static str) -> String {
        let answer = self.post(call, body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    fn acted(&self) -> Vec<Action> {
        let acts = self.checker.acts.lock().unwrap();
        acts.iter().map(|(_, action)| action.clone()).collect()
    }
}

fn entry() -> Value {
    json!({
        "name": "per-key", "algorithm": "sliding-window", "limit": 100, "used": 1, "remaining": 99,
        "reset_after_ms": 60000, "node": "n2"
    })
}

#[tokio::test]
async fn a_reservation_is_answered_like_a_check() {
    let tester = Tester::new();
    let answer = tester.post("/v1/reserve", CHECK).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("x-ratelimit-remaining"), Some("97"));
    assert!(answer.header("ratelimit").is_some());
    assert_eq!(answer.json()["limits"][0]["used"], 3);
    assert_eq!(
        tester.open(&answer.json()["id"]).items[0]
            .charge
            .cost
            .units(),
        3
    );
    tester.checker.can("per-key", REFUSED, DecidedBy::Owner);
    let answer = tester.post("/v1/reserve", CHECK).await;
    assert_eq!(answer.status, 429);
    assert_eq!(answer.header("retry-after"), Some("2"));
    let jobs = "{\"policy\":\"jobs\",\"attributes\":{\"ip\":\"a\"}}";
    let answer = tester.post("/v1/reserve", jobs).await.json();
    assert!(
        answer.get("permit_id").is_none(),
        "a reservation takes no permit"
    );
}

#[tokio::test]
async fn what_is_done_with_an_id_is_told_with_the_state_behind_it() {
    let cost = |units| Some(Cost::new(units).unwrap());
    let settling = |cost, attributes| Action::Settle(Settling { cost, attributes });
    let tokens = vec![("tokens".to_owned(), Cost::new(350).unwrap())];
    for (path, more, right) in [
        ("/v1/settle", ",\"cost\":7", settling(cost(7), vec![])),
        ("/v1/settle", ",\"cost\":0", settling(cost(0), vec![])),
        (
            "/v1/settle",
            ",\"attributes\":{\"tokens\":350}",
            settling(None, tokens.clone()),
        ),
        (
            "/v1/settle",
            ",\"attributes\":{\"tokens\":\"350\"}",
            settling(None, tokens.clone()),
        ),
        (
            "/v1/settle",
            ",\"cost\":1,\"attributes\":{\"tokens\":350}",
            settling(cost(1), tokens),
        ),
        ("/v1/refund", "", Action::Refund),
        (
            "/v1/report",
            ",\"outcome\":\"success\"",
            Action::Report(Ending::Success),
        ),
        (
            "/v1/report",
            ",\"outcome\":\"failure\"",
            Action::Report(Ending::Failure),
        ),
    ] {
        let tester = Tester::new();
        let id = tester.id_of("/v1/reserve", CHECK).await;
        let answer = tester.post(path, format!("{{\"id\":{id:?}{more}}}")).await;
        assert_eq!(answer.status, 200, "{path}{more}: {}", answer.text);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(
            answer.json(),
            json!({"id": id, "limits": [entry()]}),
            "{path}{more}"
        );
        let acts = tester.checker.acts.lock().unwrap();
        let [(receipt, action)] = acts.as_slice() else {
            panic!("{acts:?}")
        };
        assert_eq!(action, &right, "{path}{more}");
        assert_eq!(
            (receipt.items.len(), receipt.items[0].charge.cost.units()),
            (1, 3)
        );
    }
}

#[tokio::test]
async fn what_the_owner_has_not_told_is_pending() {
    let tester = Tester::new();
    tester.checker.can("per-key", ALLOWED, DecidedBy::Fallback);
    let id = tester.id_of("/v1/check", CHECK).await;
    let answer = tester
        .post("/v1/refund", format!("{{\"id\":{id:?}}}"))
        .await;
    let pending = json!({
        "name": "per-key", "algorithm": "sliding-window", "limit": 100, "used": null,
        "remaining": null, "reset_after_ms": null, "node": null, "pending": true
    });
    assert_eq!(answer.json(), json!({"id": id, "limits": [pending]}));
}

#[tokio::test]
async fn a_refund_without_an_id_is_about_such_a_check() {
    let tester = Tester::new();
    let answer = tester.post("/v1/refund", CHECK).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json(), json!({"limits": [entry()]}));
    let limit = "{\"name\":\"login\",\"limit\":5,\"window\":\"1m\"}";
    let inline = format!("{{\"limit\":{limit},\"key\":{{\"user\":42}}}}");
    assert_eq!(tester.post("/v1/refund", inline).await.status, 200);
    // Nothing is given back for nothing: a cost of 0 is no peek here.
    let none = CHECK.replace('3', "0");
    assert_eq!(tester.post("/v1/refund", none).await.status, 200);
    let refunds = tester.checker.refunds.lock().unwrap().clone();
    let right = [("per-key", 3), ("login", 1), ("per-key", 0)];
    assert_eq!(refunds, right.map(|(name, cost)| (name.to_owned(), cost)));
    assert_eq!(
        tester.checker.taken.load(Ordering::Relaxed),
        0,
        "no check was made"
    );
    assert!(tester.acted().is_empty());
}

#[tokio::test]
async fn a_refund_of_permits_alone_names_what_gives_them_back() {
    let tester = Tester::new();
    let body = "{\"policy\":\"permits\",\"attributes\":{\"ip\":\"a\"}}";
    let answer = tester.post("/v1/refund", body).await;
    assert_eq!(answer.status, 400);
    let problem = answer.json();
    assert_eq!(problem["field"], "policy");
    let expected = problem["expected"].as_str().unwrap();
    assert!(expected.contains("/v1/release"), "{expected}");
}

#[tokio::test]
async fn a_fault_of_an_action_has_its_status() {
    for (error, status, words) in [
        (
            ActionError::Used,
            409,
            "the id was used before: what was done with it then stands",
        ),
        (ActionError::Unknown, 404, "not known"),
        (
            ActionError::Nothing { action: "settle" },
            400,
            "nothing to settle",
        ),
    ] {
        let tester = Tester::new();
        let id = tester.id_of("/v1/check", CHECK).await;
        *tester.checker.fails.lock().unwrap() = Some(error);
        let body = format!("{{\"id\":{id:?},\"cost\":3}}");
        let answer = tester.post("/v1/settle", body).await;
        assert_eq!(answer.status, status, "{}", answer.text);
        assert_eq!(
            answer.header("content-type"),
            Some("application/problem+json")
        );
        let problem = answer.json();
        assert_eq!(
            (&problem["field"], &problem["status"]),
            (&json!("id"), &json!(status))
        );
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(words), "{detail}");
    }
}

#[tokio::test]
async fn a_text_that_is_no_receipt_is_unknown() {
    let tester = Tester::new();
    let id = tester.id_of("/v1/check", CHECK).await;
    let changed = format!(
        "{}{}",
        if id.starts_with('A') { 'B' } else { 'A' },
        &id[1..]
    );
    let other_call = "000000000000b0070000000000000000".to_owned();
    let longest = "A".repeat(1 << 19);
    for id in [
        String::new(),
        "nonsense".to_owned(),
        changed,
        other_call,
        longest,
    ] {
        for (path, field, more) in [
            ("/v1/settle", "id", ",\"cost\":1"),
            ("/v1/refund", "id", ""),
            ("/v1/report", "id", ",\"outcome\":\"success\""),
            ("/v1/release", "permit_id", ""),
        ] {
            let body = format!("{{\"{field}\":{id:?}{more}}}");
            let answer: Answer = tester.post(path, body).await;
            assert_eq!(answer.status, 404, "{path} {id:.40}: {}", answer.text);
            assert_eq!(answer.json()["field"], field, "{path} {id:.40}");
        }
    }
    assert!(tester.acted().is_empty());
}

/// Call, body with `ID` for a good id, the field at fault, and words of what is right.
type Broken = (&'static str, &'static str, &'static str, &'static str);

const BROKEN: [Broken; 36] = [
    ("settle", "", "body", "\"cost\""),
    ("settle", "[]", "body", "JSON object"),
    ("settle", "{\"id\":ID", "body", "JSON object"),
    ("settle", "{\"cost\":1}", "id", "`id`"),
    ("settle", "{\"id\":7,\"cost\":1}", "id", "string"),
    ("settle", "{\"id\":ID}", "cost", "`attributes`"),
    (
        "settle",
        "{\"id\":ID,\"attributes\":{}}",
        "cost",
        "`attributes`",
    ),
    (
        "settle",
        "{\"id\":ID,\"cost\":-1}",
        "cost",
        "9007199254740992",
    ),
    ("settle", "{\"id\":ID,\"cost\":1.5}", "cost", "whole number"),
    (
        "settle",
        "{\"id\":ID,\"cost\":9007199254740993}",
        "cost",
        "9007199254740992",
    ),
    (
        "settle",
        "{\"id\":ID,\"cost\":1,\"cost\":1}",
        "cost",
        "once",
    ),
    (
        "settle",
        "{\"id\":ID,\"attributes\":[]}",
        "attributes",
        "object",
    ),
    (
        "settle",
        "{\"id\":ID,\"attributes\":{\"tokens\":-1}}",
        "attributes.tokens",
        "from 0",
    ),
    (
        "settle",
        "{\"id\":ID,\"attributes\":{\"tokens\":\"many\"}}",
        "attributes.tokens",
        "whole",
    ),
    (
        "settle",
        "{\"id\":ID,\"attributes\":{\"tokens\":null}}",
        "attributes.tokens",
        "number",
    ),
    (
        "settle",
        "{\"id\":ID,\"cost\":1,\"peek\":true}",
        "peek",
        "`attributes`",
    ),
    (
        "settle",
        "{\"permit_id\":ID,\"cost\":1}",
        "permit_id",
        "`id`",
    ),
    ("refund", "", "body", "JSON object"),
    ("refund", "nonsense", "body", "JSON object"),
    ("refund", "7", "body", "JSON object"),
    ("refund", "{\"id\":null}", "id", "string"),
    ("refund", "{\"id\":ID,\"id\":ID}", "id", "once"),
    ("refund", "{\"id\":ID,\"cost\":1}", "cost", "alone"),
    (
        "refund",
        "{\"policy\":\"api\",\"id\":ID}",
        "policy",
        "alone",
    ),
    ("refund", "{\"cost\":-1}", "cost", "9007199254740992"),
    ("refund", "{\"peek\":true}", "peek", "`peek`"),
    ("refund", "{\"polcy\":\"api\"}", "polcy", "`policy`"),
    (
        "refund",
        "{\"policy\":\"strict\"}",
        "attributes.user",
        "not empty",
    ),
    ("report", "{\"id\":ID}", "outcome", "\"failure\""),
    (
        "report",
        "{\"id\":ID,\"outcome\":\"maybe\"}",
        "outcome",
        "\"success\"",
    ),
    (
        "report",
        "{\"id\":ID,\"outcome\":true}",
        "outcome",
        "\"success\"",
    ),
    ("report", "{\"outcome\":\"success\"}", "id", "`id`"),
    (
        "report",
        "{\"id\":ID,\"outcome\":\"success\",\"cost\":1}",
        "cost",
        "`outcome`",
    ),
    ("release", "{}", "permit_id", "/v1/acquire"),
    ("release", "{\"id\":ID}", "id", "`permit_id`"),
    ("release", "{\"permit_id\":[]}", "permit_id", "string"),
];

#[tokio::test]
async fn every_broken_body_of_an_action_is_told_its_field() {
    let tester = Tester::new();
    let id = tester.id_of("/v1/check", CHECK).await;
    for (path, body, field, right) in BROKEN {
        let body = body.replace("ID", &format!("{id:?}"));
        let answer = tester.post(&format!("/v1/{path}"), body.clone()).await;
        assert_eq!(answer.status, 400, "{path} {body}: {}", answer.text);
        let problem = answer.json();
        assert_eq!(problem["field"], field, "{path} {body}");
        let expected = problem["expected"].as_str().unwrap();
        assert!(expected.contains(right), "{path} {body}: {expected}");
    }
    let unknown = tester.post("/v1/refund", "{\"policy\":\"nope\"}").await;
    assert_eq!(unknown.status, 404);
    assert!(tester.acted().is_empty());
}
