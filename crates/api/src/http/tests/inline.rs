//! Limits that come with a check: all algorithms, and numbers that do not belong to them.

use serde_json::json;

use super::Tester;

fn body(more: &str) -> String {
    let limit = format!("{{\"name\":\"l\",\"limit\":5{more}}}");
    format!("{{\"limit\":{limit},\"key\":{{\"user\":\"42\"}}}}")
}

/// Members of a limit of 5; its algorithm, its capacity, its window in milliseconds.
const RIGHT: [(&str, &str, u64, u64); 15] = [
    ("\"window\":\"1m\"", "sliding-window", 5, 60_000),
    (
        "\"algorithm\":\"sliding-window\",\"window\":\"1m\",\"slices\":2,\"hard\":true",
        "sliding-window",
        5,
        60_000,
    ),
    (
        "\"algorithm\":\"sliding-log\",\"window\":\"2s\"",
        "sliding-log",
        5,
        2000,
    ),
    (
        "\"algorithm\":\"fixed-window\",\"window\":\"1h\"",
        "fixed-window",
        5,
        3_600_000,
    ),
    (
        "\"algorithm\":\"fixed-window\",\"calendar\":\"day\",\"time_zone\":\"Europe/Berlin\"",
        "fixed-window",
        5,
        86_400_000,
    ),
    (
        "\"algorithm\":\"fixed-window\",\"calendar\":\"hour\"",
        "fixed-window",
        5,
        3_600_000,
    ),
    (
        "\"algorithm\":\"fixed-window\",\"calendar\":\"week\"",
        "fixed-window",
        5,
        604_800_000,
    ),
    (
        "\"algorithm\":\"fixed-window\",\"calendar\":\"month\"",
        "fixed-window",
        5,
        2_678_400_000,
    ),
    (
        "\"algorithm\":\"fixed-window\",\"calendar\":\"year\"",
        "fixed-window",
        5,
        31_622_400_000,
    ),
    (
        "\"algorithm\":\"token-bucket\",\"window\":\"1s\"",
        "token-bucket",
        5,
        1000,
    ),
    (
        "\"algorithm\":\"token-bucket\",\"window\":\"1s\",\"burst\":9",
        "token-bucket",
        9,
        1000,
    ),
    (
        "\"algorithm\":\"leaky-bucket\",\"window\":\"1s\"",
        "leaky-bucket",
        5,
        1000,
    ),
    (
        "\"algorithm\":\"leaky-bucket\",\"window\":\"1s\",\"queue\":0",
        "leaky-bucket",
        1,
        1000,
    ),
    (
        "\"algorithm\":\"leaky-bucket\",\"window\":\"1s\",\"queue\":19",
        "leaky-bucket",
        20,
        1000,
    ),
    (
        "\"window\":\"1m\",\"fallback\":\"local\",\"share\":\"fair\"",
        "sliding-window",
        5,
        60_000,
    ),
];

#[tokio::test]
async fn every_algorithm_can_come_with_a_check() {
    for (more, algorithm, capacity, window_ms) in RIGHT {
        let answer = Tester::new().check(&body(&format!(",{more}"))).await;
        assert_eq!(answer.status, 200, "{more}: {}", answer.text);
        let limit = &answer.json()["limits"][0];
        assert_eq!(limit["algorithm"], algorithm, "{more}");
        assert_eq!(limit["window_ms"], window_ms, "{more}");
        // What remains never exceeds what is called the limit.
        assert_eq!(limit["limit"], capacity, "{more}");
        assert_eq!(limit["remaining"], capacity - 1, "{more}");
        // The limit is 5 everywhere: so long a bucket takes for what it holds.
        let refill_ms: u64 = match algorithm {
            "token-bucket" | "leaky-bucket" => window_ms * capacity / 5,
            _ => window_ms,
        };
        let policy = match refill_ms {
            ..1000 => format!("\"l\";q={capacity}"),
            _ => format!("\"l\";q={capacity};w={}", refill_ms.div_ceil(1000)),
        };
        assert_eq!(
            answer.header("ratelimit-policy"),
            Some(policy.as_str()),
            "{more}"
        );
    }
}

