//! The calls that act on a check after it was answered, over three real processes: each for a key of
//! another node, and at a third.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Answered, Dev, DevOptions, Node, PATIENT, until};

/// How long a message between nodes may take on a busy machine.
const SOON: Duration = Duration::from_secs(10);

const POLICIES: &str = r#"
[[limit]]
policy = "api"
name = "per-key"
key = ["api_key"]
limit = 100
window = "1h"

[[limit]]
policy = "llm"
name = "requests"
key = ["api_key"]
limit = 10
window = "1h"

[[limit]]
policy = "llm"
name = "tokens"
key = ["api_key"]
limit = 1000
window = "1h"
cost = "tokens"

[[limit]]
policy = "jobs"
name = "at-once"
key = ["api_key"]
algorithm = "concurrency"
limit = 2
ttl = "1h"

[[limit]]
policy = "login"
name = "failures"
key = ["user"]
algorithm = "sliding-log"
limit = 5
window = "10m"
count = "failures"
ban = { for = "1h", escalate = 2.0, max = "24h" }
"#;

fn start() -> Dev {
    Dev::start(&DevOptions {
        nodes: 3,
        policies: POLICIES,
        more: &PATIENT,
    })
}

fn post(node: &mut Node, path: &str, body: &Value) -> Answered {
    node.post(path, body.to_string()).unwrap()
}

/// A value of the key attribute that another node owns than the first.
fn owned_elsewhere(node: &mut Node, (policy, limit, attribute): (&str, &str, &str)) -> String {
    let found = (0..200)
        .map(|number| format!("{attribute}-{number}"))
        .find(|value| {
            let path = format!("/v1/keys?policy={policy}&limit={limit}&attr.{attribute}={value}");
            let state = node.get(&path).unwrap();
            assert_eq!(state.status, 200, "{}", state.text);
            state.body["owner"] != "n1"
        });
    found.unwrap_or_else(|| panic!("n1 owns 200 keys"))
}

fn used(node: &mut Node, (policy, limit, attribute): (&str, &str, &str), value: &str) -> u64 {
    let path = format!("/v1/keys?policy={policy}&limit={limit}&attr.{attribute}={value}");
    let state = node.get(&path).unwrap();
    state.body["used"]
        .as_u64()
        .unwrap_or_else(|| panic!("{}", state.text))
}

#[test]
fn a_charge_is_refunded_once_and_at_any_node() {
    const PER_KEY: (&str, &str, &str) = ("api", "per-key", "api_key");
    let cluster = start();
    let (mut first, mut third) = (cluster.node(0), cluster.node(2));
    let key = owned_elsewhere(&mut first, PER_KEY);
    let check = json!({ "policy": "api", "attributes": { "api_key": key }, "cost": 30 });
    let answer = post(&mut first, "/v1/check", &check);
    let kept = post(&mut first, "/v1/check", &check);
    assert!(answer.is_allowed() && kept.is_allowed());
    let id = json!({ "id": answer.body["id"] });
    let refund = post(&mut third, "/v1/refund", &id);
    assert_eq!(refund.status, 200, "{}", refund.text);
    assert_eq!(refund.body["limits"][0]["used"], 30, "{}", refund.text);
    let again = post(&mut first, "/v1/refund", &id);
    assert_eq!(again.status, 409, "{}", again.text);
    assert_eq!(used(&mut first, PER_KEY, &key), 30);
    let made_up = post(&mut first, "/v1/refund", &json!({ "id": "bm90IGFuIGlk" }));
    assert_eq!(made_up.status, 404, "{}", made_up.text);
    // Without an id: the oldest first, at most down to nothing.
    let refund = post(&mut first, "/v1/refund", &check);
    assert_eq!(refund.status, 200, "{}", refund.text);
    assert_eq!(used(&mut third, PER_KEY, &key), 0);
    let refund = post(&mut first, "/v1/refund", &check);
    assert_eq!(refund.status, 200, "{}", refund.text);
    assert_eq!(used(&mut third, PER_KEY, &key), 0);
}

