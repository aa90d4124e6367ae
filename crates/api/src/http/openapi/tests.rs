//! The document is what it claims to be, and tells what is so: of calls, bodies and answers, in both directions.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tollgate_limit::{DecidedBy, Nanos, Outcome, Reason, Verdict};

use super::held::{SAID, faults};
use crate::{
    fakes::{ALLOWED, REFUSED},
    http::{tally::Call, tests::Tester},
};

fn names(value: &Value) -> BTreeSet<String> {
    let members = value.as_object().unwrap_or_else(|| panic!("{value}"));
    members.keys().cloned().collect()
}

fn properties(schema: &str) -> BTreeSet<String> {
    names(&SAID["components"]["schemas"][schema]["properties"])
}

/// The official schema of the documents, then that of their schemas.
#[tokio::test]
async fn the_document_is_valid_and_served() {
    let answer = Tester::new().get("/openapi.json").await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let served = answer.json();
    assert_eq!(served, *SAID);
    let official = include_str!("tests/openapi-3.1.json");
    let official: Value = serde_json::from_str(official).unwrap();
    let validator = jsonschema::draft202012::new(&official).unwrap();
    let wrong: Vec<_> = validator.iter_errors(&served).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    for (name, schema) in served["components"]["schemas"].as_object().unwrap() {
        if let Err(wrong) = jsonschema::draft202012::meta::validate(schema) {
            panic!("{name}: {wrong}");
        }
        if let Some(example) = schema.get("example") {
            assert_eq!(faults(name, example), [""; 0], "the example of {name}");
        }
    }
    let mut broken = served;
    broken["paths"]["/v1/check"]["post"]["responses"]["200"] = json!({"says": "no description"});
    assert!(!validator.is_valid(&broken), "the validator sees faults");
}

#[test]
fn every_reference_has_a_target_and_every_operation_its_own_id() {
    let mut ids = BTreeSet::new();
    let mut open = vec![&*SAID];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => open.extend(members.values()),
            Value::Array(elements) => open.extend(elements),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(SAID.pointer(pointer).is_some(), "{reference}");
        }
        if let Some(id) = value.get("operationId").and_then(Value::as_str) {
            assert!(ids.insert(id), "{id} stands twice");
        }
    }
    assert!(ids.contains("postV1Check") && ids.contains("headV1ForwardAuthPolicy"));
}

#[tokio::test]
async fn every_call_is_told_and_every_told_call_is_one() {
    let paths = names(&SAID["paths"]);
    for call in Call::ALL {
        let path = match call {
            Call::Unknown => continue,
            Call::ForwardAuth => "/v1/forward-auth/{policy}",
            Call::Check
            | Call::Checks
            | Call::Reserve
            | Call::Settle
            | Call::Refund
            | Call::Report
            | Call::Acquire
            | Call::Release
            | Call::Cluster
            | Call::Keys
            | Call::KillSwitch
            | Call::ShadowSwitch
            | Call::Livez
            | Call::Readyz
            | Call::Metrics
            | Call::OpenApi => call.path(),
        };
        assert!(paths.contains(path), "{path} is not told");
    }
    let tester = Tester::new();
    for (path, methods) in SAID["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let request = http::Request::builder()
                .method(method.to_ascii_uppercase().as_str())
                .uri(path.replace("{policy}", "api"))
                .header("Host", "localhost");
            let request = request.body(http_body_util::Full::default()).unwrap();
            let status = tester.send(request).await.status.as_u16();
            assert!(![404, 405].contains(&status), "{method} {path}: {status}");
        }
    }
}

const CHECK: &str = "{\"policy\": \"api\", \"attributes\": {\"api_key\": \"k\", \"n\": 1.5, \"t\": true}, \"cost\": 3}";
/// Together they have every field.
const CHECKS: [&str; 3] = [
    CHECK,
    "{\"attributes\": {}, \"cost\": 9007199254740992, \"peek\": true}",
    "{\"limit\": {\"name\": \"l\", \"limit\": 5, \"window\": \"1m\"}, \"key\": {\"a\": 1}}",
];

/// The same of limits.
fn limits() -> [Value; 7] {
    [
        json!({"name": "l", "limit": 5, "window": "1h30m", "algorithm": "sliding-window", "slices": 60,
               "hard": true, "fallback": "local", "share": "fair", "shadow": true}),
        json!({"name": "l", "limit": 5, "window": "1m", "algorithm": "sliding-log", "fallback": "deny"}),
        json!({"name": "l", "limit": 5, "window": "1m", "algorithm": "fixed-window", "fallback": "allow"}),
        json!({"name": "l", "limit": 5, "calendar": "day", "time_zone": "Europe/Berlin",
               "algorithm": "fixed-window"}),
        json!({"name": "l", "limit": 5, "window": "1m", "algorithm": "token-bucket", "burst": 9}),
        json!({"name": "l", "limit": 5, "window": "1m", "algorithm": "leaky-bucket", "queue": 9}),
        json!({"name": "l", "limit": 5, "ttl": "30s", "algorithm": "concurrency"}),
    ]
}

