//! Whatever is charged, given back and delivered, in whatever order.

use proptest::prelude::*;

use super::{
    Foreign, Kept, Node, SLICE, START, Sent, UNIX_ORIGIN, WINDOW, leaky_bucket, log, sliding,
    summed, token_bucket,
};
use crate::{
    counter::{Held, HeldMut, Moment, merge},
    judge::Reading as _,
    rule::{OldestSlice, Rule},
    series::SeriesWords,
    units::Nanos,
};

#[derive(Clone, Debug)]
enum Step {
    Charge {
        node: usize,
        units: u64,
    },
    GiveBack {
        node: usize,
        charge: prop::sample::Index,
    },
    Send {
        node: usize,
    },
    Deliver {
        to: usize,
        sent: prop::sample::Index,
    },
    Pass {
        nanos: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let node = 0..3_usize;
    let index = any::<prop::sample::Index>();
    prop_oneof![
        4 => (node.clone(), 1..9_u64).prop_map(|(node, units)| Step::Charge { node, units }),
        3 => (node.clone(), index).prop_map(|(node, charge)| Step::GiveBack { node, charge }),
        3 => node.clone().prop_map(|node| Step::Send { node }),
        6 => (node, any::<prop::sample::Index>())
            .prop_map(|(to, sent)| Step::Deliver { to, sent }),
        3 => (0..SLICE).prop_map(|nanos| Step::Pass { nanos }),
    ]
}

/// A charge that was made.
#[derive(Clone, Copy, Debug)]
struct Made {
    at: u64,
    units: u64,
    writer: usize,
    version: u64,
    place: u64,
    given_back: bool,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Three stores whose clocks agree: each ends with what one counter would hold that saw all.
    #[test]
    fn any_order_of_any_deliveries_is_one_total(
        steps in prop::collection::vec(step(), 1..60),
        order in prop::collection::vec(any::<(usize, usize)>(), 40),
    ) {
        for rule in summed() {
            let mut nodes = [0, 1, 2].map(|number| Node::new(rule, number, 0));
            let mut truth = Node::new(rule, 3, 0);
            let (mut now, mut made, mut under_way) = (START, Vec::<Made>::new(), Vec::<Sent>::new());
            for step in &steps {
                match step {
                    Step::Charge { node, units } => {
                        let number = made.len() as u64 + 1;
                        let place = nodes[*node].charge(now, *units, number);
                        prop_assert_eq!(place, truth.charge(now, *units, number));
                        let version = nodes[*node].version;
                        let (at, units) = (now, *units);
                        made.push(Made { at, units, writer: *node, version, place, given_back: false });
                    }
                    Step::GiveBack { node, charge } if !made.is_empty() => {
                        let charge = charge.index(made.len());
                        let charge = &mut made[charge];
                        let node = &mut nodes[*node];
                        let known = node.foreign.get(&charge.writer).map(|held| held.version);
                        let known = node.number == charge.writer || known >= Some(charge.version);
                        if known && !charge.given_back {
                            charge.given_back = true;
                            let went = node.give_back(now, charge.place, charge.units);
                            let went = u64::try_from(went).expect("nothing is charged by it");
                            truth.give_back(now, charge.place, went);
                        }
                    }
                    Step::Send { node } => under_way.extend(nodes[*node].send(now)),
                    Step::Deliver { to, sent } if !under_way.is_empty() => {
                        let sent = &under_way[sent.index(under_way.len())];
                        nodes[*to].take_with(now, sent, 0);
                    }
                    Step::Pass { nanos } => now += nanos,
                    Step::GiveBack { .. } | Step::Deliver { .. } => {}
                }
            }
            let last: Vec<_> = nodes.iter().flat_map(|node| node.send(now)).collect();
            for (node, sent) in &order {
                if !last.is_empty() {
                    nodes[node % 3].take_with(now, &last[sent % last.len()], 0);
                }
            }
            let mut fresh = Node::new(rule, 4, 0);
            for sent in &last {
                nodes.iter_mut().for_each(|node| node.take_with(now, sent, 0));
                fresh.take_with(now, sent, 0);
            }
            for later in 0..12 {
                let then = now + later * SLICE / 2;
                let used = truth.used(then);
                prop_assert_eq!(fresh.used(then), used, "gathered, {:?}", rule);
                for node in &nodes {
                    prop_assert_eq!(node.used(then), used, "node {}, {:?}", node.number, rule);
                }
            }
        }
    }

