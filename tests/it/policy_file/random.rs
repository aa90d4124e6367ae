//! Whatever a file says, it is taken or told what is wrong with it.

use proptest::prelude::*;

use super::parse;

/// Values that some field takes, and some that none does.
const VALUES: [&str; 32] = [
    "0",
    "1",
    "2",
    "60",
    "-1",
    "9007199254740992",
    "9007199254740993",
    "18446744073709551615",
    "-9223372036854775808",
    "0.2",
    "2.0",
    "1e308",
    "nan",
    "-inf",
    "true",
    "false",
    "\"\"",
    "\"1m\"",
    "\"0s\"",
    "\"31000w\"",
    "\"failures\"",
    "\"day\"",
    "\"Europe/Berlin\"",
    "\"token-bucket\"",
    "\"concurrency\"",
    "\"ü\\u0000\\uFFFF\"",
    "[]",
    "[\"ip\"]",
    "[1, [2]]",
    "{}",
    "{ by = \"a\", values = { b = 1 }, default = \"unlimited\" }",
    "{ for = \"1h\", escalate = 2, max = \"1w\" }",
];

const FIELDS: [&str; 27] = [
    "policy",
    "name",
    "match",
    "key",
    "ipv6_prefix",
    "algorithm",
    "limit",
    "unlimited",
    "window",
    "calendar",
    "time_zone",
    "slices",
    "hard",
    "burst",
    "queue",
    "ttl",
    "cost",
    "count",
    "ban",
    "set_aside",
    "shadow",
    "fallback",
    "share",
    "required",
    "match.plan",
    "limit.by",
    "ban.for",
];

fn line() -> impl Strategy<Value = String> {
    let field = prop::sample::select(&FIELDS[..]);
    let value = prop::sample::select(&VALUES[..]);
    (field, value).prop_map(|(field, value)| format!("{field} = {value}\n"))
}

fn table() -> impl Strategy<Value = String> {
    let head = prop::sample::select(&["[[limit]]\n", "[[policy]]\n", "[limit]\n", ""][..]);
    let sound = any::<bool>().prop_map(|sound| match sound {
        true => "name = \"a\"\nlimit = 5\n",
        false => "",
    });
    let lines = prop::collection::vec(line(), 0..6);
    (head, sound, lines).prop_map(|(head, sound, lines)| format!("{head}{sound}{}", lines.concat()))
}

const SAMPLE: &str = include_str!("../../../cluster-config/policies.toml");

proptest! {
    #[test]
    fn no_table_is_a_trap(tables in prop::collection::vec(table(), 0..4)) {
        drop(parse(&tables.concat()));
    }

    #[test]
    fn no_text_is_a_trap(text in ".*") {
        drop(parse(&text));
    }

    #[test]
    fn no_slip_of_the_pen_is_a_trap(
        at in any::<prop::sample::Index>(),
        length in 0_usize..20,
        written in prop_oneof![Just(String::new()), ".{1,4}", "[\\[\\]{}=\",.0-9\n]{1,4}"],
    ) {
        let at = SAMPLE.floor_char_boundary(at.index(SAMPLE.len()));
        let end = SAMPLE.floor_char_boundary(at.saturating_add(length).min(SAMPLE.len()));
        let mut text = SAMPLE.to_owned();
        text.replace_range(at..end, &written);
        drop(parse(&text));
    }
}