/// Members of a limit; the field at fault, and words of what is right.
const BROKEN: [(&str, &str, &str); 33] = [
    ("\"algorithm\":\"magic\"", "algorithm", "leaky-bucket"),
    ("\"algorithm\":null", "algorithm", "concurrency"),
    ("\"window\":\"1m\",\"burst\":5", "burst", "token-bucket"),
    ("\"window\":\"1m\",\"queue\":5", "queue", "leaky-bucket"),
    ("\"window\":\"1m\",\"ttl\":\"1m\"", "ttl", "concurrency"),
    (
        "\"window\":\"1m\",\"calendar\":\"day\"",
        "calendar",
        "fixed-window",
    ),
    (
        "\"window\":\"1m\",\"time_zone\":\"UTC\"",
        "time_zone",
        "`calendar`",
    ),
    (
        "\"algorithm\":\"token-bucket\",\"window\":\"1s\",\"slices\":5",
        "slices",
        "sliding-window",
    ),
    (
        "\"algorithm\":\"token-bucket\",\"window\":\"1s\",\"hard\":true",
        "hard",
        "sliding-window",
    ),
    (
        "\"algorithm\":\"token-bucket\",\"window\":\"1s\",\"hard\":false",
        "hard",
        "sliding-window",
    ),
    (
        "\"algorithm\":\"token-bucket\",\"window\":\"1s\",\"queue\":5",
        "queue",
        "leaky-bucket",
    ),
    (
        "\"algorithm\":\"token-bucket\",\"window\":\"1s\",\"burst\":0",
        "burst",
        "1 at least",
    ),
    (
        "\"algorithm\":\"token-bucket\",\"window\":\"1s\",\"burst\":-1",
        "burst",
        "from 0",
    ),
    (
        "\"algorithm\":\"token-bucket\",\"window\":\"1s\",\"burst\":9007199254740993",
        "burst",
        "9007199254740992",
    ),
    (
        "\"algorithm\":\"fixed-window\",\"window\":\"1h\",\"calendar\":\"day\"",
        "calendar",
        "either",
    ),
    (
        "\"algorithm\":\"fixed-window\",\"window\":\"1h\",\"time_zone\":\"UTC\"",
        "time_zone",
        "`calendar`",
    ),
    ("\"algorithm\":\"fixed-window\"", "window", "`calendar`"),
    (
        "\"algorithm\":\"fixed-window\",\"calendar\":\"decade\"",
        "calendar",
        "\"year\"",
    ),
    (
        "\"algorithm\":\"fixed-window\",\"calendar\":\"day\",\"time_zone\":\"Mars\"",
        "time_zone",
        "Europe/Berlin",
    ),
    (
        "\"algorithm\":\"fixed-window\",\"calendar\":\"day\",\"time_zone\":1",
        "time_zone",
        "string",
    ),
    ("\"algorithm\":\"concurrency\"", "ttl", "30s"),
    (
        "\"algorithm\":\"concurrency\",\"ttl\":\"1m\",\"window\":\"1m\"",
        "window",
        "`ttl`",
    ),
    ("\"algorithm\":\"concurrency\",\"ttl\":7", "ttl", "30s"),
    ("\"algorithm\":\"concurrency\",\"ttl\":\"0s\"", "ttl", "1ms"),
    ("\"algorithm\":\"sliding-log\"", "window", "1h30m"),
    (
        "\"algorithm\":\"sliding-log\",\"window\":\"1m\",\"slices\":9",
        "slices",
        "sliding-window",
    ),
    (
        "\"algorithm\":\"leaky-bucket\",\"window\":\"1s\",\"queue\":9007199254740992",
        "queue",
        "2^53",
    ),
    ("\"window\":\"1m\",\"shadow\":1", "shadow", "true or false"),
    // What belongs to policies alone.
    ("\"window\":\"1m\",\"match\":{}", "match", "`window`"),
    (
        "\"window\":\"1m\",\"set_aside\":{}",
        "set_aside",
        "`window`",
    ),
    (
        "\"window\":\"1m\",\"count\":\"failures\"",
        "count",
        "`window`",
    ),
    ("\"window\":\"1m\",\"ban\":{}", "ban", "`window`"),
    ("\"window\":\"1m\",\"cost\":\"tokens\"", "cost", "`window`"),
];

#[tokio::test]
async fn a_number_that_does_not_belong_is_told_where_it_does() {
    for (more, field, right) in BROKEN {
        let tester = Tester::new();
        let answer = tester.post("/v1/acquire", body(&format!(",{more}"))).await;
        assert_eq!(answer.status, 400, "{more}: {}", answer.text);
        let problem = answer.json();
        assert_eq!(
            problem["field"],
            format!("limit.{field}"),
            "{more}: {problem}"
        );
        let expected = problem["expected"].as_str().unwrap();
        assert!(expected.contains(right), "{more}: {expected}");
        assert_eq!(tester.checker.used(), 0, "{more}");
    }
    let log = "{\"name\":\"l\",\"limit\":10001,\"algorithm\":\"sliding-log\",\"window\":\"1m\"}";
    let many = format!("{{\"limit\":{log},\"key\":{{\"a\":1}}}}");
    let problem = Tester::new().check(&many).await.json();
    assert_eq!(problem["field"], "limit.limit");
    assert_eq!(problem["expected"], json!("at most 10000"));
}