#[tokio::test]
async fn every_told_field_is_read() {
    let tester = Tester::new();
    let (mut check, mut limit) = (BTreeSet::new(), BTreeSet::new());
    for body in CHECKS {
        let parsed: Value = serde_json::from_str(body).unwrap();
        assert_eq!(faults("Check", &parsed), [""; 0], "{body}");
        let answer = tester.check(body).await;
        assert_eq!(answer.status, 200, "{body}: {}", answer.text);
        let list = format!("{{\"checks\": [{body}]}}");
        let parsed_list = serde_json::from_str(&list).unwrap();
        assert_eq!(faults("Checks", &parsed_list), [""; 0]);
        assert_eq!(tester.post("/v1/checks", list).await.status, 200);
        check.extend(names(&parsed));
    }
    for one in limits() {
        limit.extend(names(&one));
        let body = json!({"limit": one, "key": {"a": 1}});
        assert_eq!(faults("Check", &body), [""; 0], "{body}");
        let answer = tester.post("/v1/acquire", body.to_string()).await;
        assert_eq!(answer.status, 200, "{body}: {}", answer.text);
    }
    assert_eq!(check, properties("Check"));
    assert_eq!(limit, properties("Limit"));
    let id = tester.check(CHECK).await.json()["id"].clone();
    let permits = "{\"policy\": \"permits\", \"attributes\": {\"ip\": 1}}";
    let permits = tester.post("/v1/acquire", permits).await.json();
    for (path, schema, body) in [
        (
            "settle",
            "Settle",
            json!({"id": id, "cost": 1, "attributes": {"tokens": 350}}),
        ),
        ("refund", "RefundById", json!({"id": id})),
        ("report", "Report", json!({"id": id, "outcome": "failure"})),
        (
            "release",
            "Release",
            json!({"permit_id": permits["permit_id"]}),
        ),
    ] {
        assert_eq!(names(&body), properties(schema));
        assert_eq!(faults(schema, &body), [""; 0], "{body}");
        let answer = tester.post(&format!("/v1/{path}"), body.to_string()).await;
        assert_eq!(answer.status, 200, "{body}: {}", answer.text);
    }
    for path in ["/v1/switches/kill", "/v1/switches/shadow"] {
        let body = json!({"on": true});
        assert_eq!(names(&body), properties("Switch"));
        assert_eq!(faults("Switch", &body), [""; 0]);
        assert_eq!(tester.put(path, body.to_string()).await.status, 200);
    }
    for body in [json!({"id": id}), serde_json::from_str(CHECK).unwrap()] {
        assert_eq!(faults("Refund", &body), [""; 0], "{body}");
        assert_eq!(
            tester.post("/v1/refund", body.to_string()).await.status,
            200
        );
    }
}

/// An unknown field is answered with all that are known.
#[tokio::test]
async fn every_read_field_is_told() {
    let tester = Tester::new();
    for (path, body, schema) in [
        ("/v1/check", "{\"zzz\": 1}", "Check"),
        ("/v1/acquire", "{\"limit\": {\"zzz\": 1}}", "Limit"),
        ("/v1/checks", "{\"zzz\": 1}", "Checks"),
        ("/v1/settle", "{\"zzz\": 1}", "Settle"),
        ("/v1/refund", "{\"id\": \"a\", \"zzz\": 1}", "RefundById"),
        ("/v1/refund", "{\"zzz\": 1}", "Check"),
        ("/v1/report", "{\"zzz\": 1}", "Report"),
        ("/v1/release", "{\"zzz\": 1}", "Release"),
        ("/v1/switches/kill", "{\"zzz\": 1}", "Switch"),
        ("/v1/switches/shadow", "{\"zzz\": 1}", "Switch"),
    ] {
        let answer = if path.starts_with("/v1/switches/") {
            tester.put(path, body).await.json()
        } else {
            tester.post(path, body).await.json()
        };
        let known = answer["expected"].as_str().unwrap();
        let known: BTreeSet<_> = known
            .split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect();
        assert_eq!(known, properties(schema), "{schema}");
    }
}

/// What the document forbids is refused.
#[tokio::test]
async fn a_body_that_the_document_forbids_is_refused() {
    let tester = Tester::new();
    let of_policy = [
        ("cost", json!("1")),
        ("cost", json!(-1)),
        ("cost", json!(1.5)),
        ("cost", json!(9_007_199_254_740_993_u64)),
        ("policy", json!(7)),
        ("policy", json!(null)),
        ("peek", json!("yes")),
        ("attributes", json!([])),
        ("attributes", json!({"a": null})),
        ("attributes", json!({"a": {}})),
        ("attributes", json!({"a": "x".repeat(1025)})),
        ("zzz", json!(1)),
    ];
    for (field, value) in of_policy {
        let mut body = json!({});
        body[field] = value;
        refused(&tester, &body).await;
    }
    for (field, value) in [
        ("name", json!("a b")),
        ("name", json!("")),
        ("limit", json!(-1)),
        ("window", json!("1 m")),
        ("window", json!(60)),
        ("window", json!("m")),
        ("slices", json!(0)),
        ("slices", json!(61)),
        ("hard", json!(1)),
        ("algorithm", json!("gcra")),
        ("fallback", json!("open")),
        ("share", json!("half")),
        ("zzz", json!(1)),
    ] {
        let mut body = json!({"limit": {"name": "l", "limit": 5, "window": "1m"}, "key": {"a": 1}});
        assert_eq!(faults("Check", &body), [""; 0]);
        body["limit"][field] = value;
        refused(&tester, &body).await;
    }
    for field in ["name", "limit"] {
        let mut body = json!({"limit": {"name": "l", "limit": 5, "window": "1m"}, "key": {"a": 1}});
        body["limit"].as_object_mut().unwrap().remove(field);
        refused(&tester, &body).await;
    }
    assert_eq!(tester.checker.used(), 0);
}

