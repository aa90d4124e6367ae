//! A rule on the wire: checked again when it is read, so that no peer and no client can send one that
//! the counters cannot compute with.

use serde::{Deserialize, Serialize};
use tollgate_limit::{
    Algorithm, Alignment, Ban, CalendarUnit, Concurrency, Enforcement, FixedWindow, LeakyBucket,
    MAX_ESCALATION, MAX_LOG_LIMIT, MAX_SLICES, MAX_UNITS, Nanos, OldestSlice, Rule, SlidingLog,
    SlidingWindow, TokenBucket, Window, Zone,
};

use crate::codec::CodecError;

/// The bytes of a [`Rule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RawRule<'a> {
    #[serde(borrow)]
    algorithm: RawAlgorithm<'a>,
    set_aside: u64,
    shadow: bool,
    ban: Option<RawBan>,
}

/// The bytes of an [`Algorithm`], and of the ceiling where it counts and is not the capacity; grows at the end
/// only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RawAlgorithm<'a> {
    SlidingWindow {
        limit: u64,
        window_nanos: u64,
        slices: u8,
        hard: bool,
    },
    SlidingLog {
        limit: u64,
        window_nanos: u64,
    },
    FixedWindow {
        limit: u64,
        window_nanos: u64,
    },
    CalendarWindow {
        limit: u64,
        #[serde(with = "RawUnit")]
        unit: CalendarUnit,
        zone: &'a str,
    },
    TokenBucket {
        limit: u64,
        window_nanos: u64,
        burst: u64,
    },
    LeakyBucket {
        limit: u64,
        window_nanos: u64,
        queue: u64,
    },
    Concurrency {
        limit: u64,
        ttl_nanos: u64,
    },
    /// A token bucket that other tiers share, one of them at least with a larger burst.
    TieredTokenBucket {
        limit: u64,
        window_nanos: u64,
        burst: u64,
        ceiling: u64,
    },
    /// A leaky bucket that other tiers share, one of them at least with a longer queue.
    TieredLeakyBucket {
        limit: u64,
        window_nanos: u64,
        queue: u64,
        ceiling: u64,
    },
}

/// The bytes of a [`CalendarUnit`]; grows at the end only.
#[derive(Serialize, Deserialize)]
#[serde(remote = "CalendarUnit")]
pub(crate) enum RawUnit {
    Hour,
    Day,
    Week,
    Month,
    Year,
}

/// The bytes of a [`Ban`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RawBan {
    length_nanos: u64,
    escalation: u32,
    longest_nanos: u64,
}

impl From<&Rule> for RawRule<'static> {
    fn from(rule: &Rule) -> Self {
        let tiered = (rule.ceiling != rule.capacity()).then_some(rule.ceiling);
        Self {
            algorithm: RawAlgorithm::of(&rule.algorithm, tiered),
            set_aside: rule.set_aside,
            shadow: !rule.is_enforced(),
            ban: rule.ban.map(|ban| RawBan {
                length_nanos: ban.length.as_nanos(),
                escalation: ban.escalation,
                longest_nanos: ban.longest.as_nanos(),
            }),
        }
    }
}

impl TryFrom<RawRule<'_>> for Rule {
    type Error = CodecError;

    fn try_from(raw: RawRule<'_>) -> Result<Self, CodecError> {
        let ceiling = raw.algorithm.ceiling();
        let algorithm = Algorithm::try_from(raw.algorithm)?;
        let ceiling = within(ceiling.unwrap_or_else(|| algorithm.capacity()), MAX_UNITS)?;
        if ceiling < algorithm.capacity() {
            return Err(CodecError::Malformed);
        }
        if raw.set_aside > algorithm.capacity() {
            return Err(CodecError::Malformed);
        }
        Ok(Self {
            algorithm,
            set_aside: raw.set_aside,
            enforcement: if raw.shadow {
                Enforcement::Shadow
            } else {
                Enforcement::Enforced
            },
            ban: raw.ban.map(Ban::try_from).transpose()?,
            ceiling,
        })
    }
}

impl RawAlgorithm<'_> {
    /// The ceiling, where it is told.
    pub(crate) const fn ceiling(&self) -> Option<u64> {
        match self {
            Self::TieredTokenBucket { ceiling, .. } | Self::TieredLeakyBucket { ceiling, .. } => {
                Some(*ceiling)
            }
            Self::SlidingWindow { .. }
            | Self::SlidingLog { .. }
            | Self::FixedWindow { .. }
            | Self::CalendarWindow { .. }
            | Self::TokenBucket { .. }
            | Self::LeakyBucket { .. }
            | Self::Concurrency { .. } => None,
        }
    }
}

