//! The caller's side of interned rules: which number a rule has on this stream.
//!
//! Invariant: a number names one rule at any point of the stream. When all numbers are taken the one
//! that was given out longest ago is given to the new rule: safe for the frames before, by the
//! stream's order, and for the frame being written, whose numbers are not given away.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, DefaultHasher},
};

use tollgate_limit::Rule;

/// The most rules of one stream that have a number at once.
pub(crate) const MAX_SHAPES: u16 = 1024;

/// Numbers of rules on one stream.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    numbers: HashMap<Rule, u16, BuildHasherDefault<DefaultHasher>>,
    rules: Vec<Rule>,
    oldest: u16,
    /// The one that was asked for last: most checks of a stream are by few rules.
    last: Option<(Rule, u16)>,
}

/// The number of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// The peer knows it.
    Known(u16),
    /// The peer must be told first.
    New(u16),
}

impl Shapes {
    /// The number of `rule`, which from here on is known to the peer. `in_use` are the numbers of the
    /// frame that is being written, fewer than [`MAX_SHAPES`].
    pub(super) fn number(&mut self, rule: &Rule, in_use: &[u16]) -> Shape {
        if let Some((last, number)) = &self.last
            && last == rule
        {
            return Shape::Known(*number);
        }
        if let Some(number) = self.numbers.get(rule) {
            self.last = Some((*rule, *number));
            return Shape::Known(*number);
        }
        let number = match u16::try_from(self.rules.len()) {
            Ok(free) if free < MAX_SHAPES => {
                self.rules.push(*rule);
                free
            }
            _ => self.replace_oldest(rule, in_use),
        };
        self.numbers.insert(*rule, number);
        self.last = Some((*rule, number));
        Shape::New(number)
    }

    fn replace_oldest(&mut self, rule: &Rule, in_use: &[u16]) -> u16 {
        let mut number = self.oldest;
        while in_use.contains(&number) {
            number = (number + 1) % MAX_SHAPES;
        }
        self.oldest = (number + 1) % MAX_SHAPES;
        let place = &mut self.rules[usize::from(number)];
        self.numbers.remove(place);
        *place = *rule;
        number
    }
}

#[cfg(test)]
pub(super) mod tests {
    use tollgate_limit::{Algorithm, Nanos, OldestSlice, SlidingWindow, Window};

    use super::{MAX_SHAPES, Rule, Shape, Shapes};

    pub(in crate::link) fn rule(limit: u64) -> Rule {
        let window = Window::new(Nanos::from_millis(1000)).unwrap();
        let oldest = OldestSlice::Weighted;
        Rule::new(Algorithm::SlidingWindow(SlidingWindow {
            limit,
            window,
            slices: 10,
            oldest,
        }))
    }

    #[test]
    fn a_rule_is_new_once() {
        let mut shapes = Shapes::default();
        assert_eq!(shapes.number(&rule(1), &[]), Shape::New(0));
        assert_eq!(shapes.number(&rule(2), &[]), Shape::New(1));
        assert_eq!(shapes.number(&rule(1), &[]), Shape::Known(0));
    }

    #[test]
    fn the_oldest_number_is_given_again_when_all_are_taken() {
        let mut shapes = Shapes::default();
        for limit in 0..u64::from(MAX_SHAPES) {
            assert!(matches!(shapes.number(&rule(limit), &[]), Shape::New(_)));
        }
        assert_eq!(shapes.number(&rule(99_999), &[]), Shape::New(0));
        assert_eq!(shapes.number(&rule(1), &[]), Shape::Known(1));
        assert_eq!(
            shapes.number(&rule(0), &[]),
            Shape::New(1),
            "its number was taken"
        );
        assert_eq!(shapes.number(&rule(99_999), &[]), Shape::Known(0));
    }

    #[test]
    fn numbers_of_the_frame_being_written_are_not_given_away() {
        let mut shapes = Shapes::default();
        for limit in 0..u64::from(MAX_SHAPES) {
            assert!(matches!(shapes.number(&rule(limit), &[]), Shape::New(_)));
        }
        assert_eq!(shapes.number(&rule(0), &[]), Shape::Known(0));
        assert_eq!(shapes.number(&rule(77_777), &[0]), Shape::New(1));
        assert_eq!(shapes.number(&rule(88_888), &[0, 1, 2]), Shape::New(3));
        assert_eq!(shapes.number(&rule(0), &[]), Shape::Known(0));
        assert_eq!(shapes.number(&rule(77_777), &[]), Shape::Known(1));
    }
}
