//! Logs of every form, whole and broken.

use std::io::Write as _;

use tempfile::NamedTempFile;
use tollgate_limit::{Cost, MAX_UNITS, Nanos};

use super::{Fault, Fields, Form, Log, OpenError, Reading};
use crate::access_log::{MAX_LINE, TimeError};

fn file(text: impl AsRef<[u8]>) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_ref()).unwrap();
    file
}

fn fields(attributes: &[&str], cost: &[&str]) -> Fields {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Fields {
        attributes: owned(attributes),
        time: None,
        cost: owned(cost),
    }
}

/// Requests as (line, seconds, cost, values); faults as (line, lines, reason).
type Read = (Vec<(u64, u64, u64, String)>, Vec<(u64, u64, Fault)>);

fn read(text: impl AsRef<[u8]>, form: Form, fields: Fields) -> Read {
    let file = file(text);
    let mut log = Log::open(file.path(), None, fields).unwrap();
    assert_eq!(log.form(), form);
    let (mut requests, mut faults) = (Vec::new(), Vec::new());
    while let Some(reading) = log.next_reading().unwrap() {
        match reading {
            Reading::Request(it) => {
                let seconds = it.time.as_nanos() / 1_000_000_000;
                let values: Vec<_> = it.values().collect();
                requests.push((it.line, seconds, it.cost.units(), values.join("|")));
            }
            Reading::Fault { line, lines, why } => faults.push((line, lines, why)),
        }
    }
    (requests, faults)
}

fn request(line: u64, seconds: u64, cost: u64, values: &str) -> (u64, u64, u64, String) {
    (line, seconds, cost, values.to_owned())
}

#[test]
fn an_access_log_gives_its_attributes_and_its_bytes() {
    let text = "10.0.0.1 - ann [01/Jan/1970:00:00:05 +0000] \"GET /a?b HTTP/1.1\" 200 77 \"http://r/\" \"x\"\n\n\
                nonsense\n\
                10.0.0.2 - - [01/Jan/1970:00:00:04 +0000] \"-\" 400 -\n\
                10.0.0.3 - - [yesterday] \"GET / HTTP/1.1\" 200 1\n";
    let names = [
        "ip",
        "user",
        "method",
        "path",
        "status",
        "header.referer",
        "none",
    ];
    let (requests, faults) = read(text, Form::AccessLog, fields(&names, &["bytes"]));
    assert_eq!(
        requests,
        [
            request(1, 5, 77, "10.0.0.1|ann|GET|/a|200|http://r/|"),
            request(4, 4, 0, "10.0.0.2||||400||"),
        ]
    );
    let time = TimeError::Malformed {
        text: "yesterday".to_owned(),
    };
    assert_eq!(faults, [(3, 1, Fault::NotAnEntry), (5, 1, time.into())]);
}

#[test]
fn json_gives_every_scalar_member() {
    let text = concat!(
        "\u{feff}{\"ts\": 5.25, \"user\": \"a\\nb\", \"n\": 1.50, \"big\": 18446744073709551615, \"on\": true}\n",
        "{\"@timestamp\": \"1970-01-01T00:00:06Z\", \"ts\": [], \"user\": null, \"n\": {}, \"on\": [1]}\n",
        "{\"time\": 7, \"ts\": 1, \"user\": \"first\", \"user\": \"last\"}\n",
        "{\"Time\": 8000000000000}\n",
        "{\"user\": \"x\"}\n",
        "{\"time\": true}\n",
        "[1]\n{\"time\": 1",
    );
    let names = ["user", "n", "big", "on"];
    let (requests, faults) = read(text, Form::Json, fields(&names, &[]));
    assert_eq!(
        requests,
        [
            request(1, 5, 1, "a?b|1.5|18446744073709551615|true"),
            request(2, 6, 1, "|||"),
            request(3, 7, 1, "last|||"),
            request(4, 8_000_000_000, 1, "|||"),
        ]
    );
    let lines: Vec<_> = faults.iter().map(|(line, ..)| *line).collect();
    assert_eq!(lines, [5, 6, 7, 8], "{faults:?}");
    assert!(matches!(&faults[0].2, Fault::Absent { name } if name == "time"));
    assert!(matches!(&faults[2].2, Fault::NotJson(_)));
}

#[test]
fn csv_is_read_by_the_names_of_its_columns() {
    let text = "user,TimeStamp,in,out\r\n\
                \"a,\"\"b\"\"\",1970-01-01 00:00:05.5,1,2\r\n\
                \r\n\
                \"two\nlines\",6, 3,4\r\n\
                short,7\r\n\
                u,8,x,1\r\n\
                u,9,-1,1\r\n\
                u,10,9007199254740992,1\r\n\
                last,11,0,0";
    let (requests, faults) = read(text, Form::Csv, fields(&["user", "gone"], &["in", "out"]));
    assert_eq!(
        requests,
        [
            request(2, 5, 3, "a,\"b\"|"),
            request(4, 6, 7, "two?lines|"),
            request(10, 11, 0, "last|"),
        ]
    );
    let cost = |text: &str| Fault::Cost {
        name: "in".to_owned(),
        text: text.to_owned(),
    };
    assert_eq!(
        faults,
        [
            (
                6,
                1,
                Fault::Width {
                    found: 2,
                    wanted: 4
                }
            ),
            (7, 1, cost("x")),
            (8, 1, cost("-1")),
            (9, 1, Fault::CostTooLarge),
        ]
    );
}

