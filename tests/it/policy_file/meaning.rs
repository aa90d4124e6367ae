//! What is written is what a check meets.

use tollgate::config::PolicyFile;
use tollgate_api::{Family, HeaderFamilies};
use tollgate_limit::{
    Algorithm, Alignment, Attributes, Ban, CalendarUnit, Call, Concurrency, Cost, CostSource,
    Counted, Enforcement, Fallback, FixedWindow, LeakyBucket, Limit, Nanos, OldestSlice, Policy,
    Rule, SlidingLog, SlidingWindow, TokenBucket, Window, Zone,
};

use super::{HEAD, taken};

fn attributes<'a>(pairs: &[(&'a str, &'a str)]) -> Attributes<'a> {
    let mut attributes = Attributes::new();
    for (name, value) in pairs {
        attributes.insert(*name, *value).unwrap();
    }
    attributes
}

fn policy(file: &PolicyFile) -> &Policy {
    file.policies.policy("default").unwrap()
}

fn limit(file: &PolicyFile) -> &Limit {
    &policy(file).limits()[0]
}

/// The rule that such attributes meet.
fn rule(lines: &str, pairs: &[(&str, &str)]) -> Option<Rule> {
    limit(&taken(&format!("{HEAD}{lines}\n"))).rule_of(&attributes(pairs))
}

