//! The bodies of answers, as the document tells them.
//!
//! Answers to checks are written by hand, so these types stand for what is written; tests hold them to it,
//! member by member.

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{Ref, RefOr, Schema, schema::AnyOfBuilder},
};

use super::bodies::Algorithm;

/// What was decided of a check. A refusal is a problem (RFC 9457) too.
#[derive(ToSchema)]
pub(super) struct Decision {
    /// Names the check.
    id: String,
    /// Whether the request may pass.
    allowed: bool,
    /// What each limit said that was asked. Empty if none applies: then the check is admitted.
    limits: Vec<LimitState>,
    /// The capacity of the limit that makes the headline.
    #[schema(required = false)]
    limit: u64,
    /// Units that still fit.
    #[schema(required = false)]
    remaining: u64,
    /// Milliseconds until the same cost is admitted; `null` if waiting does not help.
    #[schema(required = false)]
    retry_after_ms: Option<u64>,
    /// Milliseconds until the counter is empty.
    #[schema(required = false)]
    reset_after_ms: u64,
    /// Milliseconds that the request should be held back for.
    #[schema(required = false)]
    delay_ms: u64,
    /// What `POST /v1/release` takes: of an admitted `POST /v1/acquire`.
    #[schema(required = false)]
    permit_id: String,
    /// Of a refusal, as are all below: why.
    #[schema(required = false)]
    reason: Reason,
    /// The limits that refuse.
    #[schema(required = false)]
    denied_by: Vec<String>,
    #[schema(required = false)]
    error: RefusalError,
    /// One sentence for people.
    #[schema(required = false)]
    message: String,
    #[schema(required = false, rename = "type", format = "uri-reference")]
    kind: String,
    #[schema(required = false)]
    title: String,
    #[schema(required = false, minimum = 400, maximum = 599)]
    status: u16,
    #[schema(required = false)]
    detail: String,
    #[schema(required = false, rename = "violated-policies")]
    violated_policies: Vec<String>,
}

/// Why a check is refused.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(super) enum Reason {
    LimitExceeded,
    CostExceedsLimit,
    LimitIsZero,
    Undecided,
    QueueFull,
    SetAside,
    Banned,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(super) enum RefusalError {
    RateLimitExceeded,
    TemporarilyUndecided,
    Banned,
}

/// What one limit said.
#[derive(ToSchema)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a member of the answer"
)]
pub(super) struct LimitState {
    name: String,
    algorithm: Algorithm,
    /// The most that it can ever admit at once.
    limit: u64,
    window_ms: u64,
    /// Units used; above `limit` after it was lowered or overdrawn.
    used: u64,
    remaining: u64,
    /// `null` if waiting does not help.
    #[schema(required = true)]
    retry_after_ms: Option<u64>,
    reset_after_ms: u64,
    allowed: bool,
    decided_by: DecidedBy,
    /// The node that decided.
    node: String,
    /// Whether counts may be missing.
    degraded: bool,
    /// Whether it is only tried out.
    shadow: bool,
}

#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(super) enum DecidedBy {
    Owner,
    Standby,
    Cached,
    Fallback,
    Switch,
}

/// The state of one counter, as a peek for one unit sees it.
#[derive(ToSchema)]
pub(super) struct Counter {
    policy: String,
    #[schema(required = true)]
    owner: Option<String>,
    /// Who owns the key next; `null` in a cluster of one.
    #[schema(required = true)]
    standby: Option<String>,
    /// Why one unit more would be refused; `null` if it would not.
    #[schema(required = true)]
    reason: Option<Reason>,
    #[serde(flatten)]
    state: LimitState,
}

/// Decisions and faults, in the order of the checks.
#[derive(ToSchema)]
pub(super) struct Decisions {
    #[schema(max_items = 1000)]
    results: Vec<Outcome>,
}

#[derive(ToSchema)]
#[serde(untagged)]
pub(super) enum Outcome {
    Decided(Decision),
    Faulty(Faulty),
}

/// A check that is wrong; nothing was charged for it.
#[derive(ToSchema)]
#[schema(as = FaultyCheck)]
pub(super) struct Faulty {
    error: Problem,
}

/// What is wrong with a request (RFC 9457).
#[derive(ToSchema)]
pub(super) struct Problem {
    #[schema(rename = "type", format = "uri-reference")]
    kind: String,
    title: String,
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    detail: String,
    /// The field that is at fault.
    #[schema(required = false)]
    field: String,
    /// What would be right.
    #[schema(required = false)]
    expected: String,
}

/// What was done with a check: each of its limits as it stands now.
#[derive(ToSchema)]
pub(super) struct Amended {
    /// As it was given.
    #[schema(required = false)]
    id: String,
    /// As it was given to `POST /v1/release`.
    #[schema(required = false)]
    permit_id: String,
    limits: Vec<AmendedLimit>,
}

#[derive(ToSchema)]
pub(super) struct AmendedLimit {
    name: String,
    algorithm: Algorithm,
    limit: u64,
    #[schema(required = true)]
    used: Option<u64>,
    #[schema(required = true)]
    remaining: Option<u64>,
    #[schema(required = true)]
    reset_after_ms: Option<u64>,
    #[schema(required = true)]
    node: Option<String>,
    /// The counter's owner has not told its numbers in time; the change reaches it all the same.
    #[schema(required = false)]
    pending: bool,
}

/// The cluster as one node sees it. Fingerprints and boots are 16 hexadecimal digits.
#[derive(ToSchema)]
pub(super) struct Cluster {
    /// The node that answers.
    #[schema(rename = "self")]
    this: String,
    placement: String,
    policies: String,
    /// Why the newest policies are not in force; `null` if they are.
    #[schema(required = false)]
    policies_error: Option<String>,
    switches: Switches,
    motion: Motion,
    members: Vec<Member>,
}

/// Which of the cluster's switches are on.
#[derive(ToSchema)]
pub(super) struct Switches {
    /// Everything is admitted and nothing counted.
    kill: bool,
    /// Nothing is denied.
    shadow: bool,
}

/// Slots on their way to and from the node that answers.
#[derive(ToSchema)]
pub(super) struct Motion {
    /// Those that are to be its own and whose counts have not all come.
    slots_in: u32,
    /// Those that it decides in and that another is to own.
    slots_out: u32,
    /// `false` while it joins and counts are still to be copied.
    warm: bool,
}

#[derive(ToSchema)]
pub(super) struct Member {
    id: String,
    boot: String,
    phase: Phase,
    /// Whether the node that answers sends checks to it now.
    reachable: bool,
    peer: String,
    api: String,
    weight: u8,
    /// Its share of the 65 536 slots.
    slots: u32,
    #[schema(required = true)]
    placement: Option<String>,
    #[schema(required = true)]
    policies: Option<String>,
    /// For how long the oldest change has waited that the node that answers has not told it; `null` if it
    /// follows nothing of that node.
    #[schema(required = true)]
    replication_lag_ms: Option<u64>,
}

#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
enum Phase {
    Joining,
    Active,
    Leaving,
}

/// What a proxy is told instead of an admission: a refusal, or what is wrong with its configuration.
pub(super) struct ProxyRefusal;

impl PartialSchema for ProxyRefusal {
    fn schema() -> RefOr<Schema> {
        AnyOfBuilder::new()
            .item(Ref::from_schema_name(Decision::name()))
            .item(Ref::from_schema_name(Problem::name()))
            .into()
    }
}

impl ToSchema for ProxyRefusal {}
