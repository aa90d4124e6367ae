//! Which families of rate limit headers an answer carries.

/// A family of rate limit headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`, the last in epoch seconds.
    XRateLimit,
    /// `RateLimit-Policy` and `RateLimit` of the IETF draft, revision 10.
    Draft10,
}

impl Family {
    /// The family of this name, as policies name it.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "x-ratelimit" => Some(Self::XRateLimit),
            "draft-10" => Some(Self::Draft10),
            _ => None,
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Self::XRateLimit => 1,
            Self::Draft10 => 2,
        }
    }
}

/// A set of families; [`HeaderFamilies::default`] has `x-ratelimit` and `draft-10`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeaderFamilies(u8);

impl HeaderFamilies {
    /// No rate limit headers at all. `Retry-After` is none of them: it is always sent.
    pub const NONE: Self = Self(0);

    /// How many sets there are.
    pub(crate) const SETS: usize = 4;

    /// All sets, each at its index.
    pub(crate) fn all() -> [Self; Self::SETS] {
        [0, 1, 2, 3].map(Self)
    }

    /// The number of the set, below [`Self::SETS`].
    pub(crate) fn index(self) -> usize {
        usize::from(self.0 & 3)
    }

    /// The set with `family` in it too.
    #[must_use]
    pub const fn with(self, family: Family) -> Self {
        Self(self.0 | family.bit())
    }

    /// Whether `family` is in the set.
    #[must_use]
    pub const fn contains(self, family: Family) -> bool {
        self.0 & family.bit() != 0
    }
}

impl Default for HeaderFamilies {
    fn default() -> Self {
        Self::NONE.with(Family::XRateLimit).with(Family::Draft10)
    }
}
