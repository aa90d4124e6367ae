//! Figures worked out by hand.

use super::{
    Foreign, Kept, Node, SLICE, START, UNIX_ORIGIN, WINDOW, fixed, length, log, permits, sliding,
    summed, token_bucket, window,
};
use crate::{
    counter::{Moment, decide, merge, refund},
    rule::{Algorithm, MAX_LOG_LIMIT, OldestSlice},
    units::{Cost, Nanos},
    verdict::Mode,
};

fn cost(units: u64) -> Cost {
    Cost::new(units).expect("a cost in its bounds")
}

fn take_all(node: &mut Node, now: u64, from: &Node) {
    for sent in from.send(now) {
        node.take(now, &sent);
    }
}

fn take_back(node: &mut Node, now: u64, units: u64) {
    let rule = node.rule;
    node.write(now, |held, at| refund(&rule, held, at, cost(units)));
}

#[test]
fn a_refund_by_another_reaches_a_third_whatever_the_clocks() {
    for rule in [sliding(OldestSlice::Full), log()] {
        for [second, third] in [[0, 1], [1, 0], [3, 7], [5, 5], [7, 2], [8, 9]] {
            let [second, third] = [second, third].map(|part| part * SLICE / 10 + SLICE);
            let mut nodes = [0, second, third].map(|ahead| Node::new(rule, 0, ahead));
            (nodes[1].number, nodes[2].number) = (1, 2);
            let [writer, taker, third] = &mut nodes;
            let charged = START + SLICE / 3;
            writer.charge(charged, 5, 0);
            take_all(taker, charged + 1000, writer);
            take_back(taker, charged + 2000, 5);
            // As far as the third goes the one way took longer than the other.
            take_all(third, charged + 7000, writer);
            assert_eq!(third.used(charged + 7000), 5);
            for sent in taker.send(charged + 8000) {
                third.take(charged + 9000, &sent);
            }
            assert_eq!(third.used(charged + 9000), 0, "{rule:?}");
            // It comes home too, before and after the next charge.
            take_all(writer, charged + 9000, taker);
            assert_eq!(writer.used(charged + 9000), 0, "{rule:?}");
            writer.charge(charged + 10_000, 2, 0);
            take_all(third, charged + 11_000, writer);
            assert_eq!(third.used(charged + 11_000), 2, "{rule:?}");
            let mut fourth = Node::new(rule, 3, SLICE / 2);
            take_all(&mut fourth, charged + 12_000, third);
            assert_eq!(fourth.used(charged + 12_000), 2, "{rule:?}");
        }
    }
}

#[test]
fn what_is_taken_back_before_its_charge_is_known_waits_for_it() {
    for rule in summed() {
        let mut nodes = [0, 1, 2].map(|number| Node::new(rule, number, 0));
        let [writer, taker, owner] = &mut nodes;
        let place = writer.charge(START, 5, 7);
        owner.charge(START + SLICE, 1, 8);
        for sent in writer.send(START) {
            taker.take_with(START, &sent, 0);
        }
        assert_eq!(taker.give_back(START, place, 5), 5);
        let back = taker.send(START);
        owner.take_with(START + SLICE, back.last().expect("its own is last"), 0);
        // A fixed window has one place for all: there it hides a charge so long.
        let told = u64::from(!matches!(rule.algorithm, Algorithm::FixedWindow(_)));
        assert_eq!(owner.used(START + SLICE), told, "{rule:?}");
        let own_before = owner.own_sum(START + SLICE);
        for sent in writer.send(START) {
            owner.take_with(START + SLICE, &sent, 0);
        }
        assert_eq!(owner.used(START + SLICE), 1, "{rule:?}");
        assert_eq!(
            (own_before, owner.own_sum(START + SLICE)),
            (1, 1),
            "{rule:?}"
        );
    }
}

