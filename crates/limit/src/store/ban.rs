//! Bans: how long a key is refused for its failures, and how the next one grows.
//!
//! Three words: until when on the monotonic clock, the level, and the time after which the level falls.
//! A ban of level n lasts `length · escalation^n`, at most `longest`; the level rises by one with each
//! ban and falls by one for each `longest` that passes without one. Of two series of one key (DESIGN 4,
//! Merging) the later end and the higher level stand. Knows nothing of keys or failures.

use super::cell::Standing;
use crate::{
    counter::merge::shifted,
    rule::Ban,
    units::{Nanos, Window},
};

/// Words of a ban.
pub(super) const WORDS: usize = 3;
/// More than any ban grows by: the exponent is cut off there.
const HIGHEST_LEVEL: u64 = 64;
/// What an escalation is told in.
const THOUSAND: u128 = 1000;

/// How long a ban still is; zero if there is none.
pub(super) fn left(words: &[u64], now: Nanos) -> Nanos {
    let until = words.first().copied().unwrap_or(0);
    Nanos::new(until).saturating_sub(now)
}

/// Bans from now on.
pub(super) fn begin(words: &mut [u64], ban: &Ban, now: Nanos) {
    let level = level(words, now);
    if let [until, next_level, longest] = words {
        let end = now.saturating_add(length_at(ban, level));
        *until = (*until).max(end.as_nanos());
        *next_level = level.saturating_add(1).min(HIGHEST_LEVEL);
        *longest = ban.longest.as_nanos();
    }
}

/// How a ban stands: a limit used up, then something that is remembered for a while.
pub(super) fn standing(words: &[u64], now: Nanos) -> Standing {
    let recovers_after = left(words, now);
    if recovers_after > Nanos::ZERO {
        return Standing::AtLimit { recovers_after };
    }
    match level(words, now) {
        0 => Standing::Empty,
        used => Standing::Below {
            used,
            limit: HIGHEST_LEVEL.saturating_add(1),
            latest: Nanos::new(words.first().copied().unwrap_or(0)),
        },
    }
}

/// Adds what another series says of the ban, whose writer's instants are `offset` behind those here: the later
/// end and the higher level stand. Again or in another order it is the same, save that a level may have fallen by one less.
pub(super) fn mix(words: &mut [u64], now: Nanos, other: &[u64], offset: u64) {
    let [other_until, other_level, other_longest] = *other else {
        return;
    };
    if (other_until, other_level) == (0, 0) {
        return;
    }
    // No ban is longer than the longest: not even by a clock that is wrong.
    let latest_end = now.as_nanos().saturating_add(other_longest);
    let other = [
        shifted(other_until, offset).min(latest_end),
        other_level.min(HIGHEST_LEVEL),
        other_longest,
    ];
    let end = words.first().copied().unwrap_or(0).max(other[0]);
    let level = level(words, Nanos::new(end)).max(level(&other, Nanos::new(end)));
    if let [until, next_level, longest] = words {
        *until = end;
        *next_level = level;
        *longest = (*longest).max(other_longest);
    }
}

/// When nothing of a ban is remembered, by the clock here.
pub(super) fn ends_at(words: &[u64], offset: u64) -> Nanos {
    let [until, level, longest] = *words else {
        return Nanos::ZERO;
    };
    let remembered = level.saturating_mul(longest);
    Nanos::new(shifted(until, offset).saturating_add(remembered))
}

/// Whether the words can be those of a ban.
pub(super) fn is_sound(words: &[u64]) -> bool {
    let longest_of_all = Window::MAX.as_nanos();
    matches!(*words, [_, level, longest] if level <= HIGHEST_LEVEL && longest <= longest_of_all)
}

/// The level of the next ban.
fn level(words: &[u64], now: Nanos) -> u64 {
    let [until, level, longest] = words else {
        return 0;
    };
    let without = now.as_nanos().saturating_sub(*until);
    let fallen = without.checked_div(*longest).unwrap_or(0);
    level.saturating_sub(fallen)
}

