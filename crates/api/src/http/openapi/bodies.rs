//! The bodies of calls, as the document tells them.
//!
//! Bodies are read by hand, so these types stand for what is read; tests hold them to it, field by field.

use std::collections::BTreeMap;

use serde_json::json;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, OneOfBuilder, Ref, RefOr, Schema, Type, schema::SchemaType},
};

/// One check: of a policy, or with its own limit.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"policy": "api", "attributes": {"ip": "203.0.113.7", "api_key": "k1"}, "cost": 3}))]
pub(super) struct Check {
    /// The name of a configured policy. Not beside `limit`.
    #[schema(required = false, default = "default")]
    policy: String,
    /// What is known of the request; at most 64. Not beside `limit`.
    #[schema(required = false)]
    attributes: BTreeMap<String, Attribute>,
    /// A limit that comes with the check.
    #[schema(required = false)]
    limit: Limit,
    /// What `limit` counts by; 1 to 16 attributes, none of them empty. Only beside `limit`.
    #[schema(required = false)]
    key: BTreeMap<String, Attribute>,
    /// Units. 0 is a peek for one unit.
    #[schema(required = false, default = 1, maximum = 9007199254740992u64)]
    cost: u64,
    /// Decide as if it were charged, and charge nothing.
    #[schema(required = false, default = false)]
    peek: bool,
}

/// Checks, each on its own.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Checks {
    /// They are decided in this order.
    #[schema(max_items = 1000)]
    checks: Vec<Check>,
}

/// A limit that comes with a check.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "login", "limit": 5, "window": "1m"}))]
pub(super) struct Limit {
    #[schema(pattern = "^[A-Za-z0-9._-]{1,64}$")]
    name: String,
    /// Units; 0 is a block.
    #[schema(maximum = 9007199254740992u64)]
    limit: u64,
    #[schema(required = false)]
    algorithm: Algorithm,
    /// What `limit` counts over, or drains in. For all but `concurrency` and calendar windows.
    #[schema(required = false)]
    window: Duration,
    /// For `fixed-window` without `window`: the part of the calendar.
    #[schema(required = false)]
    calendar: Calendar,
    /// For `calendar`.
    #[schema(required = false, default = "UTC", example = "Europe/Berlin")]
    time_zone: String,
    /// For `sliding-window`.
    #[schema(required = false, default = 10, minimum = 1, maximum = 60)]
    slices: u8,
    /// For `sliding-window` with `slices` of 2 or more: never more than `limit` in any window.
    #[schema(required = false, default = false)]
    hard: bool,
    /// For `token-bucket`; `limit` if left out.
    #[schema(required = false, maximum = 9007199254740992u64)]
    burst: u64,
    /// For `leaky-bucket`; one less than `limit` if left out.
    #[schema(required = false, maximum = 9007199254740992u64)]
    queue: u64,
    /// For `concurrency`: when a permit ends that nobody released.
    #[schema(required = false)]
    ttl: Duration,
    /// Decided, counted and told, but never denied.
    #[schema(required = false, default = false)]
    shadow: bool,
    /// What decides if the counter's owner cannot be reached.
    #[schema(required = false)]
    fallback: Fallback,
    /// Of the local fallback.
    #[schema(required = false)]
    share: Share,
}

/// How a limit counts.
#[derive(ToSchema)]
#[schema(rename_all = "kebab-case", default = "sliding-window")]
pub(super) enum Algorithm {
    SlidingWindow,
    SlidingLog,
    FixedWindow,
    TokenBucket,
    LeakyBucket,
    Concurrency,
}

#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
enum Calendar {
    Hour,
    Day,
    Week,
    Month,
    Year,
}

#[derive(ToSchema)]
#[schema(rename_all = "lowercase", default = "local")]
enum Fallback {
    Local,
    Allow,
    Deny,
}

#[derive(ToSchema)]
#[schema(rename_all = "lowercase", default = "full")]
enum Share {
    Full,
    Fair,
}

/// Names an admitted check or reservation.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RefundById {
    /// The `id` of its answer.
    id: String,
}

/// The real cost of a reservation: `cost`, `attributes` or both.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Settle {
    /// The `id` of its answer.
    id: String,
    /// For limits that took the cost of the request; may be above the estimate.
    #[schema(required = false, maximum = 9007199254740992u64)]
    cost: u64,
    /// For limits that took the cost from an attribute, by its name.
    #[schema(required = false, example = json!({"tokens": 350}))]
    attributes: BTreeMap<String, Attribute>,
}

/// How what was checked for ended.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Report {
    /// The `id` of the check's answer.
    id: String,
    outcome: Ending,
}

#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
enum Ending {
    Success,
    Failure,
}

/// Gives permits back.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Release {
    /// That of the answer of `POST /v1/acquire`.
    permit_id: String,
}

/// How a switch is to stand.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"on": true}))]
pub(super) struct Switch {
    on: bool,
}

/// A value: text, a number or a truth.
pub(super) struct Attribute;

impl PartialSchema for Attribute {
    fn schema() -> RefOr<Schema> {
        let kinds = [Type::String, Type::Number, Type::Boolean];
        ObjectBuilder::new()
            .schema_type(SchemaType::from_iter(kinds))
            .description(Some(
                "Text of at most 1024 bytes without control characters, a number or a boolean. Empty text \
                 is an absent attribute.",
            ))
            .max_length(Some(1024))
            .into()
    }
}

impl ToSchema for Attribute {}

/// A span of time.
pub(super) struct Duration;

impl PartialSchema for Duration {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some(
                "Whole numbers with the units w, d, h, m, s and ms, the longer first; \"1ms\" to \"3660d\".",
            ))
            .pattern(Some("^([0-9]+(w|d|h|ms|m|s))+$"))
            .examples([json!("1m"), json!("1h30m")])
            .into()
    }
}

impl ToSchema for Duration {}

/// A refund of one check by its id, or of what such a check would cost.
pub(super) struct Refund;

impl PartialSchema for Refund {
    fn schema() -> RefOr<Schema> {
        OneOfBuilder::new()
            .item(Ref::from_schema_name(RefundById::name()))
            .item(Ref::from_schema_name(Check::name()))
            .into()
    }
}

impl ToSchema for Refund {}