#[test]
fn a_charge_into_what_is_missing_is_told_as_it_counts() {
    let minus = |units: u64| units.wrapping_neg();
    let slice = START / SLICE % 5;
    let mut slices = vec![0; 5];
    slices[usize::try_from(slice).expect("it fits")] = minus(3);
    let entry = vec![1 << 32, 0, START, minus(3), 0, 0, 0, 0, 0, 0, 0];
    for (rule, words) in [(sliding(OldestSlice::Full), slices), (log(), entry)] {
        let mut node = Node::new(rule, 0, 0);
        node.total = Some((Nanos::new(START), words));
        assert_eq!(node.used(START), 0);
        take_back(&mut node, START, 5);
        for (units, used) in [(2, 0), (4, 3), (1, 4)] {
            let asked = (cost(units), Mode::Consume);
            let verdict = node.write(START, |held, at| decide(&rule, held, at, asked, 0));
            assert_eq!((verdict.used, node.used(START)), (used, used), "{rule:?}");
        }
        take_back(&mut node, START, 5);
        assert_eq!((node.used(START), node.own_sum(START)), (0, 0), "{rule:?}");
    }
}

#[test]
fn a_permit_released_elsewhere_stays_released_and_ends_with_its_time() {
    let rule = permits();
    let [mut writer, mut other] = [0, 1].map(|number| Node::new(rule, number, number as u64 * 77));
    for number in 1..=3 {
        writer.charge(START, 1, number);
    }
    take_all(&mut other, START, &writer);
    assert_eq!(other.give_back(START, 2, 1), 1);
    assert_eq!(other.give_back(START, 2, 1), 0, "it was released");
    for number in 4..=9 {
        writer.charge(START + 1, 1, number);
        take_all(&mut other, START + 1, &writer);
    }
    assert_eq!(other.used(START + 1), 8);
    take_all(&mut writer, START + 2, &other);
    assert_eq!(writer.used(START + 2), 8);
    assert_eq!(
        other.own(START + 2).as_slice(),
        [1 << 32, 0, START + 77, u64::MAX, 2]
    );
    assert_eq!(other.used(START + WINDOW), 6);
    assert_eq!(other.own(START + WINDOW).as_slice(), [0, 0]);
}

#[test]
fn of_fixed_windows_the_latest_stands() {
    let rule = fixed();
    let edge = (START + UNIX_ORIGIN.as_nanos()).next_multiple_of(WINDOW) - UNIX_ORIGIN.as_nanos();
    let [mut old, mut new, mut other] = [0, 1, 2].map(|number| Node::new(rule, number, 0));
    old.charge(edge - 1, 5, 0);
    new.charge(edge, 3, 0);
    let early = new.send(edge);
    take_all(&mut other, edge - 1, &old);
    assert_eq!(other.used(edge - 1), 5);
    // By the clock of the one it has begun: so it has.
    early.iter().for_each(|sent| other.take(edge - 1, sent));
    assert_eq!(other.used(edge - 1), 3);
    other.charge(edge - 1, 1, 0);
    assert_eq!(other.used(edge + WINDOW - 1), 4);
    assert_eq!(other.used(edge + WINDOW), 0);
    assert_eq!(other.own_sum(edge), 1);
    // An older one that comes late changes nothing.
    old.charge(edge - 1, 1, 0);
    take_all(&mut other, edge, &old);
    assert_eq!((other.used(edge), other.own_sum(edge)), (4, 1));
}

#[test]
fn nothing_counts_after_the_end_that_is_told() {
    for rule in summed().into_iter().chain([token_bucket()]) {
        for ahead in [0, 1, SLICE / 3, 9 * WINDOW + 5] {
            let mut writer = Node::new(rule, 0, ahead);
            writer.charge(START + 5, 5, 1);
            writer.charge(START + SLICE, 3, 2);
            let mut other = Node::new(rule, 1, 0);
            take_all(&mut other, START + SLICE, &writer);
            let at = other.at(START + SLICE);
            let end = merge::ends_at(&rule, at, other.foreign[&0].kept()).as_nanos();
            assert!(end > START + SLICE && end <= START + 3 * WINDOW, "{rule:?}");
            assert_eq!(other.used(end), 0, "{rule:?}");
        }
    }
}

