//! The ring of calls, against a plain list.

use std::time::Duration;

use proptest::prelude::*;
use tokio::time::Instant;

use super::{Call, Calls, SPAN_PER_CALL, Taken};
use crate::clock;

fn call(start: Instant, millis: u64) -> Call<u64> {
    Call {
        sent: start,
        due: start + Duration::from_millis(millis),
        reply: millis,
    }
}

#[test]
fn replies_in_any_order_find_their_calls() {
    let start = clock::now();
    let mut calls = Calls::new(8);
    for millis in 1..=5 {
        assert_eq!(calls.next_id(), Some(millis));
        calls.push(call(start, millis));
    }
    for id in [3, 1, 5, 2, 4] {
        assert_eq!(calls.take(id), Taken::Call(id));
        assert_eq!(calls.take(id), Taken::Late);
    }
    assert_eq!(calls.next_due(), None);
    assert_eq!(
        (calls.take(6), calls.take(0)),
        (Taken::Unknown, Taken::Unknown)
    );
    assert_eq!(calls.next_id(), Some(6));
}

#[test]
fn calls_in_flight_are_bounded() {
    let start = clock::now();
    let mut calls = Calls::new(2);
    calls.push(call(start, 1));
    calls.push(call(start, 2));
    assert_eq!(calls.next_id(), None);
    assert_eq!(calls.take(2), Taken::Call(2));
    assert_eq!(calls.next_id(), Some(3));
}

#[test]
fn one_slow_reply_stops_only_a_whole_span() {
    let start = clock::now();
    let mut calls = Calls::new(4);
    calls.push(call(start, 0));
    let mut behind = 0;
    while let Some(id) = calls.next_id() {
        calls.push(call(start, id));
        assert_eq!(calls.take(id), Taken::Call(id));
        behind += 1;
    }
    assert_eq!(behind, 4 * SPAN_PER_CALL - 1);
    assert_eq!(calls.take(1), Taken::Call(0));
    assert!(calls.next_id().is_some());
}

proptest! {
    /// Ask, reply and time at random: each call ends once, the due ones first and none too early.
    #[test]
    fn every_call_ends_once(steps in prop::collection::vec((0_u8..3, 0_u64..12), 1..300)) {
        let start = clock::now();
        let mut calls = Calls::new(7);
        let (mut open, mut now, mut asked) = (Vec::new(), 0, 0);
        for (step, number) in steps {
            match step {
                0 => match calls.next_id() {
                    Some(id) => {
                        asked += 1;
                        prop_assert_eq!(id, asked);
                        calls.push(Call { sent: start, due: start + Duration::from_millis(now + 5), reply: id });
                        open.push((id, now + 5));
                    }
                    None => prop_assert!(open.len() == 7),
                },
                1 => {
                    let id = asked.saturating_sub(number);
                    let place = open.iter().position(|(known, _)| *known == id);
                    match calls.take(id) {
                        Taken::Call(reply) => {
                            prop_assert_eq!(reply, id);
                            open.remove(place.unwrap());
                        }
                        Taken::Late => prop_assert!(place.is_none() && id >= 1),
                        Taken::Unknown => prop_assert_eq!(id, 0),
                    }
                }
                _ => {
                    now += number;
                    while let Some(call) = calls.pop_due(start + Duration::from_millis(now)) {
                        let (id, due) = open.remove(0);
                        prop_assert_eq!(call.reply, id);
                        prop_assert!(due <= now);
                    }
                    prop_assert!(open.first().is_none_or(|(_, due)| *due > now));
                }
            }
        }
        while let Some(call) = calls.pop() {
            prop_assert_eq!(call.reply, open.remove(0).0);
        }
        prop_assert!(open.is_empty());
    }
}
