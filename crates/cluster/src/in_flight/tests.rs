//! Tests of the in-flight queue, against a plain map.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tollgate_limit::Nanos;

use super::{Full, InFlight, MAX_DEADLINES, MAX_IN_FLIGHT, Pending};

const fn at(time: u64) -> Nanos {
    Nanos::new(time)
}

fn insert(queue: &mut InFlight<u64>, number: u64, deadline: u64) -> Result<(), Full> {
    queue.insert(number, at(0), at(deadline), number)
}

fn expired(queue: &mut InFlight<u64>, now: u64) -> Vec<u64> {
    let mut numbers = Vec::new();
    queue.expire(at(now), |number, pending| {
        assert_eq!(number, pending.payload);
        numbers.push(number);
    });
    numbers
}

#[test]
fn an_answer_takes_its_check_once() {
    let mut queue = InFlight::new();
    queue.insert(7, at(1), at(21), "seven").unwrap();
    let pending = Pending {
        sent_at: at(1),
        deadline: at(21),
        payload: "seven",
    };
    assert_eq!(queue.take(6), None);
    assert_eq!(queue.take(8), None);
    assert_eq!(queue.take(7), Some(pending));
    assert_eq!(queue.take(7), None);
    assert!(queue.is_empty());
    assert_eq!(queue.next_deadline(), None);
}

#[test]
fn checks_expire_by_deadline_and_not_before() {
    let mut queue = InFlight::new();
    for (number, deadline) in [(0, 20), (1, 30), (2, 10), (3, 30)] {
        insert(&mut queue, number, deadline).unwrap();
    }
    assert_eq!(queue.next_deadline(), Some(at(10)));
    assert!(expired(&mut queue, 9).is_empty());
    assert_eq!(expired(&mut queue, 25), [2, 0]);
    assert_eq!(queue.next_deadline(), Some(at(30)));
    assert_eq!(expired(&mut queue, 30), [1, 3]);
    assert!(queue.is_empty());
}

#[test]
fn a_number_may_come_back_but_not_twice_at_once() {
    let mut queue = InFlight::new();
    insert(&mut queue, 5, 10).unwrap();
    insert(&mut queue, 6, 10).unwrap();
    assert_eq!(insert(&mut queue, 5, 12), Err(Full), "it is in flight");
    queue.take(5).unwrap();
    insert(&mut queue, 5, 12).unwrap();
    assert_eq!(expired(&mut queue, 11), [6]);
    assert_eq!(expired(&mut queue, 12), [5]);
}

#[test]
fn a_lost_connection_gives_all_back() {
    let mut queue = InFlight::new();
    for number in [3, 4, 9] {
        insert(&mut queue, number, 10).unwrap();
    }
    queue.take(4).unwrap();
    let mut lost = Vec::new();
    queue.drain(|number, _pending| lost.push(number));
    assert_eq!(lost, [3, 9]);
    assert!(queue.is_empty());
    assert_eq!(queue.next_deadline(), None);
    insert(&mut queue, 10, 10).unwrap();
    assert_eq!(queue.len(), 1);
}

#[test]
fn it_is_bounded_in_number_and_span() {
    let mut queue = InFlight::new();
    let most = u64::try_from(MAX_IN_FLIGHT).unwrap();
    for number in 100..100 + most {
        insert(&mut queue, number, 10).unwrap();
    }
    assert_eq!(insert(&mut queue, 100 + most, 10), Err(Full));
    assert_eq!(insert(&mut queue, 99, 10), Err(Full));
    assert_eq!(insert(&mut queue, u64::MAX, 10), Err(Full));
    assert_eq!(queue.len(), MAX_IN_FLIGHT);
    queue.take(101).unwrap();
    assert_eq!(
        insert(&mut queue, 100 + most, 10),
        Err(Full),
        "100 holds the span"
    );
    queue.take(100).unwrap();
    insert(&mut queue, 100 + most, 10).unwrap();
    insert(&mut queue, 101 + most, 10).unwrap();
}

/// One check that waits long must not let the deadlines of those behind it pile up.
#[test]
fn deadlines_of_answered_checks_do_not_pile_up() {
    let mut queue = InFlight::new();
    insert(&mut queue, 0, 5).unwrap();
    for again in 0..4 * MAX_DEADLINES {
        let deadline = if again % 2 == 0 { 10 } else { 9 };
        insert(&mut queue, 1, deadline).unwrap();
        queue.take(1).unwrap();
    }
    assert!(queue.in_order.len() <= MAX_DEADLINES + 1);
    assert!(queue.stragglers.len() <= MAX_DEADLINES + 1);
    assert_eq!(expired(&mut queue, 5), [0]);
}

/// After a warm-up the rings do not grow any more.
#[test]
fn steady_work_allocates_nothing() {
    let mut queue = InFlight::new();
    let mut capacities = Vec::new();
    for number in 0..100_000_u64 {
        insert(&mut queue, number, number + 64).unwrap();
        if number >= 64 {
            queue.take(number - 64).unwrap();
        }
        if number == 1_000 {
            capacities = vec![queue.places.capacity(), queue.in_order.capacity()];
        }
    }
    let after = vec![queue.places.capacity(), queue.in_order.capacity()];
    assert_eq!(after, capacities);
    assert_eq!(queue.stragglers.capacity(), 0);
}

#[derive(Clone, Debug)]
enum Event {
    Insert { back: u64, deadline: u64 },
    Take { back: u64 },
    Expire { now: u64 },
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0_u64..3, 0_u64..60).prop_map(|(back, deadline)| Event::Insert { back, deadline }),
        3 => (0_u64..30).prop_map(|back| Event::Take { back }),
        1 => (0_u64..50).prop_map(|now| Event::Expire { now }),
    ]
}

proptest! {
    /// The queue is a map from number to deadline, whatever the order of events.
    #[test]
    fn it_behaves_as_a_map(events in prop::collection::vec(event(), 1..200)) {
        let mut queue = InFlight::new();
        let mut model = BTreeMap::new();
        let mut next = 5_u64;
        for event in events {
            match event {
                Event::Insert { back, deadline } => {
                    next += u64::from(back == 0);
                    let number = next.saturating_sub(back);
                    let free = !model.contains_key(&number);
                    prop_assert_eq!(insert(&mut queue, number, deadline).is_ok(), free);
                    model.entry(number).or_insert(deadline);
                }
                Event::Take { back } => {
                    let number = next.saturating_sub(back);
                    let taken = queue.take(number).map(|pending| pending.deadline);
                    prop_assert_eq!(taken, model.remove(&number).map(at));
                }
                Event::Expire { now } => {
                    let mut gone = expired(&mut queue, now);
                    prop_assert!(gone.is_sorted_by_key(|number| model[number]));
                    gone.sort_unstable();
                    let due = model.iter().filter(|(_, deadline)| **deadline <= now);
                    let due: Vec<_> = due.map(|(number, _)| *number).collect();
                    prop_assert_eq!(gone, due);
                    model.retain(|_, deadline| *deadline > now);
                }
            }
            prop_assert_eq!(queue.len(), model.len());
            prop_assert_eq!(queue.next_deadline(), model.values().min().copied().map(at));
        }
    }
}
