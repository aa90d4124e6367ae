//! A limit as people write it, before it is checked.
//!
//! Plain: TOML, JSON and bincode each fill it at their own edge. Knows nothing of formats; what is
//! wrong with a spec is said by [`SpecError`], which names the field.

use thiserror::Error;

use crate::{calendar::CalendarUnit, units::Nanos};

/// Slices of a window unless told otherwise.
pub const DEFAULT_SLICES: u64 = 10;
/// The length of the prefix that IPv6 addresses are grouped by unless told otherwise.
pub const DEFAULT_IPV6_PREFIX: u8 = 64;

/// A limit, unchecked. [`Limit::new`](crate::Limit::new) checks it.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitSpec {
    /// `[A-Za-z0-9._-]{1,64}`, unique in its policy.
    pub name: String,
    /// Attribute and the patterns of which one must match; all attributes must.
    pub matches: Vec<(String, Vec<String>)>,
    /// Attributes that the limit counts by, in order.
    pub key: Vec<String>,
    /// The length of the prefix that IPv6 addresses of the key attribute `ip` are grouped by, 1 to 128.
    pub ipv6_prefix: u8,
    /// How much.
    pub limit: LimitNumber,
    /// The algorithm and its other numbers.
    pub algorithm: AlgorithmSpec,
    /// What a check costs on this limit.
    pub cost: CostSource,
    /// What the limit counts.
    pub count: Counted,
    /// What reported failures lead to; needs [`Counted::Failures`].
    pub ban: Option<BanSpec>,
    /// A share of the capacity that is kept for some.
    pub set_aside: Option<SetAsideSpec>,
    /// Decided and counted, but never denied.
    pub shadow: bool,
    /// What decides when neither owner nor standby answers.
    pub fallback: Fallback,
    /// Whether a check without a key attribute is an error instead of passing by.
    pub required: bool,
}

impl LimitSpec {
    /// A limit of that name with nothing but an algorithm, as most are.
    #[must_use]
    pub fn new(name: &str, limit: LimitNumber, algorithm: AlgorithmSpec) -> Self {
        Self {
            name: name.to_owned(),
            matches: Vec::new(),
            key: Vec::new(),
            ipv6_prefix: DEFAULT_IPV6_PREFIX,
            limit,
            algorithm,
            cost: CostSource::Request,
            count: Counted::Requests,
            ban: None,
            set_aside: None,
            shadow: false,
            fallback: Fallback::LocalFull,
            required: false,
        }
    }
}

/// How much a limit admits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LimitNumber {
    /// The same for all.
    One(u64),
    /// By the value of an attribute: `{ by = "plan", values = { free = 60 }, default = 60 }`.
    By {
        /// The attribute.
        attribute: String,
        /// Each value once.
        values: Vec<(String, TierNumber)>,
        /// For any other value, and where the attribute is absent.
        default: TierNumber,
    },
    /// `unlimited = true`: a check that the limit matches meets no limit of the policy at all.
    Unlimited,
}

/// How much one tier admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TierNumber {
    /// So many.
    Units(u64),
    /// The limit does not apply to this tier.
    Unlimited,
}

/// An algorithm and its numbers but for the limit, unchecked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlgorithmSpec {
    /// Counters of slices of the window.
    SlidingWindow {
        /// The window.
        window: Nanos,
        /// 1 to 60, [`DEFAULT_SLICES`] unless told otherwise.
        slices: u64,
        /// Whether the oldest slice counts in full.
        hard: bool,
    },
    /// An entry for each admitted check.
    SlidingLog {
        /// The window.
        window: Nanos,
    },
    /// A counter that starts anew with each window since the epoch.
    FixedWindow {
        /// The window.
        window: Nanos,
    },
    /// A counter that starts anew with the calendar.
    CalendarWindow {
        /// The part of the calendar.
        unit: CalendarUnit,
        /// The name of a time zone such as `Europe/Berlin`; `None` is UTC.
        time_zone: Option<String>,
    },
    /// A level that drains at limit / window.
    TokenBucket {
        /// The window.
        window: Nanos,
        /// The most at once; `None` is the limit.
        burst: Option<u64>,
    },
    /// A queue that drains at limit / window.
    LeakyBucket {
        /// The window.
        window: Nanos,
        /// What may wait; `None` is the limit less one.
        queue: Option<u64>,
    },
    /// Permits that are out at once.
    Concurrency {
        /// When a permit that nobody released ends.
        ttl: Nanos,
    },
}

/// Where the cost of a check on a limit comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CostSource {
    /// The cost of the request.
    #[default]
    Request,
    /// The value of that attribute, a whole number; where it is absent the limit does not apply.
    Attribute(String),
}

/// What a limit counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Counted {
    /// Every admitted check.
    #[default]
    Requests,
    /// Admitted checks that were not reported as a success.
    Failures,
}

/// `ban = { for = "1h", escalate = 2.0, max = "24h" }`, unchecked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BanSpec {
    /// How long the first ban is: `for`.
    pub length: Nanos,
    /// By what each further ban is longer, 1 to 1000: `escalate`. 1 unless told otherwise.
    pub escalate: f64,
    /// The longest ban: `max`. `None` is 24 hours, or `for` if that is longer.
    pub longest: Option<Nanos>,
}

/// `set_aside = { by = "priority", values = ["critical"], share = 0.2 }`, unchecked.
#[derive(Clone, Debug, PartialEq)]
pub struct SetAsideSpec {
    /// The attribute that tells for whom: `by`.
    pub attribute: String,
    /// Its values: `values`.
    pub values: Vec<String>,
    /// What is kept for them, above 0 and at most 1: `share`.
    pub share: f64,
}

/// What decides for a limit when neither owner nor standby answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fallback {
    /// Decide on this node alone, with this share of the limit.
    #[default]
    LocalFull,
    /// Decide on this node alone, with the limit divided by the active members.
    LocalFair,
    /// Admit.
    Allow,
    /// Refuse, reason `undecided`.
    Deny,
}

/// What is wrong with a spec, and what is right. The writer's fault; nothing was changed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{field}: {wrong}; {right}")]
pub struct SpecError {
    /// The field as people write it.
    pub field: String,
    /// What is wrong with it.
    pub wrong: String,
    /// What would be right.
    pub right: String,
}
