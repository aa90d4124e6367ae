//! Broken bodies, one by one, and random ones by the thousand.

use http::{Method, Request, StatusCode, header};
use http_body_util::Full;
use proptest::{prelude::*, test_runner::TestRunner};

use super::Tester;

/// Sends `body` and expects this status, this field and these words in what is right.
async fn expect(body: &str, status: u16, field: &str, right: &str) {
    let tester = Tester::new();
    let answer = tester.check(body).await;
    assert_eq!(answer.status.as_u16(), status, "{body}: {}", answer.text);
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json")
    );
    let problem = answer.json();
    assert_eq!(problem["field"], field, "{body}: {problem}");
    assert_eq!(problem["status"], status, "{body}");
    let expected = problem["expected"].as_str().unwrap();
    assert!(
        expected.contains(right),
        "{body}: {expected:?} must say {right:?}"
    );
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.contains(field) && detail.contains(right),
        "{body}: {detail}"
    );
    assert_eq!(tester.checker.used(), 0, "{body} must count nothing");
}

#[tokio::test]
async fn every_broken_body_is_told_its_field() {
    for (body, field, right) in [
        ("", "body", "JSON object"),
        ("  ", "body", "JSON object"),
        ("nonsense", "body", "JSON object"),
        ("{\"policy\":\"api\"", "body", "JSON object"),
        ("{\"policy\":\"api\"}}", "body", "JSON object"),
        ("[]", "body", "JSON object"),
        ("null", "body", "JSON object"),
        ("7", "body", "JSON object"),
        ("{\"polcy\":\"api\"}", "polcy", "`policy`"),
        ("{\"policy\":7}", "policy", "string"),
        ("{\"policy\":null}", "policy", "string"),
        ("{\"policy\":\"api\",\"policy\":\"api\"}", "policy", "once"),
        ("{\"cost\":-1}", "cost", "from 0 to 9007199254740992"),
        ("{\"cost\":9007199254740993}", "cost", "9007199254740992"),
        ("{\"cost\":9223372036854775808}", "cost", "9007199254740992"),
        (
            "{\"cost\":18446744073709551616}",
            "cost",
            "9007199254740992",
        ),
        ("{\"cost\":1.5}", "cost", "whole number"),
        ("{\"cost\":\"1\"}", "cost", "whole number"),
        ("{\"cost\":null}", "cost", "whole number"),
        ("{\"peek\":1}", "peek", "true or false"),
        ("{\"attributes\":[]}", "attributes", "object"),
        ("{\"attributes\":{\"ip\":null}}", "attributes.ip", "string"),
        ("{\"attributes\":{\"ip\":[1]}}", "attributes.ip", "string"),
        (
            "{\"attributes\":{\"ip\":{\"v\":4}}}",
            "attributes.ip",
            "string",
        ),
        ("{\"attributes\":{\"ip\":1e300}}", "attributes.ip", "2^53"),
        (
            "{\"attributes\":{\"ip\":\"a\\u0000b\"}}",
            "attributes.ip",
            "control",
        ),
        (
            "{\"attributes\":{\"ip\":\"a\\nb\"}}",
            "attributes.ip",
            "control",
        ),
        (
            "{\"attributes\":{\"ip\":\"a\",\"ip\":\"b\"}}",
            "attributes.ip",
            "once",
        ),
        ("{\"attributes\":{\"\":\"a\"}}", "attributes", "text"),
        ("{\"policy\":\"strict\"}", "attributes.user", "not empty"),
        ("{\"key\":{\"user\":\"1\"}}", "key", "`limit`"),
    ] {
        expect(body, 400, field, right).await;
    }
    let long = format!("{{\"attributes\":{{\"ip\":\"{}\"}}}}", "x".repeat(1025));
    expect(&long, 400, "attributes.ip", "1024").await;
    expect("{\"policy\":\"nope\"}", 404, "policy", "configured").await;
}

