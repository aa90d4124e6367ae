//! What a development cluster writes into its files, and reads from its logs.

use std::time::Duration;

use clap::Parser as _;

use super::{forward_timeout, last_words};
use crate::arguments::{Arguments, Command};

#[test]
fn an_error_is_told_with_all_its_lines() {
    let log = "INFO the node starts\ntollgate: old\ntollgate: n1.toml:4:1: wrong\n 4 | x\n   | ^\n";
    assert_eq!(last_words(log), "n1.toml:4:1: wrong\n 4 | x\n   | ^");
    assert_eq!(last_words("first\nlast\n"), "last");
    assert_eq!(last_words(""), "nothing was logged");
}

#[test]
fn the_forward_timeout_fits_a_short_deadline() {
    let millis = |more: &[&str]| {
        let all = ["tollgate", "dev"].iter().chain(more);
        let Command::Dev(dev) = Arguments::parse_from(all).command else {
            panic!("not dev");
        };
        forward_timeout(&dev).map(|span: Duration| span.as_millis())
    };
    assert_eq!(millis(&[]), None);
    assert_eq!(millis(&["--check-deadline", "20ms"]), None);
    assert_eq!(millis(&["--check-deadline", "10ms"]), Some(5));
    assert_eq!(millis(&["--check-deadline", "1ms"]), Some(1));
    let both = ["--check-deadline", "10ms", "--forward-timeout", "9ms"];
    assert_eq!(millis(&both), Some(9));
}
