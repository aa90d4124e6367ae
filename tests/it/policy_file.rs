//! `policies.toml`, field by field: what is right is taken, what is wrong is told in one exact line.

mod meaning;
mod random;

use std::path::Path;

use tollgate::config::PolicyFile;
use tollgate_limit::HashKey;

/// What comes before each example: lines 1 and 2.
const HEAD: &str = "[[limit]]\nname = \"a\"\n";

fn parse(policies: &str) -> Result<PolicyFile, String> {
    let parsed = PolicyFile::parse(Path::new("p.toml"), policies, &HashKey::new([0; 16]));
    parsed.map_err(|error| error.to_string())
}

fn taken(policies: &str) -> PolicyFile {
    parse(policies).unwrap_or_else(|error| panic!("refused:\n{policies}\n{error}"))
}

/// The first line of what a mistaken file is told.
fn told(policies: &str) -> String {
    match parse(policies) {
        Ok(_) => panic!("taken for right:\n{policies}"),
        Err(error) => error.lines().next().unwrap_or_default().to_owned(),
    }
}

/// One field: lines that are right after [`HEAD`], lines that are wrong, and what is said of these.
struct Example {
    right: &'static str,
    wrong: &'static str,
    told: &'static str,
}

const EXAMPLES: &[Example] = &[
    Example {
        right: "policy = \"api\"\nlimit = 5\nwindow = \"1m\"",
        wrong: "policy = \"a b\"\nlimit = 5\nwindow = \"1m\"",
        told: "p.toml:3:10: policy: \"a b\" is not a name; 1 to 64 characters of A-Z, a-z, 0-9, '.', '_' and '-'",
    },
    Example {
        right: "limit = 0\nwindow = \"1ms\"",
        wrong: "limit = -1\nwindow = \"1m\"",
        told: "p.toml:3:9: limit: invalid value: integer `-1`, expected a whole number from 0 to 2^53, or { by = \"plan\", values = { free = 60 }, default = 60 }",
    },
    Example {
        right: "limit = 9007199254740992\nwindow = \"3660d\"",
        wrong: "limit = 9007199254740993\nwindow = \"1m\"",
        told: "p.toml:3:9: limit: invalid value: integer `9007199254740993`, expected a whole number from 0 to 2^53, or { by = \"plan\", values = { free = 60 }, default = 60 }",
    },
    Example {
        right: "limit = { by = \"plan\", values = { free = 60, pro = 6000, internal = \"unlimited\" }, default = 60 }\nwindow = \"1m\"",
        wrong: "limit = { by = \"plan\", values = { free = \"60\" }, default = 60 }\nwindow = \"1m\"",
        told: "p.toml:3:42: limit: invalid value: string \"60\", expected a whole number from 0 to 2^53, or \"unlimited\"",
    },
    Example {
        right: "limit = { by = \"plan\", values = {}, default = \"unlimited\" }\nwindow = \"1m\"",
        wrong: "limit = { by = \"plan\", values = { free = 60 } }\nwindow = \"1m\"",
        told: "p.toml:3:9: limit: missing field `default`; write default = 60, for all other values",
    },
    Example {
        right: "limit = { by = \"a.b\", values = { \"x.y\" = 10000 }, default = 1 }\nwindow = \"1m\"\nalgorithm = \"sliding-log\"",
        wrong: "limit = { by = \"a.b\", values = { \"x.y\" = 10001 }, default = 1 }\nwindow = \"1m\"\nalgorithm = \"sliding-log\"",
        told: "p.toml:3:42: limit.values.x.y: 10001 is too large: a sliding log keeps an entry for each check; at most 10000",
    },
    Example {
        right: "limit = { by = \"plan\", values = {}, default = 1 }\nwindow = \"1m\"",
        wrong: "limit = { by = \"\", values = {}, default = 1 }\nwindow = \"1m\"",
        told: "p.toml:3:16: limit.by: is empty; the name of an attribute",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"",
        wrong: "window = \"1m\"",
        told: "p.toml:1:1: limit: is missing; write limit = 100, or unlimited = true",
    },
    Example {
        right: "unlimited = true",
        wrong: "unlimited = true\nlimit = 5",
        told: "p.toml:4:9: limit: stands beside unlimited = true; remove one of the two",
    },
    Example {
        right: "unlimited = false\nlimit = 5\nwindow = \"1m\"",
        wrong: "unlimited = false\nwindow = \"1m\"",
        told: "p.toml:1:1: limit: is missing; write limit = 100, or unlimited = true",
    },
    Example {
        right: "unlimited = true\nalgorithm = \"concurrency\"\nttl = \"1m\"",
        wrong: "unlimited = true\nalgorithm = \"concurrency\"\nwindow = \"1m\"",
        told: "p.toml:5:10: window: is no field of algorithm \"concurrency\"; write ttl = \"30s\", after which a permit ends",
    },
    Example {
        right: "limit = 5\nwindow = \"1h30m\"",
        wrong: "limit = 5",
        told: "p.toml:1:1: window: is missing; write window = \"1m\"",
    },
    Example {
        right: "limit = 5\nwindow = \"1w2d\"",
        wrong: "limit = 5\nwindow = \"7 parsecs\"",
        told: "p.toml:4:10: window: \"7 parsecs\" is not a duration; a duration is a whole number and a unit, `ms`, `s`, `m`, `h`, `d` or `w`, or a sum such as `1h30m`",
    },
    Example {
        right: "limit = 5\nwindow = \"3660d\"",
        wrong: "limit = 5\nwindow = \"3661d\"",
        told: "p.toml:4:10: window: 316310400000000000 ns is out of range; from 1ms to 3660d",
    },
    Example {
        right: "algorithm = \"sliding-window\"\nlimit = 5\nwindow = \"1m\"\nslices = 60\nhard = true",
        wrong: "algorithm = \"magic\"\nlimit = 5\nwindow = \"1m\"",
        told: "p.toml:3:13: algorithm: \"magic\" is not an algorithm; write \"sliding-window\", \"sliding-log\", \"fixed-window\", \"token-bucket\", \"leaky-bucket\" or \"concurrency\"",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\nslices = 1",
        wrong: "limit = 5\nwindow = \"1m\"\nslices = 61",
        told: "p.toml:5:10: slices: out of range; a whole number from 1 to 60",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\nslices = 2\nhard = true",
        wrong: "limit = 5\nwindow = \"1m\"\nslices = 1\nhard = true",
        told: "p.toml:6:8: hard: needs two slices at least; set slices = 2 or more",
    },
    Example {
        right: "algorithm = \"sliding-log\"\nlimit = 10000\nwindow = \"1m\"",
        wrong: "algorithm = \"sliding-log\"\nlimit = 10001\nwindow = \"1m\"",
        told: "p.toml:4:9: limit: 10001 is too large: a sliding log keeps an entry for each check; at most 10000",
    },
    Example {
        right: "algorithm = \"fixed-window\"\nlimit = 5\nwindow = \"1m\"",
        wrong: "algorithm = \"fixed-window\"\nlimit = 5",
        told: "p.toml:1:1: window: is missing; write window = \"1m\", or calendar = \"day\"",
    },
    Example {
        right: "algorithm = \"fixed-window\"\nlimit = 5\ncalendar = \"week\"",
        wrong: "algorithm = \"fixed-window\"\nlimit = 5\ncalendar = \"fortnight\"",
        told: "p.toml:5:12: calendar: \"fortnight\" is not a part of the calendar; write \"hour\", \"day\", \"week\", \"month\" or \"year\"",
    },
    Example {
        right: "algorithm = \"fixed-window\"\nlimit = 5\ncalendar = \"day\"",
        wrong: "algorithm = \"fixed-window\"\nlimit = 5\ncalendar = \"day\"\nwindow = \"1d\"",
        told: "p.toml:6:10: window: stands beside calendar; remove one of the two",
    },
    Example {
        right: "algorithm = \"fixed-window\"\nlimit = 5\ncalendar = \"month\"\ntime_zone = \"Europe/Berlin\"",
        wrong: "algorithm = \"fixed-window\"\nlimit = 5\ncalendar = \"month\"\ntime_zone = \"Moon/Crater\"",
        told: "p.toml:6:13: time_zone: \"Moon/Crater\" is not a time zone; a name such as \"Europe/Berlin\"",
    },
    Example {
        right: "algorithm = \"fixed-window\"\nlimit = 5\ncalendar = \"year\"\ntime_zone = \"UTC\"",
        wrong: "algorithm = \"fixed-window\"\nlimit = 5\nwindow = \"1d\"\ntime_zone = \"UTC\"",
        told: "p.toml:6:13: time_zone: is for calendar windows; set calendar = \"day\", or remove it",
    },
    Example {
        right: "algorithm = \"fixed-window\"\nlimit = 5\ncalendar = \"hour\"",
        wrong: "algorithm = \"sliding-window\"\nlimit = 5\ncalendar = \"hour\"",
        told: "p.toml:5:12: calendar: is no field of algorithm \"sliding-window\"; it is for \"fixed-window\": remove it",
    },
    Example {
        right: "algorithm = \"token-bucket\"\nlimit = 5\nwindow = \"1m\"\nburst = 20",
        wrong: "algorithm = \"token-bucket\"\nlimit = 5\nwindow = \"1m\"\nburst = 0",
        told: "p.toml:6:9: burst: is 0; 1 at least; to block set limit = 0",
    },
    Example {
        right: "algorithm = \"token-bucket\"\nlimit = 5\nwindow = \"1m\"",
        wrong: "algorithm = \"token-bucket\"\nlimit = 5\nwindow = \"1m\"\nslices = 5",
        told: "p.toml:6:10: slices: is no field of algorithm \"token-bucket\"; it is for \"sliding-window\": remove it",
    },
    Example {
        right: "algorithm = \"leaky-bucket\"\nlimit = 5\nwindow = \"1m\"\nqueue = 0",
        wrong: "algorithm = \"leaky-bucket\"\nlimit = 5\nwindow = \"1m\"\nqueue = 9007199254740992",
        told: "p.toml:6:9: queue: 9007199254740992 is too large; below 2^53",
    },
    Example {
        right: "algorithm = \"leaky-bucket\"\nlimit = 5\nwindow = \"1m\"",
        wrong: "algorithm = \"leaky-bucket\"\nlimit = 5\nwindow = \"1m\"\nburst = 5",
        told: "p.toml:6:9: burst: is no field of algorithm \"leaky-bucket\"; it is for \"token-bucket\": remove it",
    },
    Example {
        right: "algorithm = \"concurrency\"\nlimit = 10000\nttl = \"30s\"",
        wrong: "algorithm = \"concurrency\"\nlimit = 10\nwindow = \"30s\"",
        told: "p.toml:5:10: window: is no field of algorithm \"concurrency\"; write ttl = \"30s\", after which a permit ends",
    },
    Example {
        right: "algorithm = \"concurrency\"\nlimit = 10\nttl = \"30s\"",
        wrong: "algorithm = \"concurrency\"\nlimit = 10",
        told: "p.toml:1:1: ttl: is missing; write ttl = \"30s\", after which a permit ends",
    },
    Example {
        right: "algorithm = \"concurrency\"\nlimit = 10\nttl = \"1ms\"",
        wrong: "algorithm = \"concurrency\"\nlimit = 10\nttl = \"0s\"",
        told: "p.toml:5:7: ttl: 0 ns is out of range; from 1ms to 3660d",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\ncost = \"tokens\"",
        wrong: "limit = 5\nwindow = \"1m\"\ncost = \"\"",
        told: "p.toml:5:8: cost: is empty; the name of an attribute",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\ncost = \"bytes\"",
        wrong: "limit = 5\nwindow = \"1m\"\ncost = 3",
        told: "p.toml:5:8: cost: invalid type: integer `3`, expected a string",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\nshadow = true",
        wrong: "limit = 5\nwindow = \"1m\"\nshadow = \"yes\"",
        told: "p.toml:5:10: shadow: invalid type: string \"yes\", expected a boolean",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\ncount = \"failures\"",
        wrong: "limit = 5\nwindow = \"1m\"\ncount = \"sheep\"",
        told: "p.toml:5:9: count: \"sheep\" cannot be counted; write \"requests\" or \"failures\"",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\ncount = \"requests\"",
        wrong: "algorithm = \"concurrency\"\nlimit = 5\nttl = \"1m\"\ncount = \"failures\"",
        told: "p.toml:6:9: count: permits have no failures; another algorithm, or count = \"requests\"",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\ncount = \"failures\"\nban = { for = \"1h\", escalate = 2.0, max = \"24h\" }",
        wrong: "limit = 5\nwindow = \"1m\"\nban = { for = \"1h\" }",
        told: "p.toml:5:7: ban: is for limits that count failures; set count = \"failures\"",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\ncount = \"failures\"\nban = { for = \"1h\", escalate = 2 }",
        wrong: "limit = 5\nwindow = \"1m\"\ncount = \"failures\"\nban = { for = \"1h\", escalate = 0.5 }",
        told: "p.toml:6:32: ban.escalate: 0.5 is out of range; from 1 to 1000",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\ncount = \"failures\"\nban = { for = \"48h\" }",
        wrong: "limit = 5\nwindow = \"1m\"\ncount = \"failures\"\nban = { for = \"48h\", max = \"24h\" }",
        told: "p.toml:6:28: ban.max: is shorter than `for`; as long as `for` at least",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\ncount = \"failures\"\nban = { for = \"1ms\", max = \"1ms\" }",
        wrong: "limit = 5\nwindow = \"1m\"\ncount = \"failures\"\nban = { max = \"24h\" }",
        told: "p.toml:6:7: ban: missing field `for`; write for = \"1h\"",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\ncount = \"failures\"\nban = { for = \"1h\", escalate = 1000 }",
        wrong: "limit = 5\nwindow = \"1m\"\ncount = \"failures\"\nban = { for = \"1h\", escalate = nan }",
        told: "p.toml:6:32: ban.escalate: NaN is out of range; from 1 to 1000",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\nset_aside = { by = \"priority\", values = [\"critical\"], share = 0.2 }",
        wrong: "limit = 5\nwindow = \"1m\"\nset_aside = { by = \"priority\", values = [\"critical\"], share = 1.2 }",
        told: "p.toml:5:63: set_aside.share: 1.2 is out of range; above 0 and at most 1",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\nset_aside = { by = \"priority\", values = 1, share = 1 }",
        wrong: "limit = 5\nwindow = \"1m\"\nset_aside = { by = \"priority\", values = [], share = 0.2 }",
        told: "p.toml:5:41: set_aside: an empty list matches nothing; name one value at least",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\nset_aside = { by = \"paid\", values = true, share = 0.000001 }",
        wrong: "limit = 5\nwindow = \"1m\"\nset_aside = { by = \"\", values = true, share = 0.2 }",
        told: "p.toml:5:20: set_aside.by: is empty; the name of an attribute",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\nkey = [\"ip\"]\nipv6_prefix = 56",
        wrong: "limit = 5\nwindow = \"1m\"\nkey = [\"ip\"]\nipv6_prefix = 129",
        told: "p.toml:6:15: ipv6_prefix: 129 is out of range; a whole number from 1 to 128",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\nkey = [\"user\", \"ip\"]\nipv6_prefix = 1",
        wrong: "limit = 5\nwindow = \"1m\"\nkey = [\"user\"]\nipv6_prefix = 56",
        told: "p.toml:6:15: ipv6_prefix: is for limits by the attribute \"ip\"; set key = [\"ip\"], or remove it",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\nmatch = { plan = \"free\", tier = [1, \"2\"], beta = true, rate = 0.5 }",
        wrong: "limit = 5\nwindow = \"1m\"\nmatch = { plan = [] }",
        told: "p.toml:5:18: match: an empty list matches nothing; name one value at least",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\nmatch = { plan = \"*\" }",
        wrong: "limit = 5\nwindow = \"1m\"\nmatch = { plan = \"\" }",
        told: "p.toml:5:18: match: an empty text matches nothing, since an empty attribute is an absent one; write \"*\" for any value",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\nmatch = { n = 9007199254740991.0 }",
        wrong: "limit = 5\nwindow = \"1m\"\nmatch = { n = 1e300 }",
        told: "p.toml:5:15: match: 1e300 is not exact; write a number below 2^53, or a text",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\nmatch = { n = \"1979-05-27\" }",
        wrong: "limit = 5\nwindow = \"1m\"\nmatch = { n = 1979-05-27 }",
        told: "p.toml:5:15: match: invalid type: map, expected a text such as \"/v1/*\", a number, true or false, or a list of these",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\nkey = [\"ip\", \"user\"]",
        wrong: "limit = 5\nwindow = \"1m\"\nkey = [\"ip\", \"ip\"]",
        told: "p.toml:5:7: key: \"ip\" stands twice; each name once",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\nrequired = true",
        wrong: "limit = 5\nwindow = \"1m\"\nrequired = 1",
        told: "p.toml:5:12: required: invalid type: integer `1`, expected a boolean",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\nfallback = \"allow\"",
        wrong: "limit = 5\nwindow = \"1m\"\nfallback = \"pray\"",
        told: "p.toml:5:12: fallback: \"pray\" is not a fallback; write \"local\", \"allow\" or \"deny\"",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\nfallback = \"local\"\nshare = \"fair\"",
        wrong: "limit = 5\nwindow = \"1m\"\nfallback = \"deny\"\nshare = \"fair\"",
        told: "p.toml:6:9: share: is only for the local fallback; write fallback = \"local\", or leave share out",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\nshare = \"full\"",
        wrong: "limit = 5\nwindow = \"1m\"\nshare = \"most\"",
        told: "p.toml:5:9: share: \"most\" is not a share; write \"full\" or \"fair\"",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\" # colour = 1",
        wrong: "limit = 5\nwindow = \"1m\"\ncolour = 1",
        told: "p.toml:5:1: unknown field `colour`, expected one of `policy`, `name`, `match`, `key`, `ipv6_prefix`, `algorithm`, `limit`, `unlimited`, `window`, `calendar`, `time_zone`, `slices`, `hard`, `burst`, `queue`, `ttl`, `cost`, `count`, `ban`, `set_aside`, `shadow`, `fallback`, `share`, `required`",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\n[[policy]]\nname = \"default\"\nheaders = [\"x-ratelimit\", \"draft-10\"]",
        wrong: "limit = 5\nwindow = \"1m\"\n[[policy]]\nname = \"default\"\nheaders = [\"draft-3\"]",
        told: "p.toml:7:12: headers: \"draft-3\" is not a family of headers; write \"x-ratelimit\", \"draft-6\", \"draft-7\", \"draft-10\", or \"none\" alone",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\n[[policy]]\nname = \"default\"\nheaders = [\"none\"]",
        wrong: "limit = 5\nwindow = \"1m\"\n[[policy]]\nname = \"default\"\nheaders = [\"draft-10\", \"none\"]",
        told: "p.toml:7:24: headers: \"none\" is not a family of headers; write \"x-ratelimit\", \"draft-6\", \"draft-7\", \"draft-10\", or \"none\" alone",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\n[[policy]]\nname = \"default\"\nheaders = [\"draft-6\", \"x-ratelimit\"]",
        wrong: "limit = 5\nwindow = \"1m\"\n[[policy]]\nname = \"default\"\nheaders = [\"draft-7\", \"draft-6\"]",
        told: "p.toml:7:23: headers: draft-7 and draft-6 use the same header names; write one of \"draft-6\", \"draft-7\" and \"draft-10\"",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\n[[policy]]\nname = \"default\"\ndeny_status = 403",
        wrong: "limit = 5\nwindow = \"1m\"\n[[policy]]\nname = \"default\"\ndeny_status = 399",
        told: "p.toml:7:15: deny_status: 399 is not the status of a refusal; from 400 to 599",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\n[[policy]]\nname = \"default\"\ndeny_status = 599",
        wrong: "limit = 5\nwindow = \"1m\"\n[[policy]]\nname = \"default\"\ndeny_status = 600",
        told: "p.toml:7:15: deny_status: 600 is not the status of a refusal; from 400 to 599",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\n[[policy]]\nname = \"default\"",
        wrong: "limit = 5\nwindow = \"1m\"\n[[policy]]\nname = \"defualt\"",
        told: "p.toml:6:8: name: policy \"defualt\" has no limit; give it a [[limit]] with this policy, or remove it",
    },
    Example {
        right: "limit = 5\nwindow = \"1m\"\n[[limit]]\nname = \"b\"\nunlimited = true",
        wrong: "limit = 5\nwindow = \"1m\"\n[[limit]]\nname = \"a\"\nunlimited = true",
        told: "p.toml:6:8: name: two limits of a policy must not have the same name; the first is in line 2",
    },
];

#[test]
fn each_field_is_taken_when_right_and_told_in_one_line_when_wrong() {
    let mut faults = Vec::new();
    for example in EXAMPLES {
        taken(&format!("{HEAD}{}\n", example.right));
        let told = told(&format!("{HEAD}{}\n", example.wrong));
        if told != example.told {
            faults.push(format!("{}\n  says {told}", example.wrong));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