fn length_at(ban: &Ban, level: u64) -> Nanos {
    let longest = u128::from(ban.longest.as_nanos());
    let mut length = u128::from(ban.length.as_nanos());
    for _ in 0..level.min(HIGHEST_LEVEL) {
        length = length.saturating_mul(u128::from(ban.escalation)) / THOUSAND;
        if length >= longest {
            break;
        }
    }
    Nanos::new(u64::try_from(length.min(longest)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{HIGHEST_LEVEL, WORDS, begin, ends_at, is_sound, left, mix, standing};
    use crate::{rule::Ban, store::cell::Standing, units::Nanos};

    const HOUR: u64 = 3_600_000;

    fn hours(hours: u64) -> Nanos {
        Nanos::from_millis(hours * HOUR)
    }

    #[test]
    fn bans_grow_up_to_the_longest_and_the_level_falls_with_time() {
        let ban = Ban {
            length: hours(1),
            escalation: 2000,
            longest: hours(24),
        };
        let mut words = [0; WORDS];
        let mut now = Nanos::ZERO;
        for expected in [1, 2, 4, 8, 16, 24, 24] {
            begin(&mut words, &ban, now);
            assert_eq!(left(&words, now), hours(expected));
            now = now.saturating_add(hours(expected));
            assert_eq!(left(&words, now), Nanos::ZERO);
        }
        // Seven bans: the next is of level 7; after 24 h · 6 without one it is of level 1.
        now = now.saturating_add(hours(24 * 6));
        begin(&mut words, &ban, now);
        assert_eq!(left(&words, now), hours(2));
        let end = now.saturating_add(hours(2));
        let forgotten = end.saturating_add(hours(48));
        assert!(matches!(standing(&words, now), Standing::AtLimit { .. }));
        assert!(matches!(standing(&words, end), Standing::Below { .. }));
        assert_eq!(standing(&words, forgotten), Standing::Empty);
    }

    #[test]
    fn a_ban_without_escalation_stays_as_long() {
        let ban = Ban {
            length: hours(1),
            escalation: 1000,
            longest: hours(1),
        };
        let mut words = [0; WORDS];
        for _ in 0..100 {
            begin(&mut words, &ban, Nanos::ZERO);
            assert_eq!(left(&words, Nanos::ZERO), hours(1));
        }
    }

    #[test]
    fn the_later_end_and_the_higher_level_stand() {
        let ban = Ban {
            length: hours(1),
            escalation: 2000,
            longest: hours(24),
        };
        let (mut here, mut there) = ([0; WORDS], [0; WORDS]);
        // The clock there is three hours behind.
        let offset = hours(3).as_nanos();
        begin(&mut there, &ban, hours(1));
        begin(&mut there, &ban, hours(2));
        mix(&mut here, hours(5), &there, offset);
        assert_eq!(left(&here, hours(5)), hours(2));
        // The third ban is of the third length.
        begin(&mut here, &ban, hours(7));
        assert_eq!(left(&here, hours(7)), hours(4));
        let known = here;
        mix(&mut here, hours(7), &there, offset);
        assert_eq!(here, known);
        assert_eq!(ends_at(&here, 0), hours(11 + 3 * 24));
        assert_eq!(standing(&here, ends_at(&here, 0)), Standing::Empty);
        // A ban without an end is one of a wrong clock.
        mix(&mut here, hours(7), &[u64::MAX, 1, hours(24).as_nanos()], 0);
        assert_eq!(left(&here, hours(7)), hours(24));
        assert!(!is_sound(&[0, HIGHEST_LEVEL + 1, 0]) && !is_sound(&[0, 0, u64::MAX]));
    }

    proptest! {
        #[test]
        fn mixing_again_or_the_other_way_round_is_the_same(
            [one, two] in prop::array::uniform2((0..500_u64, 0..9_u64)),
        ) {
            let longest = hours(24).as_nanos();
            let [one, two] = [one, two].map(|(until, level)| [hours(until).as_nanos(), level, longest]);
            let (mut here, mut there) = (one, two);
            let now = hours(500);
            mix(&mut here, now, &two, 0);
            mix(&mut there, now, &one, 0);
            prop_assert_eq!(here, there);
            for series in [&one, &two] {
                mix(&mut here, now, series, 0);
                prop_assert_eq!(here, there);
            }
        }

        #[test]
        fn no_words_do_harm(
            mut words in prop::array::uniform3(any::<u64>()),
            other in prop::collection::vec(any::<u64>(), 0..5),
            now in any::<u64>(),
            offset in any::<u64>(),
        ) {
            let now = Nanos::new(now);
            let before = left(&words, now);
            mix(&mut words, now, &other, offset);
            prop_assert!(left(&words, now) >= before);
            let _ = (ends_at(&words, offset), standing(&words, now), is_sound(&other));
        }
    }
}