    /// Clocks that have nothing to do with each other, ways that take any time: whoever holds all series
    /// counts at least what was charged in the last window, and at most what may be two slices and the ways
    /// older.
    #[test]
    fn nothing_leaves_early(
        steps in prop::collection::vec(step(), 1..50),
        aheads in prop::array::uniform4(0..1_u64 << 50),
        ways in prop::collection::vec(0..SLICE, 3),
    ) {
        for rule in [sliding(OldestSlice::Full), log()] {
            let mut nodes = [0, 1, 2, 3].map(|number| Node::new(rule, number, aheads[number]));
            let (mut now, mut made, mut under_way) = (START, Vec::<Made>::new(), Vec::<Sent>::new());
            for step in &steps {
                match step {
                    Step::Charge { node, units } => {
                        let node = &mut nodes[*node];
                        node.charge(now, *units, 0);
                        let (version, writer) = (node.version, node.number);
                        let (at, units) = (now, *units);
                        made.push(Made { at, units, writer, version, place: 0, given_back: false });
                    }
                    Step::Send { node } => under_way.extend(nodes[*node].send(now)),
                    Step::Deliver { to, sent } if !under_way.is_empty() => {
                        let sent = &under_way[sent.index(under_way.len())];
                        nodes[*to].take(now, sent);
                    }
                    Step::Pass { nanos } => now += nanos,
                    Step::GiveBack { .. } | Step::Deliver { .. } => {}
                }
            }
            let last: Vec<_> = nodes[..3].iter().map(|node| node.send(now)).collect();
            for (sent, way) in last.iter().zip(&ways) {
                now += way;
                sent.iter().for_each(|sent| nodes[3].take(now, sent));
            }
            let held: u64 = made.iter().map(|made| made.units).sum();
            for later in 0..16 {
                let then = now + later * SLICE / 2;
                let within = |age: u64| -> u64 {
                    made.iter().filter(|made| then - made.at < age).map(|made| made.units).sum()
                };
                let used = nodes[3].used(then);
                prop_assert!(used >= within(WINDOW), "{used} < {} of {held}", within(WINDOW));
            }
            // Series of a few hops: each took as long as the run at most.
            let end = now + (now - START) + WINDOW + 3 * SLICE;
            prop_assert_eq!(nodes[3].used(end), 0);
        }
    }

    /// On one way a series gets as late as that takes, and in windows by a slice at most.
    #[test]
    fn nothing_leaves_much_later(
        charges in prop::collection::vec((1..9_u64, 0..SLICE), 1..9),
        aheads in prop::array::uniform2(0..1_u64 << 50),
        way in 0..SLICE,
    ) {
        // A window counts its oldest slice in full.
        for (rule, slices) in [(sliding(OldestSlice::Full), 2), (log(), 0)] {
            let mut writer = Node::new(rule, 0, aheads[0]);
            let mut other = Node::new(rule, 1, aheads[1]);
            let mut now = START;
            for (units, nanos) in &charges {
                writer.charge(now, *units, 0);
                now += nanos;
            }
            let sent = writer.send(now);
            sent.iter().for_each(|sent| other.take(now + way, sent));
            for then in (now + way..now + 2 * WINDOW).step_by(SLICE as usize / 3) {
                let (mut at, mut most) = (START, 0);
                for (units, nanos) in &charges {
                    let is_young = then - at < WINDOW + slices * SLICE + way;
                    most += if is_young { *units } else { 0 };
                    at += nanos;
                }
                prop_assert!(other.used(then) <= most, "{} > {most}, {rule:?}", other.used(then));
            }
        }
    }

