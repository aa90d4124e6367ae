//! Lines of both forms, and lines of neither.

use super::Entry;

fn attributes(line: &str) -> Vec<(&'static str, String)> {
    let entry = Entry::parse(line).unwrap();
    entry
        .attributes()
        .map(|(name, value)| (name, value.into_owned()))
        .collect()
}

fn pairs(list: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    list.iter()
        .map(|(name, value)| (*name, (*value).to_owned()))
        .collect()
}

#[test]
fn the_common_form_is_read() {
    let line = r#"10.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /a.gif HTTP/1.0" 200 2326"#;
    let wanted = [
        ("ip", "10.0.0.1"),
        ("method", "GET"),
        ("path", "/a.gif"),
        ("status", "200"),
        ("user", "frank"),
    ];
    assert_eq!(attributes(line), pairs(&wanted));
    let entry = Entry::parse(line).unwrap();
    assert_eq!(
        (entry.bytes, entry.time),
        (2326, "10/Oct/2000:13:55:36 -0700")
    );
}

#[test]
fn the_combined_form_is_read_and_the_query_left_out() {
    let line = r#"2001:db8::1 - - [17/May/2015:10:05:03 +0000] "POST /s?q=1 HTTP/2.0" 429 - "http://a/" "curl/8 (\"x\")""#;
    let wanted = [
        ("ip", "2001:db8::1"),
        ("method", "POST"),
        ("path", "/s"),
        ("status", "429"),
        ("header.referer", "http://a/"),
        ("header.user-agent", "curl/8 (\"x\")"),
    ];
    assert_eq!(attributes(line), pairs(&wanted));
}

#[test]
fn a_host_before_the_client_is_read() {
    for (host, shown) in [
        ("a.example:443", "a.example"),
        ("a.example", "a.example"),
        ("[2001:db8::1]:80", "[2001:db8::1]"),
    ] {
        let line = format!(r#"{host} 10.0.0.1 - - [t] "GET / HTTP/1.1" 200 0"#);
        let wanted = [
            ("ip", "10.0.0.1"),
            ("method", "GET"),
            ("path", "/"),
            ("status", "200"),
            ("host", shown),
        ];
        assert_eq!(attributes(&line), pairs(&wanted));
    }
}

#[test]
fn a_request_that_was_none_has_no_method_or_path() {
    for request in ["-", "", r"\x16\x03\x01", "garbage"] {
        let line = format!(r#"10.0.0.1 - - [t] "{request}" 400 0 "-" "-""#);
        assert_eq!(
            attributes(&line),
            pairs(&[("ip", "10.0.0.1"), ("status", "400")]),
            "{request}"
        );
    }
}

#[test]
fn values_are_made_to_fit_attributes() {
    let long = "é".repeat(600);
    let line = format!("10.0.0.1 - a\tb [t] \"GET /{long} HTTP/1.1\" 200 0");
    let found = attributes(&line);
    assert!(found.iter().all(|(_, value)| value.len() <= 1024));
    assert!(found.contains(&("user", "a?b".to_owned())));
}

#[test]
fn all_else_is_refused() {
    for line in [
        "",
        " ",
        "10.0.0.1",
        "10.0.0.1 - -",
        "10.0.0.1 - - [t] GET / HTTP/1.1 200 0",
        r#"10.0.0.1 - - [t] "GET / HTTP/1.1"#,
        r#"10.0.0.1 - - [t] "GET / HTTP/1.1" ok 0"#,
        r#"10.0.0.1 - - [t] "GET / HTTP/1.1" 200 many"#,
        r#"10.0.0.1 - - "GET / HTTP/1.1" 200 0"#,
        "\u{0}\u{0}\"[]\"",
    ] {
        assert_eq!(Entry::parse(line), None, "{line:?}");
    }
}
