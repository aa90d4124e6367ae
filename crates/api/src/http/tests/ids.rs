//! Ids: what a check charged can be read off its answer.

use tollgate_limit::{ChargedAt, Cost, CostSource, DecidedBy, Receipt};

use super::Tester;
use crate::fakes::{ALLOWED, REFUSED};

/// 1 700 000 000.5 at the origin, 10 s on the clock.
const MADE: u64 = 1_700_000_010;

/// Name and cost of each charge.
fn charges(receipt: &Receipt) -> Vec<(&str, u64)> {
    let items = receipt.items.iter();
    items
        .map(|item| (item.limit.as_str(), item.charge.cost.units()))
        .collect()
}

#[tokio::test]
async fn an_id_holds_what_each_limit_charged() {
    let tester = Tester::new();
    let answer = tester
        .check("{\"policy\":\"both\",\"attributes\":{\"ip\":\"a\"},\"cost\":3}")
        .await;
    let receipt = tester.open(&answer.json()["id"]);
    assert_eq!((receipt.made, receipt.id.boot), (MADE, 0xb007));
    assert_eq!(charges(&receipt), [("burst", 3), ("daily", 3)]);
    assert!(receipt.items.iter().all(|item| item.at == ChargedAt::Owner));
}

#[tokio::test]
async fn an_id_tells_where_a_cost_came_from_and_whose_counters_were_charged() {
    let tester = Tester::new();
    tester.checker.can("requests", ALLOWED, DecidedBy::Fallback);
    let body = "{\"policy\":\"llm\",\"attributes\":{\"ip\":\"a\",\"tokens\":350}}";
    let receipt = tester.open(&tester.check(body).await.json()["id"]);
    assert_eq!(charges(&receipt), [("tokens", 350), ("requests", 1)]);
    let source = CostSource::Attribute("tokens".to_owned());
    assert_eq!(receipt.items[0].cost_source, source);
    assert_eq!(receipt.items[1].at, ChargedAt::Local);
}

#[tokio::test]
async fn what_charged_nothing_has_an_id_all_the_same() {
    let tester = Tester::new();
    tester.checker.can("per-key", REFUSED, DecidedBy::Owner);
    for body in [
        "{\"policy\":\"api\",\"attributes\":{\"api_key\":\"k\"}}",
        "{\"policy\":\"api\"}",
        "{\"attributes\":{\"ip\":\"a\"},\"peek\":true}",
    ] {
        let receipt = tester.open(&tester.check(body).await.json()["id"]);
        assert_eq!(charges(&receipt), [], "{body}");
    }
}

#[tokio::test]
async fn every_item_of_a_list_has_its_own_id() {
    let tester = Tester::new();
    tester.checker.gate.add_permits(1);
    let far = "{\"policy\":\"later\",\"attributes\":{\"ip\":\"a\"},\"cost\":2}";
    let near = "{\"attributes\":{\"ip\":\"a\"},\"cost\":5}";
    let body = format!("{{\"checks\":[{far},{near}]}}");
    let said = tester.post("/v1/checks", body).await.json();
    let receipts = [0, 1].map(|place| tester.open(&said["results"][place]["id"]));
    assert_eq!(charges(&receipts[0]), [("far", 2)]);
    assert_eq!(charges(&receipts[1]), [("per-ip", 5)]);
    assert_ne!(receipts[0].id, receipts[1].id);
    assert_eq!(receipts[0].items[0].charge.cost, Cost::new(2).unwrap());
}

/// An answer of as many limits as a policy can have is longer than what its buffer is made for.
#[tokio::test]
async fn an_id_of_many_limits_is_whole() {
    let tester = Tester::new();
    let answer = tester
        .check("{\"policy\":\"wide\",\"attributes\":{\"ip\":\"a\"}}")
        .await;
    assert_eq!(answer.status, 200);
    let receipt = tester.open(&answer.json()["id"]);
    assert_eq!(receipt.items.len(), 64);
}
