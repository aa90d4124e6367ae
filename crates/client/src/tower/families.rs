//! Which families of rate limit headers a response gets.

/// A set of families; [`HeaderFamilies::default`] has both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeaderFamilies(u8);

impl HeaderFamilies {
    /// No rate limit headers at all.
    pub const NONE: Self = Self(0);
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`, the last in epoch seconds.
    pub const X_RATE_LIMIT: Self = Self(1);
    /// `RateLimit-Policy` and `RateLimit` of the IETF draft, revision 10.
    pub const DRAFT_10: Self = Self(2);

    /// The families of both sets.
    #[must_use]
    pub const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Whether all families of `others` are in the set.
    #[must_use]
    pub const fn contains(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }
}

impl Default for HeaderFamilies {
    fn default() -> Self {
        Self::X_RATE_LIMIT.with(Self::DRAFT_10)
    }
}
