//! The fields of each algorithm: which belong to it, which it needs.
//!
//! Knows nothing of bounds: those are for `tollgate-limit` to say.

use tollgate_limit::{AlgorithmSpec, CalendarUnit, DEFAULT_SLICES, Nanos};
use toml::Spanned;

use super::raw_limit::{Places, RawLimit};
use crate::config::{error::ConfigError, raw::Span, source::Source};

/// The window of a limit that is `unlimited` and says none: its counter is never used.
const UNUSED_WINDOW: Nanos = Nanos::from_millis(60_000);
/// What the end of permits looks like.
const TTL: &str = "write ttl = \"30s\", after which a permit ends";
/// What a window looks like.
const WINDOW: &str = "write window = \"1m\"";

/// An algorithm as the file names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    SlidingWindow,
    SlidingLog,
    FixedWindow,
    TokenBucket,
    LeakyBucket,
    Concurrency,
}

impl Kind {
    const ALL: [Self; 6] = [
        Self::SlidingWindow,
        Self::SlidingLog,
        Self::FixedWindow,
        Self::TokenBucket,
        Self::LeakyBucket,
        Self::Concurrency,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::SlidingWindow => "sliding-window",
            Self::SlidingLog => "sliding-log",
            Self::FixedWindow => "fixed-window",
            Self::TokenBucket => "token-bucket",
            Self::LeakyBucket => "leaky-bucket",
            Self::Concurrency => "concurrency",
        }
    }
}

/// The fields that not every algorithm has, and those that have them.
const FIELDS: [(&str, &[Kind]); 8] = [
    (
        "window",
        &[
            Kind::SlidingWindow,
            Kind::SlidingLog,
            Kind::FixedWindow,
            Kind::TokenBucket,
            Kind::LeakyBucket,
        ],
    ),
    ("calendar", &[Kind::FixedWindow]),
    ("time_zone", &[Kind::FixedWindow]),
    ("slices", &[Kind::SlidingWindow]),
    ("hard", &[Kind::SlidingWindow]),
    ("burst", &[Kind::TokenBucket]),
    ("queue", &[Kind::LeakyBucket]),
    ("ttl", &[Kind::Concurrency]),
];

/// The algorithm of a limit. One that is `unlimited` may leave out what it would count with.
pub(super) fn algorithm_of(
    source: &Source,
    places: &Places,
    raw: &RawLimit,
    unlimited: bool,
) -> Result<AlgorithmSpec, ConfigError> {
    let kind = kind_of(source, raw.algorithm.as_ref())?;
    for (field, kinds) in FIELDS {
        if let Some(place) = places.written(field)
            && !kinds.contains(&kind)
        {
            let wrong = format!("is no field of algorithm {:?}", kind.name());
            let right = if kind == Kind::Concurrency && field == "window" {
                TTL.to_owned()
            } else {
                format!("it is for {}: remove it", names(kinds))
            };
            return Err(source.mistake(place, field, wrong, right));
        }
    }
    let needed = |field, written: Option<&Spanned<Span>>, right| match written {
        Some(span) => Ok(span.get_ref().0),
        None if unlimited => Ok(UNUSED_WINDOW),
        None => Err(source.mistake(places.place(field), field, "is missing", right)),
    };
    let window = |right| needed("window", raw.window.as_ref(), right);
    Ok(match kind {
        Kind::SlidingWindow => AlgorithmSpec::SlidingWindow {
            window: window(WINDOW)?,
            slices: raw
                .slices
                .as_ref()
                .map_or(DEFAULT_SLICES, |slices| slices.get_ref().0),
            hard: raw.hard.as_ref().is_some_and(|hard| *hard.get_ref()),
        },
        Kind::SlidingLog => AlgorithmSpec::SlidingLog {
            window: window(WINDOW)?,
        },
        Kind::FixedWindow => match calendar_of(source, places, raw)? {
            Some(unit) => AlgorithmSpec::CalendarWindow {
                unit,
                time_zone: raw.time_zone.as_ref().map(|zone| zone.get_ref().clone()),
            },
            None => AlgorithmSpec::FixedWindow {
                window: window("write window = \"1m\", or calendar = \"day\"")?,
            },
        },
        Kind::TokenBucket => AlgorithmSpec::TokenBucket {
            window: window(WINDOW)?,
            burst: raw.burst.as_ref().map(|burst| burst.get_ref().0),
        },
        Kind::LeakyBucket => AlgorithmSpec::LeakyBucket {
            window: window(WINDOW)?,
            queue: raw.queue.as_ref().map(|queue| queue.get_ref().0),
        },
        Kind::Concurrency => AlgorithmSpec::Concurrency {
            ttl: needed("ttl", raw.ttl.as_ref(), TTL)?,
        },
    })
}

fn kind_of(source: &Source, raw: Option<&Spanned<String>>) -> Result<Kind, ConfigError> {
    let Some(written) = raw else {
        return Ok(Kind::SlidingWindow);
    };
    let name = written.get_ref();
    let known = Kind::ALL.into_iter().find(|kind| kind.name() == name);
    known.ok_or_else(|| {
        let wrong = format!("{name:?} is not an algorithm");
        let right = format!("write {}", names(&Kind::ALL));
        source.mistake(&written.span(), "algorithm", wrong, right)
    })
}

/// The part of the calendar, if the window is one; a time zone is for those alone.
fn calendar_of(
    source: &Source,
    places: &Places,
    raw: &RawLimit,
) -> Result<Option<CalendarUnit>, ConfigError> {
    let Some(written) = &raw.calendar else {
        return match &raw.time_zone {
            Some(zone) => {
                let right = "set calendar = \"day\", or remove it";
                Err(source.mistake(&zone.span(), "time_zone", "is for calendar windows", right))
            }
            None => Ok(None),
        };
    };
    if let Some(place) = places.written("window") {
        let right = "remove one of the two";
        return Err(source.mistake(place, "window", "stands beside calendar", right));
    }
    let name = written.get_ref();
    let unit = CalendarUnit::from_name(name).ok_or_else(|| {
        let wrong = format!("{name:?} is not a part of the calendar");
        let all = CalendarUnit::ALL.map(CalendarUnit::name);
        let right = format!("write {}", list(&all));
        source.mistake(&written.span(), "calendar", wrong, right)
    });
    unit.map(Some)
}

fn names(kinds: &[Kind]) -> String {
    let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
    list(&names)
}

/// `"a", "b" or "c"`.
fn list(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("{name:?}")).collect();
    match quoted.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        Some((only, _)) => only.clone(),
        None => String::new(),
    }
}