#[test]
fn a_reservation_is_settled_once() {
    const REQUESTS: (&str, &str, &str) = ("llm", "requests", "api_key");
    const TOKENS: (&str, &str, &str) = ("llm", "tokens", "api_key");
    let cluster = start();
    let (mut first, mut second) = (cluster.node(0), cluster.node(1));
    let key = owned_elsewhere(&mut first, TOKENS);
    let reserve = |tokens: u64| json!({ "policy": "llm", "attributes": { "api_key": key, "tokens": tokens } });
    let less = post(&mut first, "/v1/reserve", &reserve(400));
    assert!(less.is_allowed(), "{}", less.text);
    assert_eq!(used(&mut second, TOKENS, &key), 400);
    let settle = json!({ "id": less.body["id"], "attributes": { "tokens": 300 } });
    let settled = post(&mut second, "/v1/settle", &settle);
    assert_eq!(settled.status, 200, "{}", settled.text);
    assert_eq!(used(&mut first, TOKENS, &key), 300);
    assert_eq!(used(&mut first, REQUESTS, &key), 1);
    let again = post(&mut first, "/v1/settle", &settle);
    assert_eq!(again.status, 409, "{}", again.text);
    assert_eq!(used(&mut first, TOKENS, &key), 300);
    // More than was reserved, and more than there is: a debt.
    let more = post(&mut first, "/v1/reserve", &reserve(100));
    let settle = json!({ "id": more.body["id"], "attributes": { "tokens": 1500 } });
    let settled = post(&mut first, "/v1/settle", &settle);
    assert_eq!(settled.status, 200, "{}", settled.text);
    let state = settled.body["limits"][0].clone();
    assert_eq!(
        (&state["used"], &state["remaining"]),
        (&1800.into(), &0.into()),
        "{}",
        settled.text
    );
    let refused = post(&mut second, "/v1/reserve", &reserve(1));
    assert_eq!(refused.status, 429, "{}", refused.text);
    assert_eq!(refused.body["denied_by"], json!(["tokens"]));
    // A refusal consumes nothing: what another owner was charged goes back within a round trip (P4).
    until("the request goes back", SOON, || {
        (used(&mut first, REQUESTS, &key) == 2).then_some(())
    });
}

#[test]
fn permits_are_released_at_any_node_and_once() {
    let cluster = start();
    let mut nodes = [0, 1, 2].map(|number| cluster.node(number));
    let key = owned_elsewhere(&mut nodes[0], ("jobs", "at-once", "api_key"));
    let ask = json!({ "policy": "jobs", "attributes": { "api_key": key } });
    let check = post(&mut nodes[0], "/v1/check", &ask);
    assert_eq!(check.status, 400, "{}", check.text);
    assert!(check.text.contains("acquire"), "{}", check.text);
    let one = post(&mut nodes[0], "/v1/acquire", &ask);
    let two = post(&mut nodes[1], "/v1/acquire", &ask);
    assert!(
        one.is_allowed() && two.is_allowed(),
        "{} {}",
        one.text,
        two.text
    );
    let refused = post(&mut nodes[2], "/v1/acquire", &ask);
    assert_eq!(refused.status, 429, "{}", refused.text);
    assert!(refused.body["permit_id"].is_null());
    let permit = json!({ "permit_id": one.body["permit_id"] });
    for node in &mut nodes {
        let release = post(node, "/v1/release", &permit);
        assert_eq!(release.status, 200, "{}", release.text);
    }
    assert!(post(&mut nodes[2], "/v1/acquire", &ask).is_allowed());
    let third = post(&mut nodes[0], "/v1/acquire", &ask);
    assert_eq!(third.status, 429, "never a third slot: {}", third.text);
}

#[test]
fn reported_failures_ban_everywhere_until_a_reset() {
    let cluster = start();
    let mut nodes = [0, 1, 2].map(|number| cluster.node(number));
    let user = owned_elsewhere(&mut nodes[0], ("login", "failures", "user"));
    let check = json!({ "policy": "login", "attributes": { "user": user } });
    for attempt in 0..5 {
        let node = &mut nodes[attempt % 3];
        let answer = post(node, "/v1/check", &check);
        assert!(answer.is_allowed(), "{attempt}: {}", answer.text);
        let report = json!({ "id": answer.body["id"], "outcome": "failure" });
        let reported = post(node, "/v1/report", &report);
        assert_eq!(reported.status, 200, "{}", reported.text);
    }
    for node in &mut nodes {
        let refused = post(node, "/v1/check", &check);
        assert_eq!(
            (refused.status.as_u16(), &refused.body["reason"]),
            (429, &"banned".into())
        );
        assert!(
            refused.headers.contains_key("retry-after"),
            "{}",
            refused.text
        );
    }
    let path = format!("/v1/keys?policy=login&limit=failures&attr.user={user}");
    let state = nodes[2].get(&path).unwrap();
    assert_eq!(state.body["reason"], "banned", "{}", state.text);
    let deleted = nodes[1].call(tollgate::http_client::Call {
        method: http::Method::DELETE,
        path: &path,
        token: None,
        body: Vec::new(),
    });
    let deleted = deleted.unwrap();
    assert!(deleted.status.is_success(), "{}", deleted.text);
    for node in &mut nodes {
        // What a node remembers of a refusal is over within a second.
        let answer = until("the reset is in force", Duration::from_secs(1), || {
            let answer = post(node, "/v1/check", &check);
            answer.is_allowed().then_some(answer)
        });
        // A success gives back what the check charged.
        let report = json!({ "id": answer.body["id"], "outcome": "success" });
        assert_eq!(post(node, "/v1/report", &report).status, 200);
        let again = post(node, "/v1/report", &report);
        assert_eq!(again.status, 409, "{}", again.text);
    }
    assert_eq!(used(&mut nodes[0], ("login", "failures", "user"), &user), 0);
}
