//! Which families of rate limit headers an answer carries.
//!
//! Invariant: at most one revision of the IETF draft is in a set, since all of them use the same names.

use thiserror::Error;

/// A family of rate limit headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`, the last in epoch seconds.
    XRateLimit,
    /// `RateLimit-Policy`, `RateLimit-Limit`, `-Remaining` and `-Reset` of the IETF draft, revision 6.
    Draft6,
    /// `RateLimit-Policy` and `RateLimit` of the IETF draft, revision 7.
    Draft7,
    /// `RateLimit-Policy` and `RateLimit` of the IETF draft, revision 10.
    Draft10,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::XRateLimit, Self::Draft6, Self::Draft7, Self::Draft10];

    /// The family of this name, as policies name it.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }

    /// Its name, as policies name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::XRateLimit => "x-ratelimit",
            Self::Draft6 => "draft-6",
            Self::Draft7 => "draft-7",
            Self::Draft10 => "draft-10",
        }
    }
}

/// A set of families; [`HeaderFamilies::default`] has `x-ratelimit` and `draft-10`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeaderFamilies {
    x_rate_limit: bool,
    draft: Option<Draft>,
}

/// A revision of the draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Draft {
    Six,
    Seven,
    Ten,
}

/// Two families that cannot be in one set. The writer's fault; the set was not changed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("{} and {} use the same header names", first.name(), second.name())]
pub struct FamiliesCollide {
    /// The family that is in the set.
    pub first: Family,
    /// The one that was to be added.
    pub second: Family,
}

impl HeaderFamilies {
    /// No rate limit headers at all. `Retry-After` is none of them: it is always sent.
    pub const NONE: Self = Self {
        x_rate_limit: false,
        draft: None,
    };

    /// How many sets there are.
    pub(crate) const SETS: usize = 8;

    /// All sets, each at its index.
    pub(crate) fn all() -> [Self; Self::SETS] {
        const DRAFTS: [Option<Draft>; 4] =
            [None, Some(Draft::Six), Some(Draft::Seven), Some(Draft::Ten)];
        let sets = |x_rate_limit| {
            DRAFTS.map(|draft| Self {
                x_rate_limit,
                draft,
            })
        };
        let ([a, b, c, d], [e, f, g, h]) = (sets(false), sets(true));
        [a, b, c, d, e, f, g, h]
    }

    /// The number of the set, below [`Self::SETS`].
    pub(crate) const fn index(self) -> usize {
        let draft = match self.draft {
            None => 0,
            Some(Draft::Six) => 1,
            Some(Draft::Seven) => 2,
            Some(Draft::Ten) => 3,
        };
        if self.x_rate_limit { draft + 4 } else { draft }
    }

    /// The set with `family` in it too.
    ///
    /// # Errors
    /// [`FamiliesCollide`] if another revision of the draft is in it.
    pub fn with(self, family: Family) -> Result<Self, FamiliesCollide> {
        let draft = match family {
            Family::XRateLimit => {
                return Ok(Self {
                    x_rate_limit: true,
                    ..self
                });
            }
            Family::Draft6 => Draft::Six,
            Family::Draft7 => Draft::Seven,
            Family::Draft10 => Draft::Ten,
        };
        match self.draft {
            Some(known) if known != draft => Err(FamiliesCollide {
                first: known.family(),
                second: family,
            }),
            Some(_) | None => Ok(Self {
                draft: Some(draft),
                ..self
            }),
        }
    }

    /// Whether `family` is in the set.
    #[must_use]
    pub const fn contains(self, family: Family) -> bool {
        match family {
            Family::XRateLimit => self.x_rate_limit,
            Family::Draft6 => matches!(self.draft, Some(Draft::Six)),
            Family::Draft7 => matches!(self.draft, Some(Draft::Seven)),
            Family::Draft10 => matches!(self.draft, Some(Draft::Ten)),
        }
    }

    /// The revision of the draft that is in the set.
    pub(crate) const fn draft(self) -> Option<Draft> {
        self.draft
    }
}

impl Draft {
    const fn family(self) -> Family {
        match self {
            Self::Six => Family::Draft6,
            Self::Seven => Family::Draft7,
            Self::Ten => Family::Draft10,
        }
    }
}

impl Default for HeaderFamilies {
    fn default() -> Self {
        Self {
            x_rate_limit: true,
            draft: Some(Draft::Ten),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FamiliesCollide, Family, HeaderFamilies};

    #[test]
    fn two_revisions_of_the_draft_exclude_each_other() {
        for first in Family::ALL {
            assert_eq!(Family::from_name(first.name()), Some(first));
            let set = HeaderFamilies::NONE.with(first).unwrap();
            assert_eq!(set.with(first), Ok(set), "a family twice is once");
            for second in Family::ALL {
                assert_eq!(set.contains(second), first == second);
                let both = set.with(second);
                if first == second || [first, second].contains(&Family::XRateLimit) {
                    let both = both.unwrap();
                    assert!(both.contains(first) && both.contains(second));
                } else {
                    assert_eq!(both, Err(FamiliesCollide { first, second }));
                }
            }
        }
        let two = HeaderFamilies::default().with(Family::Draft6).unwrap_err();
        assert_eq!(
            two.to_string(),
            "draft-10 and draft-6 use the same header names"
        );
        assert_eq!(Family::from_name("none"), None);
    }

    #[test]
    fn each_set_is_at_its_index() {
        for (index, set) in HeaderFamilies::all().into_iter().enumerate() {
            assert_eq!(set.index(), index);
        }
    }
}