    /// What a store takes back of another's charges is not undone by that one's next series, whatever
    /// the time of its way.
    #[test]
    fn what_was_taken_back_stays_so(
        aheads in prop::array::uniform2(0..1_u64 << 50),
        ways in prop::array::uniform3(0..SLICE / 2),
        charges in prop::collection::vec((1..9_u64, 0..SLICE / 3), 1..6),
        more in 0..SLICE / 2,
        part in 1..9_u64,
    ) {
        for rule in [sliding(OldestSlice::Full), log()] {
            let mut writer = Node::new(rule, 0, aheads[0]);
            let mut other = Node::new(rule, 1, aheads[1]);
            let (mut now, mut sum) = (START, 0);
            for (units, nanos) in &charges {
                writer.charge(now, *units, 0);
                (now, sum) = (now + nanos / 4, sum + units);
            }
            let first = writer.send(now);
            now += ways[0];
            first.iter().for_each(|sent| other.take(now, sent));
            let back = part.min(sum);
            let cost = crate::units::Cost::new(back).expect("a cost in its bounds");
            other.write(now, |held, at| crate::counter::refund(&rule, held, at, cost));
            prop_assert_eq!(other.used(now), sum - back);
            for way in &ways[1..] {
                writer.charge(now + more, 1, 0);
                sum += 1;
                let sent = writer.send(now + more);
                now += more + way;
                sent.iter().chain(&first).for_each(|sent| other.take(now, sent));
                prop_assert_eq!(other.used(now), sum - back, "{:?}", rule);
            }
        }
    }

    /// Words that a peer made up are refused, or do no harm.
    #[test]
    fn no_words_do_harm(
        made_up in prop::collection::vec(any::<(Vec<u64>, u64, u64)>(), 1..4),
        small in any::<bool>(),
        now in any::<u64>(),
    ) {
        let rules: Vec<Rule> = summed().into_iter().chain([token_bucket(), leaky_bucket()]).collect();
        for rule in rules {
            let at = Moment { now: Nanos::new(now), unix_origin: UNIX_ORIGIN };
            let held: Vec<_> = made_up
                .iter()
                .map(|(words, latest, offset)| {
                    let mut words = SeriesWords::from_slice(words);
                    if small {
                        words.iter_mut().for_each(|word| *word %= 5);
                    }
                    let _ = merge::is_sound(&rule, &words);
                    words.resize(super::length(&rule), u64::MAX);
                    let _ = merge::is_sound(&rule, &words);
                    Foreign { version: 0, latest: Nanos::new(*latest), offset: *offset, words }
                })
                .collect();
            let series: Vec<Kept<'_>> = held.iter().map(Foreign::kept).collect();
            let mut words = vec![0; merge::words_to_hold(&rule, None, &series)];
            let (seen, mut latest) = (rule.noted(), at.now);
            let held = HeldMut { seen, latest: &mut latest, words: &mut words };
            merge::gather(&rule, held, at, &series);
            for change in [(None, Some(series[0])), (Some(series[0]), None), (None, None)] {
                let held = HeldMut { seen, latest: &mut latest, words: &mut words };
                merge::replace(&rule, held, at, &series[1..], change);
            }
            let held = HeldMut { seen, latest: &mut latest, words: &mut words };
            merge::absorb(&rule, held, at, series[0]);
            let _ = merge::ends_at(&rule, at, series[0]);
            let _ = merge::words_in_use(&rule, series[0].words);
            prop_assert!(latest <= at.now);
            let held = Held { seen, latest, words: &words };
            prop_assert!(merge::own(&rule, held, at, &series).len() <= 2 + 3 * 10_000);
            let _ = crate::counter::Reading::at(&rule, held, at).used();
        }
    }
}
