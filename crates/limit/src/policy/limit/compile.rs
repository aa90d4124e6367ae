//! From what people write to rules that can be computed with: every bound of rule 9 is checked here.
//!
//! Knows nothing of keys or checks. Each fault names the field as people write it.

use std::collections::HashSet;

use super::{
    MAX_KEY_ATTRIBUTES,
    tiers::{Rules, Tiers},
};
use crate::{
    calendar::Zone,
    rule::{
        Algorithm, Alignment, Ban, Concurrency, Enforcement, FixedWindow, LeakyBucket,
        MAX_ESCALATION, MAX_LOG_LIMIT, MAX_SLICES, OldestSlice, Rule, SlidingLog, SlidingWindow,
        TokenBucket,
    },
    spec::{
        AlgorithmSpec, BanSpec, CostSource, Counted, LimitNumber, LimitSpec, SetAsideSpec,
        SpecError, TierNumber,
    },
    units::{MAX_UNITS, Nanos, Window},
};

/// The most values that tiers or a share set aside may name.
const MAX_VALUES: usize = 1024;
/// The longest ban unless told otherwise: 24 hours.
const DEFAULT_LONGEST_BAN: Nanos = Nanos::from_millis(24 * 3600 * 1000);
/// Parts of a share: it is told in millionths.
const MILLION: u64 = 1_000_000;

/// The rules of a spec, by tier.
pub(super) fn tiers_of(spec: &LimitSpec) -> Result<Tiers, SpecError> {
    let compile = Compile {
        algorithm: &spec.algorithm,
        ban: spec.ban.as_ref().map(|ban| ban_of(ban, spec)).transpose()?,
        share: spec.set_aside.as_ref().map(share_of).transpose()?,
        enforcement: if spec.shadow {
            Enforcement::Shadow
        } else {
            Enforcement::Enforced
        },
    };
    check_kind(spec)?;
    match &spec.limit {
        LimitNumber::One(limit) => Ok(Tiers::One(compile.rules(*limit, "limit")?)),
        LimitNumber::Unlimited => {
            // Its other numbers are checked all the same: they will be used when it is limited again.
            compile.rules(1, "limit")?;
            Ok(Tiers::Exempt)
        }
        LimitNumber::By {
            attribute,
            values,
            default,
        } => {
            if attribute.is_empty() {
                return Err(error("limit.by", "is empty", "the name of an attribute"));
            }
            if values.len() > MAX_VALUES {
                return Err(error("limit.values", "too many values", "at most 1024"));
            }
            let mut known = HashSet::new();
            if let Some((twice, _)) = values.iter().find(|(value, _)| !known.insert(value)) {
                let wrong = format!("{twice:?} stands twice");
                return Err(error("limit.values", wrong, "each value once"));
            }
            let mut tiers = Vec::with_capacity(values.len());
            for (value, number) in values {
                let rules = compile.tier(*number, &format!("limit.values.{value}"))?;
                tiers.push((value.clone(), rules));
            }
            Ok(Tiers::by(
                attribute.clone(),
                tiers,
                compile.tier(*default, "limit.default")?,
            ))
        }
    }
}

/// What all tiers of a limit share.
struct Compile<'a> {
    algorithm: &'a AlgorithmSpec,
    ban: Option<Ban>,
    share: Option<u64>,
    enforcement: Enforcement,
}

impl Compile<'_> {
    fn tier(&self, number: TierNumber, field: &str) -> Result<Option<Rules>, SpecError> {
        match number {
            TierNumber::Units(limit) => self.rules(limit, field).map(Some),
            TierNumber::Unlimited => Ok(None),
        }
    }

    fn rules(&self, limit: u64, field: &str) -> Result<Rules, SpecError> {
        let algorithm = algorithm_of(self.algorithm, limit, field)?;
        let rule = Rule {
            algorithm,
            set_aside: 0,
            enforcement: self.enforcement,
            ban: self.ban,
            // That of all tiers is known when all are made.
            ceiling: algorithm.capacity(),
        };
        let set_aside = self
            .share
            .map_or(0, |share| part_of(rule.capacity(), share));
        Ok(Rules {
            named: rule,
            others: Rule { set_aside, ..rule },
        })
    }
}

/// A share of the capacity in whole units, rounded up.
fn part_of(capacity: u64, share: u64) -> u64 {
    let product = u128::from(capacity).saturating_mul(u128::from(share));
    let part = product.div_ceil(u128::from(MILLION));
    u64::try_from(part).unwrap_or(u64::MAX).min(capacity)
}

