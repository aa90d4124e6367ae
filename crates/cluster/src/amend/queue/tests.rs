//! Tests of the queue of amendments.

use tollgate_limit::{
    Algorithm, Ask, Change, Concurrency, Cost, KeyHash, Nanos, OldestSlice, Rule, SlidingWindow,
    Window,
};
use tollgate_wire::identity::BootId;

use super::{AMEND_WINDOW, AmendQueue, Amendment, QueueFull, Returned};
use crate::amend::{Acceptance, AmendWindow};

const RETRY: Nanos = at(100);

const fn at(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

fn amendment(change: Change) -> Amendment {
    let rule = Rule::new(Algorithm::SlidingWindow(SlidingWindow {
        limit: 5,
        window: Window::new(at(1_000)).unwrap(),
        slices: 1,
        oldest: OldestSlice::Weighted,
    }));
    let key = KeyHash::from_halves(1, 2);
    let cost = Cost::ONE;
    Amendment {
        ask: Ask { key, rule, cost },
        change,
    }
}

fn give_back(slice: u64) -> Amendment {
    amendment(Change::GiveBack { slice })
}

fn due(queue: &mut AmendQueue, now: u64) -> Vec<u64> {
    queue
        .due(at(now), RETRY)
        .map(|(sequence, _)| sequence)
        .collect()
}

#[test]
fn an_amendment_is_repeated_until_acknowledged() {
    let mut queue = AmendQueue::new(BootId(1));
    assert_eq!(queue.push(at(0), give_back(7)), Ok(0));
    assert_eq!(queue.push(at(0), give_back(8)), Ok(1));
    let sent: Vec<_> = queue.due(at(0), RETRY).collect();
    assert_eq!(sent, [(0, give_back(7)), (1, give_back(8))]);
    assert_eq!(due(&mut queue, 99), []);
    assert!(queue.is_outstanding(0));
    queue.acknowledge(0);
    queue.acknowledge(0);
    queue.acknowledge(55);
    assert!(!queue.is_outstanding(0) && queue.is_outstanding(1));
    assert_eq!(queue.len(), 1);
    assert_eq!(due(&mut queue, 100), [1]);
    assert_eq!(
        queue.push(at(100), give_back(9)),
        Ok(2),
        "no number is used twice"
    );
    assert_eq!(due(&mut queue, 150), [2]);
    queue.acknowledge(2);
    queue.acknowledge(1);
    assert!(queue.is_empty());
    assert_eq!(due(&mut queue, 900), []);
    assert_eq!(queue.push(at(900), give_back(9)), Ok(3));
}

#[test]
fn it_ends_with_its_window() {
    let mut queue = AmendQueue::new(BootId(1));
    queue.push(at(0), give_back(1)).unwrap();
    queue.push(at(500), give_back(2)).unwrap();
    queue.push_until(at(600), give_back(3), ()).unwrap();
    queue.expire(at(599));
    assert_eq!(queue.len(), 3);
    queue.expire(at(600));
    assert_eq!(queue.len(), 2);
    queue.expire(at(1_000));
    assert_eq!(due(&mut queue, 1_000), [1]);
    queue.expire(at(1_500));
    assert!(queue.is_empty());
}

#[test]
fn what_was_for_another_boot_comes_out_as_what_means_as_much_to_any() {
    let mut queue = AmendQueue::new(BootId(1));
    queue.push(at(0), give_back(1)).unwrap();
    let lasting = [
        Change::Refund,
        Change::Charge,
        Change::Failure,
        Change::Reset,
    ]
    .map(amendment);
    for amendment in lasting {
        queue.push(at(0), amendment).unwrap();
    }
    assert_eq!(queue.handle_owner(BootId(1)), []);
    assert_eq!(queue.len(), 5);
    let [refund, ..] = lasting;
    let returned = [refund].into_iter().chain(lasting).map(|amendment| {
        let returned = Returned {
            amendment,
            expires: at(1_000),
            boot: None,
        };
        (returned, ())
    });
    assert_eq!(queue.handle_owner(BootId(2)), returned.collect::<Vec<_>>());
    assert!(queue.is_empty());
    assert_eq!(
        queue.push(at(0), give_back(2)),
        Ok(5),
        "the new boot may have heard of the old numbers"
    );
}

#[test]
fn what_the_owner_does_not_take_comes_out() {
    let mut queue = AmendQueue::new(BootId(1));
    let charge = amendment(Change::Charge);
    queue.push(at(0), give_back(1)).unwrap();
    queue.push(at(0), charge).unwrap();
    let mut release = give_back(9);
    release.ask.rule.algorithm = Algorithm::Concurrency(Concurrency {
        limit: 5,
        ttl: Window::new(at(1_000)).unwrap(),
    });
    queue.push(at(0), release).unwrap();
    let refund = amendment(Change::Refund);
    assert_eq!(queue.take_back(0).unwrap().0.amendment, refund);
    assert_eq!(
        queue.take_back(2).unwrap().0.amendment,
        release,
        "by number"
    );
    let (returned, ()) = queue.take_back(1).unwrap();
    assert_eq!((returned.amendment, returned.expires), (charge, at(1_000)));
    assert_eq!(queue.take_back(1), None, "once");
    assert_eq!(due(&mut queue, 100), []);
}

#[test]
fn what_is_held_is_held_until_the_owner_has_it_or_it_is_of_no_use() {
    let held = std::sync::Arc::new(());
    let holders = || std::sync::Arc::strong_count(&held) - 1;
    let mut queue = AmendQueue::new(BootId(1));
    let charge = amendment(Change::Charge);
    for expires in [500, 900, 900, 900] {
        let held = std::sync::Arc::clone(&held);
        queue.push_until(at(expires), charge, held).unwrap();
    }
    assert_eq!(queue.due(at(0), RETRY).count(), 4);
    assert_eq!(holders(), 4);
    queue.acknowledge(1);
    assert_eq!(holders(), 3);
    queue.expire(at(500));
    assert_eq!(holders(), 2);
    let returned = (queue.take_back(2), queue.drain());
    assert_eq!(holders(), 2);
    drop(returned);
    assert_eq!(holders(), 0);
}

#[test]
fn all_that_is_outstanding_fits_the_owners_window() {
    let mut queue = AmendQueue::new(BootId(1));
    let mut owner = AmendWindow::new();
    for _ in 0..AMEND_WINDOW {
        queue.push(at(0), give_back(1)).unwrap();
    }
    assert_eq!(queue.push(at(0), give_back(1)), Err(QueueFull(())));
    queue.acknowledge(5);
    assert_eq!(
        queue.push(at(0), give_back(1)),
        Err(QueueFull(())),
        "0 holds the window"
    );
    queue.acknowledge(0);
    assert_eq!(queue.push(at(0), give_back(1)), Ok(1_024));
    let mut sent = due(&mut queue, 0);
    sent.reverse();
    for sequence in sent {
        assert_eq!(owner.accept(sequence), Acceptance::Fresh);
    }
}

#[test]
fn a_give_back_is_one_to_the_boot_that_charged_and_a_refund_to_another() {
    let change = |amendment, boot| Returned {
        amendment,
        expires: at(9),
        boot,
    };
    let (charged, other) = (BootId(1), BootId(2));
    let told = change(give_back(7), Some(charged));
    assert_eq!(told.for_owner(charged), told);
    let refund = change(amendment(Change::Refund), None);
    assert_eq!(told.for_owner(other), refund);
    assert_eq!(refund.for_owner(other), refund);
    assert_eq!(refund.amendment.ask, told.amendment.ask, "of as much");
    let for_any = change(give_back(7), None);
    assert_eq!(for_any.for_owner(other), for_any);
}
