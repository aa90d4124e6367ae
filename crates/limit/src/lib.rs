//! How much: units, rules, keys, policies and the counters.
//!
//! Pure. Time comes in as [`Nanos`] of one monotonic clock, answers go out as values. This crate must
//! not know of clocks, I/O, async or serde, of frames, peers or HTTP.
//!
//! One check: a [`Policy`] selects the limits that apply and hashes their keys, the [`Store`] of
//! the key's owner decides, a [`Decision`] gathers what was said.

#![warn(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::float_arithmetic,
    clippy::indexing_slicing
)]
#![cfg_attr(
    test,
    allow(
        clippy::arithmetic_side_effects,
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::float_arithmetic,
        clippy::indexing_slicing,
        reason = "a test may panic, and its build checks every operator"
    )
)]

mod action;
mod attributes;
mod bucket;
mod calendar;
mod counter;
mod decision;
mod entries;
mod fixed_window;
mod judge;
mod key;
mod policy;
mod question;
mod receipt;
mod rule;
mod series;
mod slot_set;
mod spec;
mod store;
mod units;
mod verdict;
mod window;

pub use self::{
    action::{Action, ActionError, AmendedLimit, Ending, Settling},
    attributes::{AttributeError, Attributes, MAX_ATTRIBUTES, MAX_NAME_LENGTH, MAX_VALUE_LENGTH},
    calendar::{CalendarUnit, Zone},
    decision::{CheckId, DecidedBy, Decision, LimitDecision, NodeId},
    key::{HashKey, KeyHash, KeyHasher, SLOT_COUNT, SlotId},
    policy::{
        Application, Applied, AppliedLimits, Limit, MAX_LIMITS_PER_POLICY, Pattern, Policies,
        Policy, PolicyError, Tally, parse_address,
    },
    question::{Call, CheckError, DEFAULT_POLICY, Question, Subject},
    receipt::{Charge, ChargedAt, Receipt, ReceiptItem, ReceiptItems},
    rule::{
        Algorithm, Alignment, Ban, Concurrency, Enforcement, FixedWindow, LeakyBucket,
        MAX_ESCALATION, MAX_LOG_LIMIT, MAX_SLICES, OldestSlice, Rule, SlidingLog, SlidingWindow,
        TokenBucket,
    },
    series::{Body, Counter, Merged, Series, SeriesWords, Writer},
    slot_set::SlotSet,
    spec::{
        AlgorithmSpec, BanSpec, CostSource, Counted, DEFAULT_IPV6_PREFIX, DEFAULT_SLICES, Fallback,
        LimitNumber, LimitSpec, SetAsideSpec, SpecError, TierNumber,
    },
    store::{
        Ask, Change, MIN_REPLICATED_WINDOW, SEND_AFTER, SHARD_COUNT, Store, StoreConfig, StoreStats,
    },
    units::{Cost, MAX_UNITS, Nanos, OutOfRange, Window},
    verdict::{Mode, Outcome, Reason, Verdict},
};
