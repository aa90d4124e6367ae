//! `policies.toml` as it is written, and where its fields stand.
//!
//! Knows types and names of fields alone, not what fits together.

use std::{collections::BTreeMap, fmt, ops::Range};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use tollgate_limit::TierNumber;
use toml::Spanned;

use crate::config::raw::{Factor, Span, Texts, Whole};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFile {
    #[serde(default)]
    pub(super) policy: Vec<RawPolicy>,
    #[serde(default)]
    pub(super) limit: Vec<Spanned<RawLimit>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPolicy {
    pub(super) name: Spanned<String>,
    pub(super) headers: Option<Vec<Spanned<String>>>,
    pub(super) deny_status: Option<Spanned<Whole>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLimit {
    pub(super) policy: Option<Spanned<String>>,
    pub(super) name: Spanned<String>,
    #[serde(rename = "match", default)]
    pub(super) matches: BTreeMap<String, Texts>,
    pub(super) key: Option<Spanned<Vec<String>>>,
    pub(super) ipv6_prefix: Option<Spanned<Whole>>,
    pub(super) algorithm: Option<Spanned<String>>,
    pub(super) limit: Option<Spanned<RawNumber>>,
    pub(super) unlimited: Option<Spanned<bool>>,
    pub(super) window: Option<Spanned<Span>>,
    pub(super) calendar: Option<Spanned<String>>,
    pub(super) time_zone: Option<Spanned<String>>,
    pub(super) slices: Option<Spanned<Whole>>,
    pub(super) hard: Option<Spanned<bool>>,
    pub(super) burst: Option<Spanned<Whole>>,
    pub(super) queue: Option<Spanned<Whole>>,
    pub(super) ttl: Option<Spanned<Span>>,
    pub(super) cost: Option<Spanned<String>>,
    pub(super) count: Option<Spanned<String>>,
    pub(super) ban: Option<Spanned<RawBan>>,
    pub(super) set_aside: Option<Spanned<RawSetAside>>,
    #[serde(default)]
    pub(super) shadow: bool,
    pub(super) fallback: Option<Spanned<String>>,
    pub(super) share: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) required: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBan {
    #[serde(rename = "for")]
    pub(super) length: Spanned<Span>,
    pub(super) escalate: Option<Spanned<Factor>>,
    pub(super) max: Option<Spanned<Span>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSetAside {
    pub(super) by: Spanned<String>,
    pub(super) values: Spanned<Texts>,
    pub(super) share: Spanned<Factor>,
}

/// `limit`: one number, or a number for each tier.
#[derive(Debug)]
pub(super) enum RawNumber {
    One(u64),
    By(RawTiers),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTiers {
    pub(super) by: Spanned<String>,
    pub(super) values: BTreeMap<String, Spanned<RawTier>>,
    pub(super) default: Spanned<RawTier>,
}

/// The number of one tier.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawTier(pub(super) TierNumber);

impl<'de> Deserialize<'de> for RawNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl<'de> Visitor<'de> for NumberVisitor {
    type Value = RawNumber;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a whole number from 0 to 2^53, or { by = \"plan\", values = { free = 60 }, default = 60 }",
        )
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<RawNumber, E> {
        Whole::from_signed(value, &self).map(|Whole(number)| RawNumber::One(number))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawNumber, A::Error> {
        RawTiers::deserialize(MapAccessDeserializer::new(map)).map(RawNumber::By)
    }
}

impl<'de> Deserialize<'de> for RawTier {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TierVisitor)
    }
}

struct TierVisitor;

impl Visitor<'_> for TierVisitor {
    type Value = RawTier;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 0 to 2^53, or \"unlimited\"")
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<RawTier, E> {
        let number = Whole::from_signed(value, &self);
        number.map(|Whole(number)| RawTier(TierNumber::Units(number)))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<RawTier, E> {
        match text {
            "unlimited" => Ok(RawTier(TierNumber::Unlimited)),
            other => Err(E::invalid_value(serde::de::Unexpected::Str(other), &self)),
        }
    }
}

/// Where the fields of a limit stand.
#[derive(Debug)]
pub(super) struct Places {
    table: Range<usize>,
    fields: Vec<(String, Range<usize>)>,
}

impl Places {
    /// The places of all fields that are there.
    pub(super) fn of(raw: &RawLimit, table: Range<usize>) -> Self {
        let mut places = Self {
            table,
            fields: Vec::new(),
        };
        places.add("policy", raw.policy.as_ref());
        places.add("name", Some(&raw.name));
        places.add("key", raw.key.as_ref());
        places.add("ipv6_prefix", raw.ipv6_prefix.as_ref());
        places.add("algorithm", raw.algorithm.as_ref());
        places.add("limit", raw.limit.as_ref());
        places.add("unlimited", raw.unlimited.as_ref());
        places.add("window", raw.window.as_ref());
        places.add("calendar", raw.calendar.as_ref());
        places.add("time_zone", raw.time_zone.as_ref());
        places.add("slices", raw.slices.as_ref());
        places.add("hard", raw.hard.as_ref());
        places.add("burst", raw.burst.as_ref());
        places.add("queue", raw.queue.as_ref());
        places.add("ttl", raw.ttl.as_ref());
        places.add("cost", raw.cost.as_ref());
        places.add("count", raw.count.as_ref());
        places.add("ban", raw.ban.as_ref());
        places.add("set_aside", raw.set_aside.as_ref());
        places.add_nested(raw);
        places
    }

    fn add_nested(&mut self, raw: &RawLimit) {
        if let Some(RawNumber::By(tiers)) = raw.limit.as_ref().map(Spanned::get_ref) {
            self.add("limit.by", Some(&tiers.by));
            self.add("limit.default", Some(&tiers.default));
            for (value, number) in &tiers.values {
                self.add(&format!("limit.values.{value}"), Some(number));
            }
        }
        if let Some(ban) = raw.ban.as_ref().map(Spanned::get_ref) {
            self.add("ban.for", Some(&ban.length));
            self.add("ban.escalate", ban.escalate.as_ref());
            self.add("ban.max", ban.max.as_ref());
        }
        if let Some(share) = raw.set_aside.as_ref().map(Spanned::get_ref) {
            self.add("set_aside.by", Some(&share.by));
            self.add("set_aside.values", Some(&share.values));
            self.add("set_aside.share", Some(&share.share));
        }
    }

    fn add<T>(&mut self, name: &str, field: Option<&Spanned<T>>) {
        if let Some(field) = field {
            self.fields.push((name.to_owned(), field.span()));
        }
    }

    /// The place of a field, if it is there.
    pub(super) fn written(&self, name: &str) -> Option<&Range<usize>> {
        let found = self.fields.iter().find(|(known, _)| known == name);
        found.map(|(_, place)| place)
    }

    /// The place of a field; of one that is absent, of what it would stand in.
    pub(super) fn place(&self, name: &str) -> &Range<usize> {
        let mut open = name;
        loop {
            if let Some(place) = self.written(open) {
                return place;
            }
            match open.rsplit_once('.') {
                Some((parent, _)) => open = parent,
                None => return &self.table,
            }
        }
    }
}