#[test]
fn a_full_ring_errs_towards_refusing() {
    let rule = log();
    let most = usize::try_from(MAX_LOG_LIMIT).expect("it fits");
    let mut writers = [0, 1].map(|number| Node::new(rule, number, 0));
    for at in 0..MAX_LOG_LIMIT {
        writers[0].charge(START + 2 * at, 1, 0);
        writers[1].charge(START + 2 * at + 1, 1, 0);
    }
    let mut other = Node::new(rule, 2, 0);
    let now = START + 2 * MAX_LOG_LIMIT;
    writers
        .iter()
        .for_each(|writer| take_all(&mut other, now, writer));
    other.charge(now, 1, 0);
    assert_eq!(other.used(now), 2 * MAX_LOG_LIMIT + 1);
    // The oldest half is counted as long as the youngest of it.
    assert_eq!(
        other.used(START + WINDOW + MAX_LOG_LIMIT / 2),
        2 * MAX_LOG_LIMIT + 1
    );
    assert_eq!(other.used(now + WINDOW), 0);
    let own = other.own(now);
    assert!(merge::is_sound(&rule, &own) && own.len() <= 2 + 3 * most);
}

#[test]
fn only_words_of_the_counter_are_sound() {
    let window_words = length(&sliding(OldestSlice::Full));
    let (start, span) = (7 * WINDOW, window().span().as_nanos());
    for (rule, words, sound) in [
        (
            sliding(OldestSlice::Full),
            vec![u64::MAX; window_words],
            true,
        ),
        (sliding(OldestSlice::Full), vec![0; window_words + 1], false),
        (log(), vec![], false),
        (log(), vec![0, 0], true),
        (log(), vec![1 << 32, 5, 9, 5, 0], true),
        (log(), vec![1 << 32, 0, 9, 5_u64.wrapping_neg(), 0], true),
        (log(), vec![1 << 32, 4, 9, 5, 0], false),
        (log(), vec![1 << 32, 0, 9, 0, 0], false),
        (log(), vec![1 << 32 | 1, 5, 9, 5, 0], false),
        (log(), vec![2 << 32, 5, 9, 5, 0], false),
        (log(), vec![2 << 32, 7, 9, 5, 0, 8, 2, 0], false),
        (permits(), vec![u64::MAX, u64::MAX], false),
        (fixed(), vec![0, 0, 0], true),
        (fixed(), vec![start, start + span, 3], true),
        (fixed(), vec![start, u64::MAX, 3], false),
        (fixed(), vec![start + 1, start + 1 + span, 3], false),
        (token_bucket(), vec![0; 7], true),
        (token_bucket(), vec![0; 6], false),
        (token_bucket(), vec![0, 0, u64::MAX, 0, 0, 0, 0], false),
    ] {
        assert_eq!(merge::is_sound(&rule, &words), sound, "{rule:?} {words:?}");
    }
}

#[test]
fn a_cell_may_be_longer_than_its_series() {
    let mut writer = Node::new(log(), 0, 0);
    writer.charge(START, 5, 0);
    let mut cell = writer.own(START).to_vec();
    let words = cell.len();
    cell.resize(words + 3, 0);
    assert_eq!(merge::words_in_use(&log(), &cell), words);
    assert!(merge::is_sound(&log(), &cell));
}

#[test]
fn what_a_wrong_clock_charged_later_is_charged_now() {
    let now = Nanos::new(START);
    assert_eq!(merge::offset(now, START, Nanos::new(START - 5)), 0);
    assert_eq!(merge::offset(now, 5, Nanos::ZERO), START - 5);
    // Its clock showed 5 when it had charged at 9.
    let offset = merge::offset(now, 5, Nanos::new(9));
    let words = [0, 0];
    let kept = Kept {
        latest: Nanos::new(9),
        offset,
        words: &words,
    };
    assert_eq!(kept.latest_here(Nanos::MAX), now);
    // The writer has run for longer than this store.
    let kept = Foreign {
        version: 0,
        latest: Nanos::new(START),
        offset: merge::offset(Nanos::new(3), START + 9, Nanos::new(START)),
        words: words.to_vec().into(),
    };
    assert_eq!(kept.kept().latest_here(Nanos::MAX), Nanos::ZERO);
    let at = Moment {
        now: Nanos::new(3),
        unix_origin: Nanos::ZERO,
    };
    assert_eq!(merge::ends_at(&log(), at, kept.kept()), window().span());
}
