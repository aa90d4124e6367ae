//! Buckets: a level that drains is never counted twice.

use super::{Foreign, Node, START, WINDOW, leaky_bucket, token_bucket};
use crate::{
    counter::{HeldMut, merge, refund},
    rule::Rule,
    units::Cost,
};

/// Time in which one unit drains.
const UNIT: u64 = WINDOW / 40;

fn nodes(rule: Rule) -> [Node; 3] {
    [0, 1, 2].map(|number| Node::new(rule, number, 1000 * number as u64))
}

fn take_all(node: &mut Node, now: u64, from: &Node) {
    for sent in from.send(now) {
        node.take(now, &sent);
    }
}

#[test]
fn a_copy_stands_at_the_fullest_level_and_drains() {
    for rule in [token_bucket(), leaky_bucket()] {
        let [mut first, mut second, mut copy] = nodes(rule);
        first.charge(START, 20, 0);
        take_all(&mut second, START, &first);
        second.charge(START, 5, 0);
        take_all(&mut copy, START + UNIT, &first);
        assert_eq!(copy.used(START + UNIT), 19);
        take_all(&mut copy, START + UNIT, &second);
        assert_eq!(copy.used(START + UNIT), 24);
        assert_eq!(copy.used(START + 25 * UNIT), 0);
    }
}

#[test]
fn growth_is_added_once_and_only_what_is_left_of_it() {
    let [mut owner, mut other, _] = nodes(token_bucket());
    owner.charge(START, 10, 0);
    take_all(&mut other, START, &owner);
    other.charge(START, 4, 0);
    for _ in 0..3 {
        take_all(&mut owner, START, &other);
        assert_eq!(owner.used(START), 14);
    }
    other.charge(START + UNIT, 1, 0);
    take_all(&mut owner, START + UNIT, &other);
    assert_eq!(owner.used(START + UNIT), 14);
    // What was charged long ago has drained.
    let late = START + 100 * UNIT;
    other.charge(late - 3 * UNIT, 5, 0);
    take_all(&mut owner, late, &other);
    assert_eq!(owner.used(late), 2);
}

#[test]
fn a_counter_that_came_again_is_no_growth_of_the_one_before() {
    let [mut owner, mut other, _] = nodes(token_bucket());
    owner.charge(START, 1, 0);
    other.charge(START, 30, 0);
    take_all(&mut owner, START, &other);
    assert_eq!(owner.used(START), 31);
    // All has drained, and the other forgot its counter.
    let late = START + 50 * UNIT;
    (other.total, other.version) = (None, 100);
    other.charge(late, 35, 0);
    take_all(&mut owner, late, &other);
    assert_eq!(owner.used(late), 35);
}

#[test]
fn a_refund_is_not_undone_and_a_give_back_takes_nothing_of_others() {
    let rule = token_bucket();
    let [mut owner, mut other, _] = nodes(rule);
    other.charge(START, 10, 0);
    take_all(&mut owner, START, &other);
    let place = owner.charge(START, 10, 0);
    let cost = Cost::new(12).expect("a cost in its bounds");
    owner.write(START, |held, at| refund(&rule, held, at, cost));
    assert_eq!(owner.used(START), 8);
    other.charge(START, 5, 0);
    take_all(&mut owner, START, &other);
    assert_eq!(owner.used(START), 13);
    let cost = Cost::new(10).expect("a cost in its bounds");
    owner.write(START, |held, at| {
        crate::counter::give_back(&rule, held, at, (place, cost))
    });
    assert_eq!(owner.used(START), 5);
}

#[test]
fn what_is_absorbed_is_moved_from_one_series_to_another() {
    let rule = token_bucket();
    let [mut owner, mut other, mut third] = nodes(rule);
    owner.charge(START, 3, 0);
    other.charge(START, 10, 0);
    third.charge(START, 2, 0);
    take_all(&mut owner, START, &other);
    take_all(&mut third, START, &owner);
    assert_eq!(third.used(START), 15);
    let kept = owner.foreign.remove(&1).expect("it was taken");
    owner.write(START, |held, at| {
        merge::absorb(&rule, held, at, kept.kept());
    });
    // The other's series is void from now on.
    let void = third.foreign.remove(&1).expect("it was taken");
    let at = third.at(START);
    let (latest, words) = third.total.as_mut().expect("it has charged");
    let held = HeldMut {
        seen: rule.noted(),
        latest,
        words,
    };
    let others: Vec<_> = third.foreign.values().map(Foreign::kept).collect();
    merge::replace(&rule, held, at, &others, (Some(void.kept()), None));
    assert_eq!(third.used(START), 5);
    take_all(&mut third, START, &owner);
    assert_eq!(third.used(START), 15);
}
