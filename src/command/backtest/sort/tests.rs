//! The order of requests, however little memory there is.

use proptest::{collection::vec, prelude::*};
use tollgate_limit::{Cost, Nanos};

use super::{SortBounds, Sorter};
use crate::access_log::Request;

fn request(time: u64, line: u64, values: &str) -> Request {
    let cost = Cost::new(line % 7).unwrap();
    Request::new(Nanos::new(time), line, cost, values.into())
}

fn sorted(requests: &[Request], bounds: SortBounds) -> (Vec<Request>, u64) {
    let mut sorter = Sorter::new(bounds);
    for request in requests {
        sorter.push(request.clone()).unwrap();
    }
    let runs = sorter.runs();
    (sorter.finish().unwrap().map(Result::unwrap).collect(), runs)
}

/// Room for a handful of requests.
const TINY: SortBounds = SortBounds {
    bytes: 600,
    fan_in: 3,
};

#[test]
fn equal_times_keep_the_order_of_their_lines() {
    let times = [5, 3, 5, 3, 9, 5, 0, 3];
    let requests: Vec<_> = (1..)
        .zip(times)
        .map(|(line, time)| request(time, line, "v"))
        .collect();
    for bounds in [SortBounds::default(), TINY] {
        let (sorted, _) = sorted(&requests, bounds);
        let lines: Vec<_> = sorted.iter().map(|request| request.line).collect();
        assert_eq!(lines, [7, 2, 4, 8, 1, 3, 6, 5]);
    }
}

#[test]
fn little_memory_makes_many_runs_and_the_same_order() {
    let mut state = 1_u64;
    let requests: Vec<_> = (1..=5000)
        .map(|line| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let length = (state >> 59) as usize;
            request(state >> 56, line, &"é\n".repeat(length))
        })
        .collect();
    let (in_memory, none) = sorted(&requests, SortBounds::default());
    let (in_files, runs) = sorted(&requests, TINY);
    assert_eq!(none, 0);
    assert!(runs > 500, "{runs} runs: the levels were not used");
    assert_eq!(in_memory, in_files);
}

#[test]
fn nothing_sorts_to_nothing() {
    assert_eq!(sorted(&[], TINY), (Vec::new(), 0));
}

proptest! {
    #[test]
    fn any_requests_come_out_once_and_in_order(times in vec(0_u64..50, 0..300), fan_in in 0_usize..5) {
        let requests: Vec<_> = (1..).zip(&times).map(|(line, time)| request(*time, line, "")).collect();
        let (sorted, _) = sorted(&requests, SortBounds { bytes: 500, fan_in });
        let mut wanted = requests;
        wanted.sort_by_key(|request| request.time);
        prop_assert_eq!(sorted, wanted);
    }
}