#[tokio::test]
async fn every_broken_inline_limit_is_told_its_field() {
    let named = |rest: &str| format!("{{\"name\":\"l\",\"limit\":5,\"window\":\"1m\"{rest}}}");
    let numbers = |limit: &str, window: &str| {
        format!("{{\"name\":\"l\",\"limit\":{limit},\"window\":{window}}}")
    };
    for (limit, field, right) in [
        ("7".to_owned(), "limit", "object"),
        ("{}".to_owned(), "limit.name", "name"),
        (
            "{\"name\":\"l\",\"window\":\"1m\"}".to_owned(),
            "limit.limit",
            "whole number",
        ),
        (
            "{\"name\":\"l\",\"limit\":5}".to_owned(),
            "limit.window",
            "1h30m",
        ),
        (
            "{\"name\":\"a b\",\"limit\":5,\"window\":\"1m\"}".to_owned(),
            "limit.name",
            "A-Z",
        ),
        (numbers("-1", "\"1m\""), "limit.limit", "from 0"),
        (
            numbers("9007199254740993", "\"1m\""),
            "limit.limit",
            "9007199254740992",
        ),
        (numbers("1.5", "\"1m\""), "limit.limit", "whole number"),
        (numbers("5", "0"), "limit.window", "duration"),
        (numbers("5", "60"), "limit.window", "duration"),
        (numbers("5", "\"0s\""), "limit.window", "1ms"),
        (numbers("5", "\"4000d\""), "limit.window", "3660d"),
        (numbers("5", "\"7 parsecs\""), "limit.window", "1h30m"),
        (
            named(",\"algorithm\":\"magic\""),
            "limit.algorithm",
            "sliding-window",
        ),
        (named(",\"slices\":0"), "limit.slices", "1 to 60"),
        (named(",\"slices\":61"), "limit.slices", "1 to 60"),
        (named(",\"slices\":-1"), "limit.slices", "1 to 60"),
        (named(",\"hard\":true,\"slices\":1"), "limit.hard", "slices"),
        (named(",\"hard\":\"yes\""), "limit.hard", "true or false"),
        (
            named(",\"fallback\":\"panic\""),
            "limit.fallback",
            "\"deny\"",
        ),
        (named(",\"share\":\"half\""), "limit.share", "\"fair\""),
        (
            named(",\"fallback\":\"deny\",\"share\":\"fair\""),
            "limit.share",
            "local",
        ),
        (named(",\"bursts\":5"), "limit.bursts", "`window`"),
    ] {
        let body = format!("{{\"limit\":{limit},\"key\":{{\"user\":\"42\"}}}}");
        expect(&body, 400, field, right).await;
    }
}

#[tokio::test]
async fn an_inline_limit_needs_a_key_and_stands_alone() {
    let limit = "{\"name\":\"l\",\"limit\":5,\"window\":\"1m\"}";
    for (rest, field, right) in [
        ("", "key", "at least one"),
        (",\"key\":{}", "key", "at least one"),
        (",\"key\":{\"user\":\"\"}", "key.user", "not empty"),
        (",\"key\":{\"user\":\"a\\u0007\"}", "key.user", "control"),
        (
            ",\"key\":{\"user\":\"1\"},\"policy\":\"api\"",
            "policy",
            "either",
        ),
        (
            ",\"key\":{\"user\":\"1\"},\"attributes\":{}",
            "attributes",
            "`key`",
        ),
    ] {
        expect(&format!("{{\"limit\":{limit}{rest}}}"), 400, field, right).await;
    }
    let off = "{\"limit\":{\"name\":\"off\",\"limit\":5,\"window\":\"1m\"},\"key\":{\"a\":\"b\"}}";
    expect(off, 403, "limit", "policy").await;
}

#[tokio::test]
async fn a_body_that_is_not_utf8_or_too_large_is_refused() {
    let tester = Tester::new();
    let answer = tester
        .post("/v1/check", b"{\"policy\":\"\xff\"}".to_vec())
        .await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert!(answer.text.contains("UTF-8"), "{}", answer.text);
    for length in [(1 << 20) + 1, 2 << 20] {
        let answer = tester.post("/v1/check", vec![b' '; length]).await;
        assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert!(answer.json()["detail"].as_str().unwrap().contains("1 MiB"));
    }
    let mut fits = b"{\"policy\":\"api\"}".to_vec();
    fits.resize(1 << 20, b' ');
    assert_eq!(tester.post("/v1/check", fits).await.status, StatusCode::OK);
}

#[tokio::test]
async fn only_json_is_taken() {
    let tester = Tester::new();
    for (media, status) in [
        (Some("application/json"), 200),
        (Some("application/json; charset=utf-8"), 200),
        (Some("Application/JSON ;charset=utf-8"), 200),
        (None, 200),
        (Some("application/x-www-form-urlencoded"), 415),
        (Some("text/plain"), 415),
        (Some("application/jsonp"), 415),
        (Some(""), 415),
    ] {
        let mut request = Request::builder().method(Method::POST).uri("/v1/check");
        if let Some(media) = media {
            request = request.header(header::CONTENT_TYPE, media);
        }
        let answer = tester.send(request.body(Full::from("{}")).unwrap()).await;
        assert_eq!(answer.status.as_u16(), status, "{media:?}");
        if status == 415 {
            assert!(
                answer.text.contains("Content-Type: application/json"),
                "{}",
                answer.text
            );
        }
    }
}

