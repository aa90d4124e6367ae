//! What is asked of requests, ordinary and hostile.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderName, HeaderValue, Request, request::Parts};
use proptest::prelude::*;
use tollgate_limit::{Attributes, MAX_UNITS, MAX_VALUE_LENGTH};

use super::{Description, DescriptionError, Question};
use crate::{Check, Pairs, Subject};

fn head(request: http::request::Builder) -> Parts {
    request.body(()).unwrap().into_parts().0
}

/// Policy and attributes of a check, as text.
fn told(check: &Check<'_>) -> (String, Vec<(String, String)>) {
    let Subject::Policy { name, attributes } = &check.subject else {
        panic!("not of a policy: {check:?}");
    };
    let pairs = attributes.iter();
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    (name.clone().into_owned(), pairs.collect())
}

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    let all = all.iter();
    all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// Of what `value` becomes as an attribute; the node's own rules must take it.
fn fitted(value: &str) -> String {
    let value = value.to_owned();
    let question = Question::from_fn(move |_| Check {
        subject: Subject::Policy {
            name: "p".into(),
            attributes: Pairs::from_iter([("it", value.clone())]),
        },
        cost: 1,
        peek: false,
    });
    let parts = head(Request::get("/"));
    let (_, mut all) = told(&question.check(&parts));
    let (name, value) = all.remove(0);
    let taken = Attributes::new().insert(name, value.clone());
    assert_eq!(taken, Ok(()), "{value:?}");
    value
}

#[test]
fn a_default_question_tells_method_path_and_host() {
    let question = Question::default();
    let parts = head(Request::post("/v1/a%20b?q=secret").header("host", "Shop.Example.:8443"));
    let check = question.check(&parts);
    assert_eq!((check.cost, check.peek), (1, false));
    let expected = pairs(&[
        ("method", "POST"),
        ("path", "/v1/a%20b"),
        ("host", "shop.example"),
    ]);
    assert_eq!(told(&check), ("default".to_owned(), expected));
}

#[test]
fn the_target_names_the_host_before_the_header_does() {
    let question = Question::default();
    let parts = head(Request::get("http://A.example:80/x").header("host", "b.example"));
    let (_, all) = told(&question.check(&parts));
    assert!(all.contains(&("host".to_owned(), "a.example".to_owned())));
    let parts = head(Request::get("/x"));
    let (_, all) = told(&question.check(&parts));
    assert_eq!(all, pairs(&[("method", "GET"), ("path", "/x")]));
}

#[test]
fn a_description_tells_what_was_chosen() {
    let chosen = ["x-api-key", "X-Absent", "x-api-key"].map(|it| it.parse::<HeaderName>().unwrap());
    let question = Question::from(
        Description::new("api")
            .with_headers(chosen)
            .unwrap()
            .with_peer(|extensions| Some(extensions.get::<SocketAddr>()?.ip()))
            .with_cost(|request| if request.method == "GET" { 3 } else { u64::MAX }),
    );
    let mut parts = head(
        Request::get("/")
            .header("x-api-key", "k1")
            .header("x-api-key", "k2"),
    );
    let mapped: IpAddr = "::ffff:203.0.113.7".parse().unwrap();
    parts.extensions.insert(SocketAddr::new(mapped, 1));
    let check = question.check(&parts);
    assert_eq!(check.cost, 3);
    let expected = pairs(&[
        ("method", "GET"),
        ("path", "/"),
        ("header.x-api-key", "k1"),
        ("ip", "203.0.113.7"),
    ]);
    assert_eq!(told(&check), ("api".to_owned(), expected));
    let parts = head(Request::post("/"));
    assert_eq!(question.check(&parts).cost, MAX_UNITS);
}

#[test]
fn headers_that_a_check_has_no_room_for_are_refused() {
    let names =
        |count: usize| (0..count).map(|it| HeaderName::try_from(format!("x-{it}")).unwrap());
    assert!(Description::default().with_headers(names(60)).is_ok());
    let error = Description::default().with_headers(names(61)).unwrap_err();
    assert_eq!(error, DescriptionError::TooManyHeaders);
    assert_eq!(error.to_string(), "headers: choose at most 60");
    let long = |length: usize| HeaderName::try_from("x".repeat(length)).unwrap();
    assert!(Description::default().with_headers([long(121)]).is_ok());
    let error = Description::default().with_headers([long(122)]);
    assert!(error.unwrap_err().to_string().ends_with("121 bytes"));
}

#[test]
fn a_long_value_keeps_its_ends_and_its_difference() {
    let exact = "é".repeat(MAX_VALUE_LENGTH / 2);
    assert_eq!(fitted(&exact), exact);
    let one = format!("/api/{}1{}.php", "x".repeat(1000), "é".repeat(1000));
    let two = one.replace('1', "2");
    assert!(fitted(&one).starts_with("/api/x") && fitted(&one).ends_with(".php"));
    assert_ne!(fitted(&one), fitted(&two));
    assert_eq!(fitted(&one), fitted(&one));
}

#[test]
fn control_characters_are_told_apart_without_being_told() {
    let all = ["ab", "a\tb", "a\u{85}b", "a\t\tb"].map(fitted);
    assert_eq!(all[0], "ab");
    for (place, one) in all.iter().enumerate() {
        assert!(all[..place].iter().all(|other| other != one), "{all:?}");
    }
}

#[test]
fn bytes_that_are_no_text_are_told_apart() {
    let chosen = [HeaderName::from_static("x")];
    let question = Question::from(Description::default().with_headers(chosen).unwrap());
    let [one, two] = [b"\xff", b"\xfe"].map(|bytes| {
        let value = HeaderValue::from_bytes(bytes).unwrap();
        told(&question.check(&head(Request::get("/").header("x", value)))).1
    });
    assert_ne!(one, two);
}

proptest! {
    #[test]
    fn whatever_a_request_holds_fits(value in "(\\PC|\\p{Cc}){0,2000}") {
        fitted(&value);
    }

    #[test]
    fn a_legal_value_stays(value in "\\PC{0,200}") {
        prop_assert_eq!(fitted(&value), value);
    }
}