#[test]
fn a_quote_that_is_never_closed_takes_bounded_memory_and_is_told() {
    let mut text = "time,user\n1,a\n2,\"open\n".to_owned();
    for second in 0..20_000 {
        text.push_str(&format!("{second},b\n"));
    }
    assert!(text.len() > 2 * MAX_LINE);
    let (requests, faults) = read(&text, Form::Csv, fields(&["user"], &[]));
    assert_eq!(requests, [request(2, 1, 1, "a")]);
    assert_eq!(faults, [(3, 20_001, Fault::TooLong)]);
    let wide = format!("time,user\n1,a\n2{}\n3,c\n", ",".repeat(5000));
    let (requests, faults) = read(&wide, Form::Csv, fields(&["user"], &[]));
    assert_eq!(requests, [request(2, 1, 1, "a"), request(4, 3, 1, "c")]);
    assert_eq!(faults, [(3, 1, Fault::TooLong)]);
}

#[test]
fn the_end_of_a_line_that_is_too_long_is_not_looked_at() {
    let long = "x".repeat(2 * MAX_LINE);
    let text = format!(
        "10.0.0.1 - - [01/Jan/1970:00:00:05 +0000] \"GET /{long} HTTP/1.1\" 200 1\n\
         10.0.0.1 - - [01/Jan/1970:00:00:06 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"{long}\"\n\
         10.0.0.1 - - [01/Jan/1970:00:00:07 +0000] \"GET / HTTP/1.1\" 200 1\n"
    );
    let file = file(&text);
    let mut log = Log::open(file.path(), Some(Form::AccessLog), fields(&["ip"], &[])).unwrap();
    assert!(matches!(
        log.next_reading().unwrap(),
        Some(Reading::Fault {
            line: 1,
            lines: 1,
            why: Fault::NotAnEntry
        })
    ));
    for seconds in [6, 7] {
        let Some(Reading::Request(it)) = log.next_reading().unwrap() else {
            panic!("line {seconds} is a request");
        };
        assert_eq!(it.time, Nanos::from_millis(seconds * 1000));
        assert_eq!(it.cost, Cost::ONE);
    }
    assert_eq!(log.next_reading().unwrap(), None);
    assert_eq!(log.position(), log.length());
}

#[test]
fn columns_that_are_not_there_are_told_before_anything_is_read() {
    let open = |text: &str, time: Option<&str>, cost: &[&str]| {
        let file = file(text);
        let mut fields = fields(&[], cost);
        fields.time = time.map(str::to_owned);
        Log::open(file.path(), None, fields).unwrap_err()
    };
    let csv = "time,user\n1,a\n";
    let told = open(csv, Some("when"), &[]).to_string();
    assert_eq!(told, "has no column `when`; its columns are time, user");
    let told = open(csv, None, &["tokens"]).to_string();
    assert_eq!(told, "has no column `tokens`; its columns are time, user");
    let log = "10.0.0.1 - - [01/Jan/1970:00:00:05 +0000] \"GET / HTTP/1.1\" 200 1\n";
    assert!(matches!(
        open(log, Some("time"), &[]),
        OpenError::NotOfAccessLogs { .. }
    ));
    assert!(matches!(
        open(log, None, &["tokens"]),
        OpenError::NotOfAccessLogs { .. }
    ));
    assert!(matches!(open("hello\n", None, &[]), OpenError::UnknownForm));
    assert!(matches!(open("", None, &[]), OpenError::UnknownForm));
    let missing = Log::open("/nonexistent".as_ref(), None, Fields::default());
    assert!(matches!(missing, Err(OpenError::Io(_))));
}

#[test]
fn costs_are_bounded() {
    let text = format!("time,n\n1,{MAX_UNITS}\n2,{}\n", MAX_UNITS + 1);
    let (requests, faults) = read(text, Form::Csv, fields(&[], &["n"]));
    assert_eq!(requests, [request(2, 1, MAX_UNITS, "")]);
    assert!(matches!(&faults[..], [(3, 1, Fault::Cost { .. })]));
}

#[test]
fn bytes_of_any_kind_are_read_or_refused() {
    for form in [Form::AccessLog, Form::Json, Form::Csv] {
        let mut bytes = match form {
            Form::Csv => b"time,a\n".to_vec(),
            Form::AccessLog | Form::Json => Vec::new(),
        };
        let mut state = 7_u64;
        bytes.extend((0..100_000).map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let byte = (state >> 56) as u8;
            if byte < 60 {
                b"{}\"\n,[]/: \\-0"[usize::from(byte) % 13]
            } else {
                byte
            }
        }));
        let file = file(bytes);
        let mut log = Log::open(file.path(), Some(form), fields(&["a"], &[])).unwrap();
        while log.next_reading().unwrap().is_some() {}
        assert_eq!(log.position(), log.length(), "{form:?}");
    }
}