impl RawAlgorithm<'static> {
    /// An algorithm, and the ceiling of a bucket that tiers share.
    pub(crate) fn of(algorithm: &Algorithm, tiered: Option<u64>) -> Self {
        let window_nanos = algorithm.window().span().as_nanos();
        match algorithm {
            Algorithm::SlidingWindow(rule) => Self::SlidingWindow {
                limit: rule.limit,
                window_nanos,
                slices: rule.slices,
                hard: rule.oldest == OldestSlice::Full,
            },
            Algorithm::SlidingLog(rule) => Self::SlidingLog {
                limit: rule.limit,
                window_nanos,
            },
            Algorithm::FixedWindow(rule) => match rule.alignment {
                Alignment::Epoch(_) => Self::FixedWindow {
                    limit: rule.limit,
                    window_nanos,
                },
                Alignment::Calendar(unit, zone) => Self::CalendarWindow {
                    limit: rule.limit,
                    unit,
                    zone: zone.name(),
                },
            },
            Algorithm::TokenBucket(rule) => match tiered {
                Some(ceiling) => Self::TieredTokenBucket {
                    limit: rule.limit,
                    window_nanos,
                    burst: rule.burst,
                    ceiling,
                },
                None => Self::TokenBucket {
                    limit: rule.limit,
                    window_nanos,
                    burst: rule.burst,
                },
            },
            Algorithm::LeakyBucket(rule) => match tiered {
                Some(ceiling) => Self::TieredLeakyBucket {
                    limit: rule.limit,
                    window_nanos,
                    queue: rule.queue,
                    ceiling,
                },
                None => Self::LeakyBucket {
                    limit: rule.limit,
                    window_nanos,
                    queue: rule.queue,
                },
            },
            Algorithm::Concurrency(rule) => Self::Concurrency {
                limit: rule.limit,
                ttl_nanos: window_nanos,
            },
        }
    }
}

impl TryFrom<RawAlgorithm<'_>> for Algorithm {
    type Error = CodecError;

    fn try_from(raw: RawAlgorithm<'_>) -> Result<Self, CodecError> {
        Ok(match raw {
            RawAlgorithm::SlidingWindow {
                limit,
                window_nanos,
                slices,
                hard,
            } => sliding_window((limit, window_nanos), slices, hard)?,
            RawAlgorithm::SlidingLog {
                limit,
                window_nanos,
            } => Self::SlidingLog(SlidingLog {
                limit: within(limit, MAX_LOG_LIMIT)?,
                window: window(window_nanos)?,
            }),
            RawAlgorithm::FixedWindow {
                limit,
                window_nanos,
            } => Self::FixedWindow(FixedWindow {
                limit: within(limit, MAX_UNITS)?,
                alignment: Alignment::Epoch(window(window_nanos)?),
            }),
            RawAlgorithm::CalendarWindow { limit, unit, zone } => {
                let zone = Zone::named(zone).ok_or(CodecError::Malformed)?;
                Self::FixedWindow(FixedWindow {
                    limit: within(limit, MAX_UNITS)?,
                    alignment: Alignment::Calendar(unit, zone),
                })
            }
            RawAlgorithm::TokenBucket {
                limit,
                window_nanos,
                burst,
            }
            | RawAlgorithm::TieredTokenBucket {
                limit,
                window_nanos,
                burst,
                ceiling: _,
            } => token_bucket((limit, window_nanos), burst)?,
            RawAlgorithm::LeakyBucket {
                limit,
                window_nanos,
                queue,
            }
            | RawAlgorithm::TieredLeakyBucket {
                limit,
                window_nanos,
                queue,
                ceiling: _,
            } => Self::LeakyBucket(LeakyBucket {
                limit: within(limit, MAX_UNITS)?,
                window: window(window_nanos)?,
                queue: within(queue, MAX_UNITS.saturating_sub(1))?,
            }),
            RawAlgorithm::Concurrency { limit, ttl_nanos } => Self::Concurrency(Concurrency {
                limit: within(limit, MAX_LOG_LIMIT)?,
                ttl: window(ttl_nanos)?,
            }),
        })
    }
}

impl TryFrom<RawBan> for Ban {
    type Error = CodecError;

    fn try_from(raw: RawBan) -> Result<Self, CodecError> {
        let (length, longest) = (window(raw.length_nanos)?, window(raw.longest_nanos)?);
        if longest < length || !(1000..=MAX_ESCALATION).contains(&raw.escalation) {
            return Err(CodecError::Malformed);
        }
        Ok(Self {
            length: length.span(),
            escalation: raw.escalation,
            longest: longest.span(),
        })
    }
}

fn sliding_window(
    (limit, window_nanos): (u64, u64),
    slices: u8,
    hard: bool,
) -> Result<Algorithm, CodecError> {
    if !(1..=MAX_SLICES).contains(&slices) || (hard && slices < 2) {
        return Err(CodecError::Malformed);
    }
    Ok(Algorithm::SlidingWindow(SlidingWindow {
        limit: within(limit, MAX_UNITS)?,
        window: window(window_nanos)?,
        slices,
        oldest: if hard {
            OldestSlice::Full
        } else {
            OldestSlice::Weighted
        },
    }))
}

fn token_bucket((limit, window_nanos): (u64, u64), burst: u64) -> Result<Algorithm, CodecError> {
    if (limit == 0) != (burst == 0) {
        return Err(CodecError::Malformed);
    }
    Ok(Algorithm::TokenBucket(TokenBucket {
        limit: within(limit, MAX_UNITS)?,
        window: window(window_nanos)?,
        burst: within(burst, MAX_UNITS)?,
    }))
}

fn within(number: u64, most: u64) -> Result<u64, CodecError> {
    if number > most {
        return Err(CodecError::Malformed);
    }
    Ok(number)
}

fn window(nanos: u64) -> Result<Window, CodecError> {
    Window::new(Nanos::new(nanos)).ok_or(CodecError::Malformed)
}