fn minutes(minutes: u64) -> Window {
    Window::new(Nanos::from_millis(minutes * 60_000)).unwrap()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of algorithms")]
fn each_algorithm_has_its_numbers() {
    for (lines, algorithm) in [
        (
            "limit = 5\nwindow = \"1m\"",
            Algorithm::SlidingWindow(SlidingWindow {
                limit: 5,
                window: minutes(1),
                slices: 10,
                oldest: OldestSlice::Weighted,
            }),
        ),
        (
            "limit = 5\nwindow = \"1m\"\nslices = 6\nhard = true",
            Algorithm::SlidingWindow(SlidingWindow {
                limit: 5,
                window: minutes(1),
                slices: 6,
                oldest: OldestSlice::Full,
            }),
        ),
        (
            "algorithm = \"sliding-log\"\nlimit = 5\nwindow = \"2m\"",
            Algorithm::SlidingLog(SlidingLog {
                limit: 5,
                window: minutes(2),
            }),
        ),
        (
            "algorithm = \"fixed-window\"\nlimit = 5\nwindow = \"2m\"",
            Algorithm::FixedWindow(FixedWindow {
                limit: 5,
                alignment: Alignment::Epoch(minutes(2)),
            }),
        ),
        (
            "algorithm = \"fixed-window\"\nlimit = 5\ncalendar = \"day\"",
            Algorithm::FixedWindow(FixedWindow {
                limit: 5,
                alignment: Alignment::Calendar(CalendarUnit::Day, Zone::utc()),
            }),
        ),
        (
            "algorithm = \"fixed-window\"\nlimit = 5\ncalendar = \"month\"\ntime_zone = \"europe/berlin\"",
            Algorithm::FixedWindow(FixedWindow {
                limit: 5,
                alignment: Alignment::Calendar(
                    CalendarUnit::Month,
                    Zone::named("Europe/Berlin").unwrap(),
                ),
            }),
        ),
        (
            "algorithm = \"token-bucket\"\nlimit = 5\nwindow = \"1m\"\nburst = 20",
            Algorithm::TokenBucket(TokenBucket {
                limit: 5,
                window: minutes(1),
                burst: 20,
            }),
        ),
        (
            "algorithm = \"leaky-bucket\"\nlimit = 5\nwindow = \"1m\"\nqueue = 7",
            Algorithm::LeakyBucket(LeakyBucket {
                limit: 5,
                window: minutes(1),
                queue: 7,
            }),
        ),
        (
            "algorithm = \"concurrency\"\nlimit = 5\nttl = \"3m\"",
            Algorithm::Concurrency(Concurrency {
                limit: 5,
                ttl: minutes(3),
            }),
        ),
    ] {
        assert_eq!(rule(lines, &[]), Some(Rule::new(algorithm)), "{lines}");
    }
}

#[test]
fn tiers_have_their_numbers_and_share_a_counter() {
    let lines = "limit = { by = \"plan\", values = { free = 60, pro = 6000, internal = \"unlimited\" }, \
                 default = 30 }\nwindow = \"1m\"\nkey = [\"user\"]";
    let capacity = |plan| rule(lines, &[("plan", plan)]).map(|rule| rule.capacity());
    assert_eq!(capacity("free"), Some(60));
    assert_eq!(capacity("pro"), Some(6000));
    assert_eq!(capacity("internal"), None);
    assert_eq!(capacity("other"), Some(30));
    assert_eq!(rule(lines, &[]).map(|rule| rule.capacity()), Some(30));
    let file = taken(&format!("{HEAD}{lines}\n"));
    let key = |plan| {
        let attributes = attributes(&[("plan", plan), ("user", "u")]);
        limit(&file).key_of(&attributes).unwrap().unwrap()
    };
    assert_eq!(key("free"), key("pro"));
}

#[test]
fn terms_reach_the_rule() {
    let file = taken(&format!(
        "{HEAD}limit = 10\nwindow = \"1m\"\nshadow = true\ncount = \"failures\"\nkey = [\"ip\"]\n\
         ipv6_prefix = 48\nfallback = \"local\"\nshare = \"fair\"\ncost = \"tokens\"\n\
         ban = {{ for = \"1h\", escalate = 1.5, max = \"12h\" }}\n\
         set_aside = {{ by = \"priority\", values = [\"critical\", 1], share = 0.25 }}\n"
    ));
    let limit = limit(&file);
    let of = |priority| {
        limit
            .rule_of(&attributes(&[("priority", priority)]))
            .unwrap()
    };
    assert_eq!(of("critical").set_aside, 0);
    assert_eq!(of("1").set_aside, 0);
    assert_eq!(of("low").set_aside, 3, "a quarter of ten, rounded up");
    assert_eq!(of("low").enforcement, Enforcement::Shadow);
    let hour = |hours: u64| Nanos::from_millis(hours * 3_600_000);
    let ban = Ban {
        length: hour(1),
        escalation: 1500,
        longest: hour(12),
    };
    assert_eq!(of("low").ban, Some(ban));
    assert_eq!(limit.counted(), Counted::Failures);
    assert_eq!(limit.fallback(), Fallback::LocalFair);
    assert_eq!(
        *limit.cost_source(),
        CostSource::Attribute("tokens".to_owned())
    );
    let asked = attributes(&[("ip", "2001:db8:1:2::3"), ("tokens", "7")]);
    assert_eq!(
        limit.counted_value("ip", "2001:db8:1:2::3"),
        "2001:db8:1::/48"
    );
    let applied = limit.apply(&asked, Cost::ONE).unwrap().unwrap();
    assert_eq!(applied.cost, Cost::new(7).unwrap());
}

#[test]
fn a_ban_that_says_no_more_stays_as_long_and_ends_within_a_day() {
    let lines = "limit = 5\nwindow = \"1m\"\ncount = \"failures\"\nban = { for = \"1h\" }";
    let ban = rule(lines, &[]).unwrap().ban.unwrap();
    assert_eq!(ban.escalation, 1000);
    assert_eq!(ban.longest, Nanos::from_millis(24 * 3_600_000));
}

#[test]
fn values_to_match_are_the_texts_that_checks_bring() {
    let file = taken(&format!(
        "{HEAD}limit = 5\nwindow = \"1m\"\n\
         match = {{ n = [1, -2, 1.0e3, 0.5], beta = true, path = \"/v1/*\" }}\n"
    ));
    let limit = limit(&file);
    for n in ["1", "-2", "1000", "0.5"] {
        let pairs = [("n", n), ("beta", "true"), ("path", "/v1/a")];
        assert_eq!(limit.mismatch(&attributes(&pairs)), None, "{n}");
    }
    let other = [("n", "1.0"), ("beta", "true"), ("path", "/v1/a")];
    assert_eq!(limit.mismatch(&attributes(&other)), Some("n"));
    assert_eq!(limit.mismatch(&attributes(&[("n", "1")])), Some("beta"));
}

#[test]
fn what_is_exempt_meets_nothing_wherever_the_exemption_stands() {
    let strict = "limit = 0\nwindow = \"1m\"\nkey = [\"user\"]\nrequired = true\n";
    let exempting = "[[limit]]\nname = \"staff\"\nmatch = { plan = \"staff\" }\nunlimited = true\n";
    for text in [
        format!("{HEAD}{strict}{exempting}"),
        format!("{exempting}{HEAD}{strict}"),
    ] {
        let file = taken(&text);
        let select = |pairs: &[(&str, &str)]| {
            policy(&file).select(&attributes(pairs), Cost::ONE, Call::Check)
        };
        assert!(select(&[("plan", "staff")]).unwrap().is_empty(), "{text}");
        select(&[("plan", "free")]).unwrap_err();
        assert_eq!(select(&[("plan", "free"), ("user", "u")]).unwrap().len(), 1);
    }
}

#[test]
fn a_policy_has_its_settings_and_others_the_default() {
    let file = taken(&format!(
        "{HEAD}limit = 5\nwindow = \"1m\"\n[[policy]]\nname = \"default\"\n\
         headers = [\"draft-10\"]\ndeny_status = 403\n"
    ));
    let own = file.settings.of("default");
    assert_eq!(HeaderFamilies::NONE.with(Family::Draft10), Ok(own.headers));
    assert_eq!(own.deny_status, 403);
    let other = file.settings.of("api");
    assert_eq!(other.headers, HeaderFamilies::default());
    assert_eq!(other.deny_status, 429);
}

#[test]
fn the_digest_is_of_bytes_and_the_fingerprint_of_what_decides() {
    let written = format!("{HEAD}limit = 5\nwindow = \"60s\"\n");
    let (one, same) = (taken(&written), taken(&written));
    let other = taken(&format!("# A comment.\n{HEAD}window = \"1m\"\nlimit = 5\n"));
    assert_eq!(one.digest, same.digest);
    assert_ne!(one.digest, other.digest);
    assert_eq!(one.policies.fingerprint(), other.policies.fingerprint());
    let raised = taken(&format!("{HEAD}limit = 6\nwindow = \"60s\"\n"));
    assert_ne!(one.policies.fingerprint(), raised.policies.fingerprint());
}
