//! The switches: what sets them, and what does not.

use http::{Method, Request, header};
use http_body_util::Full;
use serde_json::json;

use super::Tester;
use crate::operator::Switches;

fn stands(tester: &Tester) -> (bool, bool) {
    let Switches { kill, shadow } = *tester.operator.switches.lock().unwrap();
    (kill, shadow)
}

#[tokio::test]
async fn each_is_set_by_itself_and_both_are_told() {
    let tester = Tester::new();
    for (path, on, both) in [
        ("/v1/switches/kill", true, (true, false)),
        ("/v1/switches/shadow", true, (true, true)),
        // Setting it again does no harm.
        ("/v1/switches/shadow", true, (true, true)),
        ("/v1/switches/kill", false, (false, true)),
        ("/v1/switches/shadow", false, (false, false)),
    ] {
        let answer = tester.put(path, json!({"on": on}).to_string()).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let told = json!({"kill": both.0, "shadow": both.1});
        assert_eq!(answer.json(), told, "{path} {on}");
        assert_eq!(stands(&tester), both, "{path} {on}");
        let cluster = tester.get("/v1/cluster").await.json();
        assert_eq!(cluster["switches"], told);
    }
}

#[tokio::test]
async fn a_wrong_body_sets_nothing() {
    let tester = Tester::new();
    for (body, field) in [
        ("", "body"),
        ("true", "body"),
        ("[]", "body"),
        ("{\"on\": true", "body"),
        ("{\"on\": true} {}", "body"),
        ("{}", "on"),
        ("{\"on\": 1}", "on"),
        ("{\"on\": \"true\"}", "on"),
        ("{\"on\": null}", "on"),
        ("{\"on\": true, \"on\": true}", "on"),
        ("{\"on\": true, \"off\": false}", "off"),
    ] {
        for path in ["/v1/switches/kill", "/v1/switches/shadow"] {
            let answer = tester.put(path, body).await;
            assert_eq!(answer.status, 400, "{body}: {}", answer.text);
            assert_eq!(answer.json()["field"], field, "{body}");
        }
    }
    let form = Request::builder()
        .method(Method::PUT)
        .uri("/v1/switches/kill")
        .header(header::HOST, "localhost")
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    let form = form.body(Full::from("{\"on\": true}")).unwrap();
    assert_eq!(tester.send(form).await.status, 415);
    let large = format!("{{\"on\": true, \"x\": \"{}\"}}", "x".repeat(1 << 20));
    assert_eq!(tester.put("/v1/switches/kill", large).await.status, 413);
    assert_eq!(stands(&tester), (false, false));
}