async fn refused(tester: &Tester, body: &Value) {
    assert_ne!(faults("Check", body), [""; 0], "{body} is not forbidden");
    let answer = tester.check(&body.to_string()).await;
    assert_eq!(answer.status, 400, "{body}: {}", answer.text);
}

#[test]
fn the_names_of_the_code_are_the_names_of_the_document() {
    let told = |schema: &str| SAID["components"]["schemas"][schema]["enum"].clone();
    assert_eq!(told("Reason"), json!(Reason::ALL.map(Reason::as_str)));
    let deciders = [
        DecidedBy::Owner,
        DecidedBy::Standby,
        DecidedBy::Cached,
        DecidedBy::Fallback,
        DecidedBy::Switch,
    ];
    assert_eq!(told("DecidedBy"), json!(deciders.map(DecidedBy::as_str)));
}

/// Every answer of every test is held to the document; here is every member that it tells of.
#[tokio::test]
async fn every_told_member_of_an_answer_is_written() {
    let tester = Tester::new();
    let said = |outcome, retry_after| Verdict {
        outcome: Outcome::Refuse(outcome),
        retry_after,
        ..REFUSED
    };
    let body = CHECK;
    let mut answers = vec![tester.check("{}").await];
    for verdict in [
        ALLOWED,
        said(Reason::LimitExceeded, Some(Nanos::from_millis(1))),
        said(Reason::CostExceedsLimit, None),
        said(Reason::LimitIsZero, None),
        said(Reason::Undecided, None),
        said(Reason::QueueFull, Some(Nanos::from_millis(1))),
        said(Reason::SetAside, None),
        said(Reason::Banned, Some(Nanos::from_millis(1))),
    ] {
        tester.checker.can("per-key", verdict, DecidedBy::Owner);
        answers.push(tester.check(body).await);
    }
    let list = format!("{{\"checks\": [{body}, {{\"cost\": -1}}, {{}}]}}");
    let list = tester.post("/v1/checks", list).await.json();
    assert_eq!(list["results"].as_array().map(Vec::len), Some(3));
    let answers: Vec<_> = answers
        .iter()
        .map(super::super::tests::Answer::json)
        .collect();
    let all = |instances: &[&Value]| {
        let names = instances.iter().map(|instance| names(instance));
        names.fold(BTreeSet::new(), |all, names| &all | &names)
    };
    let permits = "{\"policy\": \"permits\", \"attributes\": {\"ip\": 1}}";
    let permits = tester.post("/v1/acquire", permits).await.json();
    let decisions: Vec<_> = answers.iter().chain([&permits]).collect();
    assert_eq!(all(&decisions), properties("Decision"));
    let limits = answers.iter().map(|answer| &answer["limits"][0]);
    let limits: Vec<_> = limits.filter(|limit| !limit.is_null()).collect();
    assert_eq!(all(&limits), properties("LimitState"));
    let faulty = &list["results"][1];
    assert_eq!(all(&[faulty]), properties("FaultyCheck"));
    assert_eq!(all(&[&faulty["error"]]), properties("Problem"));
    tester.checker.can("per-key", ALLOWED, DecidedBy::Fallback);
    let local = tester.check(body).await.json()["id"].clone();
    let pending = tester
        .post("/v1/refund", json!({"id": local}).to_string())
        .await
        .json();
    let release = json!({"permit_id": permits["permit_id"]}).to_string();
    let release = tester.post("/v1/release", release).await.json();
    assert_eq!(all(&[&pending, &release]), properties("Amended"));
    assert_eq!(all(&[&pending["limits"][0]]), properties("AmendedLimit"));
    let cluster = tester.get("/v1/cluster").await.json();
    assert_eq!(all(&[&cluster]), properties("Cluster"));
    assert_eq!(all(&[&cluster["members"][0]]), properties("Member"));
    assert_eq!(all(&[&cluster["motion"]]), properties("Motion"));
    assert_eq!(all(&[&cluster["switches"]]), properties("Switches"));
    let counter = tester
        .get("/v1/keys?policy=api&limit=per-key&attr.api_key=k")
        .await;
    let told = &SAID["components"]["schemas"]["Counter"]["allOf"][1]["properties"];
    assert_eq!(
        names(&counter.json()),
        &names(told) | &properties("LimitState")
    );
}