#[test]
fn one_number_has_one_form_and_two_have_two() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let tester = Tester::new();
    let used = |value: &str| {
        let body = format!("{{\"attributes\":{{\"ip\":{value}}}}}");
        let answer = runtime.block_on(tester.check(&body));
        assert_eq!(answer.status, StatusCode::OK, "{value}: {}", answer.text);
        answer.json()["limits"][0]["used"].as_u64().unwrap()
    };
    for same in ["1", "1.0", "1e0", "\"1\"", "10e-1", "\"\\u0031\""] {
        let before = used("1");
        assert_eq!(used(same), before + 1, "{same} is 1");
    }
    for fresh in [
        "18446744073709551615",
        "18446744073709551614",
        "-9223372036854775808",
        "0.5",
        "true",
        "false",
        "9007199254740993",
        "9007199254740992",
        "0",
    ] {
        assert_eq!(used(fresh), 1, "{fresh} is itself alone");
    }
    assert_eq!(used("-0.0"), 2);
}

/// Every call that takes a body.
const PATHS: [&str; 8] = [
    "/v1/check",
    "/v1/checks",
    "/v1/reserve",
    "/v1/settle",
    "/v1/refund",
    "/v1/report",
    "/v1/acquire",
    "/v1/release",
];

/// Something like a limit: algorithms and numbers that do and do not belong to each other.
fn limit_like() -> impl Strategy<Value = String> {
    let algorithms = [
        "sliding-window",
        "sliding-log",
        "fixed-window",
        "token-bucket",
        "leaky-bucket",
        "concurrency",
    ];
    let numbers = [
        "\"window\":\"1m\"",
        "\"calendar\":\"day\"",
        "\"time_zone\":\"Asia/Tokyo\"",
        "\"slices\":3",
        "\"hard\":true",
        "\"burst\":7",
        "\"queue\":0",
        "\"ttl\":\"1s\"",
        "\"shadow\":true",
        "\"fallback\":\"deny\"",
    ];
    let units = prop_oneof![0_u64..9, Just(1 << 53), any::<u64>()];
    let chosen = proptest::sample::subsequence(numbers.to_vec(), 0..4);
    (units, proptest::sample::select(algorithms.to_vec()), chosen).prop_map(
        |(units, algorithm, numbers)| {
            let numbers = numbers.iter().map(|number| format!(",{number}"));
            let numbers: String = numbers.collect();
            format!("{{\"name\":\"l\",\"limit\":{units},\"algorithm\":{algorithm:?}{numbers}}}")
        },
    )
}

/// Something like a check: right and wrong fields, values of every kind.
fn body_like() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        Just("null".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| number.to_string()),
        any::<bool>().prop_map(|truth| truth.to_string()),
        ".{0,9}".prop_map(|text| format!("{text:?}")),
        Just("{\"user\":\"1\"}".to_owned()),
        Just("{\"name\":\"l\",\"limit\":5,\"window\":\"1m\"}".to_owned()),
        limit_like(),
        Just("\"success\"".to_owned()),
        Just("\"api\"".to_owned()),
        Just("[[[[".to_owned()),
    ];
    let name = prop_oneof![
        Just("policy"),
        Just("attributes"),
        Just("limit"),
        Just("key"),
        Just("cost"),
        Just("peek"),
        Just("checks"),
        Just("id"),
        Just("permit_id"),
        Just("outcome"),
        Just("x")
    ];
    let pairs = proptest::collection::vec((name, value), 0..5);
    pairs.prop_map(|pairs| {
        let members = pairs
            .into_iter()
            .map(|(name, value)| format!("\"{name}\":{value}"));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    })
}

#[test]
fn no_body_makes_a_server_error() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let tester = Tester::new();
    let config = ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let bytes = proptest::collection::vec(any::<u8>(), 0..300);
    let body = prop_oneof![bytes, body_like().prop_map(String::into_bytes)];
    let outcome = TestRunner::new(config).run(&body, |body| {
        for path in PATHS {
            let answer = runtime.block_on(tester.post(path, body.clone()));
            prop_assert!(
                answer.status.as_u16() < 500,
                "{path} {}: {}",
                answer.status,
                answer.text
            );
            prop_assert!(serde_json::from_str::<serde_json::Value>(&answer.text).is_ok());
        }
        Ok(())
    });
    outcome.unwrap();
}