fn algorithm_of(spec: &AlgorithmSpec, limit: u64, field: &str) -> Result<Algorithm, SpecError> {
    units(field, limit)?;
    Ok(match spec {
        AlgorithmSpec::SlidingWindow {
            window,
            slices,
            hard,
        } => sliding_window(limit, *window, *slices, *hard)?,
        AlgorithmSpec::SlidingLog { window } => Algorithm::SlidingLog(SlidingLog {
            limit: few(field, limit, "a sliding log keeps an entry for each check")?,
            window: window_of("window", *window)?,
        }),
        AlgorithmSpec::FixedWindow { window } => Algorithm::FixedWindow(FixedWindow {
            limit,
            alignment: Alignment::Epoch(window_of("window", *window)?),
        }),
        AlgorithmSpec::CalendarWindow { unit, time_zone } => Algorithm::FixedWindow(FixedWindow {
            limit,
            alignment: Alignment::Calendar(*unit, zone_of(time_zone.as_deref())?),
        }),
        AlgorithmSpec::TokenBucket { window, burst } => token_bucket(limit, *window, *burst)?,
        AlgorithmSpec::LeakyBucket { window, queue } => {
            let queue = queue.unwrap_or(limit.saturating_sub(1));
            if queue >= MAX_UNITS {
                return Err(error(
                    "queue",
                    format!("{queue} is too large"),
                    "below 2^53",
                ));
            }
            Algorithm::LeakyBucket(LeakyBucket {
                limit,
                window: window_of("window", *window)?,
                queue,
            })
        }
        AlgorithmSpec::Concurrency { ttl } => Algorithm::Concurrency(Concurrency {
            limit: few(field, limit, "each permit is kept")?,
            ttl: window_of("ttl", *ttl)?,
        }),
    })
}

fn sliding_window(
    limit: u64,
    window: Nanos,
    slices: u64,
    hard: bool,
) -> Result<Algorithm, SpecError> {
    let window = window_of("window", window)?;
    let slices = u8::try_from(slices)
        .ok()
        .filter(|slices| (1..=MAX_SLICES).contains(slices));
    let Some(slices) = slices else {
        let right = "a whole number from 1 to 60";
        return Err(error("slices", "out of range", right));
    };
    if hard && slices < 2 {
        let wrong = "needs two slices at least";
        return Err(error("hard", wrong, "set slices = 2 or more"));
    }
    let oldest = if hard {
        OldestSlice::Full
    } else {
        OldestSlice::Weighted
    };
    Ok(Algorithm::SlidingWindow(SlidingWindow {
        limit,
        window,
        slices,
        oldest,
    }))
}

fn token_bucket(limit: u64, window: Nanos, burst: Option<u64>) -> Result<Algorithm, SpecError> {
    let burst = match (limit, burst) {
        // Nothing flows, so nothing may burst: a block.
        (0, _) => 0,
        (_, None) => limit,
        (_, Some(0)) => return Err(error("burst", "is 0", "1 at least; to block set limit = 0")),
        (_, Some(burst)) => burst,
    };
    units("burst", burst)?;
    Ok(Algorithm::TokenBucket(TokenBucket {
        limit,
        window: window_of("window", window)?,
        burst,
    }))
}

fn zone_of(name: Option<&str>) -> Result<Zone, SpecError> {
    let Some(name) = name else {
        return Ok(Zone::utc());
    };
    Zone::named(name).ok_or_else(|| {
        let wrong = format!("{name:?} is not a time zone");
        error("time_zone", wrong, "a name such as \"Europe/Berlin\"")
    })
}

fn units(field: &str, units: u64) -> Result<(), SpecError> {
    if units > MAX_UNITS {
        return Err(error(
            field,
            format!("{units} is too large"),
            "at most 2^53",
        ));
    }
    Ok(())
}

fn few(field: &str, limit: u64, why: &str) -> Result<u64, SpecError> {
    if limit > MAX_LOG_LIMIT {
        let wrong = format!("{limit} is too large: {why}");
        return Err(error(field, wrong, "at most 10000"));
    }
    Ok(limit)
}

fn window_of(field: &str, window: Nanos) -> Result<Window, SpecError> {
    Window::new(window).ok_or_else(|| {
        let wrong = format!("{} ns is out of range", window.as_nanos());
        error(field, wrong, "from 1ms to 3660d")
    })
}

/// What fits together only with some algorithms.
fn check_kind(spec: &LimitSpec) -> Result<(), SpecError> {
    let is_concurrency = matches!(spec.algorithm, AlgorithmSpec::Concurrency { .. });
    if is_concurrency && spec.count == Counted::Failures {
        let right = "another algorithm, or count = \"requests\"";
        return Err(error("count", "permits have no failures", right));
    }
    if spec.ban.is_some() && spec.count == Counted::Requests {
        let right = "set count = \"failures\"";
        return Err(error("ban", "is for limits that count failures", right));
    }
    if let CostSource::Attribute(name) = &spec.cost
        && name.is_empty()
    {
        return Err(error("cost", "is empty", "the name of an attribute"));
    }
    if !(1..=128).contains(&spec.ipv6_prefix) {
        let wrong = format!("{} is out of range", spec.ipv6_prefix);
        return Err(error("ipv6_prefix", wrong, "from 1 to 128"));
    }
    Ok(())
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::float_arithmetic,
    reason = "a factor that was checked to lie between 1 and 1000 is made a whole number of thousandths"
)]
fn ban_of(spec: &BanSpec, limit: &LimitSpec) -> Result<Ban, SpecError> {
    if limit.count == Counted::Requests {
        let right = "set count = \"failures\"";
        return Err(error("ban", "is for limits that count failures", right));
    }
    window_of("ban.for", spec.length)?;
    let longest = spec
        .longest
        .unwrap_or_else(|| DEFAULT_LONGEST_BAN.max(spec.length));
    window_of("ban.max", longest)?;
    if longest < spec.length {
        return Err(error(
            "ban.max",
            "is shorter than `for`",
            "as long as `for` at least",
        ));
    }
    if !(1.0..=1000.0).contains(&spec.escalate) {
        let wrong = format!("{} is out of range", spec.escalate);
        return Err(error("ban.escalate", wrong, "from 1 to 1000"));
    }
    let escalation = (spec.escalate * 1000.0).round() as u32;
    Ok(Ban {
        length: spec.length,
        escalation: escalation.clamp(1000, MAX_ESCALATION),
        longest,
    })
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::float_arithmetic,
    reason = "a share that was checked to lie between 0 and 1 is made a whole number of millionths"
)]
fn share_of(spec: &SetAsideSpec) -> Result<u64, SpecError> {
    if spec.attribute.is_empty() {
        return Err(error(
            "set_aside.by",
            "is empty",
            "the name of an attribute",
        ));
    }
    if spec.values.is_empty() || spec.values.len() > MAX_VALUES {
        return Err(error(
            "set_aside.values",
            "has none or too many",
            "from 1 to 1024 values",
        ));
    }
    if !(spec.share > 0.0 && spec.share <= 1.0) {
        let wrong = format!("{} is out of range", spec.share);
        return Err(error("set_aside.share", wrong, "above 0 and at most 1"));
    }
    let parts = (spec.share * MILLION as f64).round() as u64;
    Ok(parts.clamp(1, MILLION))
}

pub(super) fn check_name(field: &str, name: &str) -> Result<(), SpecError> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if (1..=64).contains(&name.len()) && name.bytes().all(legal) {
        return Ok(());
    }
    let right = "1 to 64 characters of A-Z, a-z, 0-9, '.', '_' and '-'";
    Err(error(field, format!("{name:?} is not a name"), right))
}

pub(super) fn check_key(key: &[String]) -> Result<(), SpecError> {
    if key.len() > MAX_KEY_ATTRIBUTES {
        return Err(error("key", "too many attributes", "at most 16"));
    }
    if key.iter().any(String::is_empty) {
        return Err(error(
            "key",
            "an attribute has no name",
            "names of attributes",
        ));
    }
    let twice = key
        .iter()
        .enumerate()
        .find(|(at, name)| key.iter().take(*at).any(|k| k == *name));
    match twice {
        Some((_, name)) => Err(error(
            "key",
            format!("{name:?} stands twice"),
            "each name once",
        )),
        None => Ok(()),
    }
}

fn error(field: &str, wrong: impl Into<String>, right: &str) -> SpecError {
    SpecError {
        field: field.to_owned(),
        wrong: wrong.into(),
        right: right.to_owned(),
    }
}
