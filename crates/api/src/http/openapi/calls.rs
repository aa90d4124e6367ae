//! All calls, as the document tells them: paths, methods, who may, what goes in and what comes out.

use utoipa::{ToSchema, openapi::HttpMethod};

use super::{answers, bodies};

/// A call.
pub(super) struct Call {
    pub(super) methods: &'static [Verb],
    pub(super) path: &'static str,
    pub(super) does: &'static str,
    pub(super) needs_token: bool,
    pub(super) parameters: &'static [Parameter],
    /// The name of the body's schema.
    pub(super) body: Option<String>,
    pub(super) answers: Answers,
    /// What goes wrong, by status.
    pub(super) problems: &'static [u16],
}

/// A method, and its name.
pub(super) type Verb = (HttpMethod, &'static str);

const GET: &[Verb] = &[(HttpMethod::Get, "get")];
const POST: &[Verb] = &[(HttpMethod::Post, "post")];
const PUT: &[Verb] = &[(HttpMethod::Put, "put")];
const DELETE: &[Verb] = &[(HttpMethod::Delete, "delete")];
/// All that the document has a word for.
const ANY: &[Verb] = &[
    (HttpMethod::Get, "get"),
    (HttpMethod::Post, "post"),
    (HttpMethod::Put, "put"),
    (HttpMethod::Delete, "delete"),
    (HttpMethod::Options, "options"),
    (HttpMethod::Head, "head"),
    (HttpMethod::Patch, "patch"),
    (HttpMethod::Trace, "trace"),
];

/// The media type of plain text.
pub(super) const PLAIN: &str = "text/plain";

/// What a call is answered with when nothing is wrong with it.
pub(super) enum Answers {
    /// A decision.
    Decision,
    /// A decision for a proxy.
    Proxy,
    /// JSON of the schema of this name.
    Json(String),
    /// Text of this media type.
    Text(&'static str),
    /// Any JSON object.
    Object,
    /// No body.
    Nothing,
}

/// A parameter of a call.
#[derive(Clone, Copy)]
pub(super) enum Parameter {
    /// Of a check: whether the answer is held back.
    Wait,
    /// The policy in the path.
    PolicyInPath,
    /// The status of a refusal.
    DenyStatus,
    /// The policy, the limit and the attributes of a counter.
    Policy,
    Limit,
    Attributes,
}

/// The media type of metrics.
const OPEN_METRICS: &str = "application/openmetrics-text";
/// What is wrong with a check, by status.
const CHECKING: [u16; 6] = [400, 403, 404, 408, 413, 415];
/// The same, where the token is needed.
const RESERVING: [u16; 7] = [400, 401, 403, 404, 408, 413, 415];

/// All calls.
pub(super) fn all() -> Vec<Call> {
    [deciding(), acting(), counters(), switches(), watching()]
        .into_iter()
        .flatten()
        .collect()
}

fn deciding() -> Vec<Call> {
    let reserve = "Decides a check whose cost is an estimate.";
    let acquire = "Decides a check that takes permits too.";
    let proxy = "Decides for a proxy, with any method; the attributes are those of the proxied request. A path \
                 may follow: then it is that of the request, and `deny_status` does not count.";
    vec![
        Call {
            needs_token: false,
            ..decision("/v1/check", &CHECKING, "Decides one check.")
        },
        Call {
            needs_token: false,
            problems: &[400, 408, 413, 415],
            ..post::<bodies::Checks>(
                "/v1/checks",
                Answers::Json(name::<answers::Decisions>()),
                "Decides up to 1000 checks, each on its own.",
            )
        },
        Call {
            methods: ANY,
            parameters: &[Parameter::PolicyInPath, Parameter::DenyStatus],
            ..get("/v1/forward-auth/{policy}", Answers::Proxy, proxy)
        },
        decision("/v1/reserve", &RESERVING, reserve),
        decision("/v1/acquire", &RESERVING, acquire),
    ]
}

/// What is done with what a check charged.
fn acting() -> Vec<Call> {
    let settle = "Puts the real cost in the place of the estimate, once.";
    let refund = "Gives back what a check charged, once; or what such a check would cost.";
    let report = "Tells limits that count failures how it ended, once.";
    let release = "Gives permits back; a second time it does nothing.";
    let amended = || Answers::Json(name::<answers::Amended>());
    let mut calls = vec![
        post::<bodies::Settle>("/v1/settle", amended(), settle),
        post::<bodies::Refund>("/v1/refund", amended(), refund),
        post::<bodies::Report>("/v1/report", amended(), report),
        post::<bodies::Release>("/v1/release", amended(), release),
    ];
    for call in &mut calls {
        call.problems = &[400, 401, 403, 404, 408, 409, 413, 415];
    }
    calls
}

fn counters() -> Vec<Call> {
    let mut calls = vec![
        get(
            "/v1/keys",
            Answers::Json(name::<answers::Counter>()),
            "The state of one counter.",
        ),
        Call {
            methods: DELETE,
            ..get(
                "/v1/keys",
                Answers::Nothing,
                "Resets one counter, its ban too.",
            )
        },
    ];
    for call in &mut calls {
        call.needs_token = true;
        call.parameters = &[Parameter::Policy, Parameter::Limit, Parameter::Attributes];
        call.problems = &[400, 401, 404, 503];
    }
    calls
}

fn switches() -> Vec<Call> {
    let switch = |path, does| Call {
        methods: PUT,
        problems: &[400, 401, 408, 413, 415],
        ..post::<bodies::Switch>(path, Answers::Json(name::<answers::Switches>()), does)
    };
    let kill = "Admits every check on every node and counts nothing, while it is on.";
    let shadow = "Decides and counts every check on every node and denies none, while it is on.";
    vec![
        switch("/v1/switches/kill", kill),
        switch("/v1/switches/shadow", shadow),
    ]
}

fn watching() -> Vec<Call> {
    let metrics = "What the node has counted, as OpenMetrics text.";
    vec![
        Call {
            needs_token: true,
            problems: &[401],
            ..get(
                "/v1/cluster",
                Answers::Json(name::<answers::Cluster>()),
                "Members and placement.",
            )
        },
        get(
            "/livez",
            Answers::Text(PLAIN),
            "200 while the process answers.",
        ),
        Call {
            problems: &[503],
            ..get(
                "/readyz",
                Answers::Text(PLAIN),
                "Whether checks should be sent here.",
            )
        },
        get("/metrics", Answers::Text(OPEN_METRICS), metrics),
        get("/openapi.json", Answers::Object, "This document."),
    ]
}

fn post<B: ToSchema>(path: &'static str, answers: Answers, does: &'static str) -> Call {
    Call {
        methods: POST,
        path,
        does,
        needs_token: true,
        parameters: &[],
        body: Some(name::<B>()),
        answers,
        problems: &RESERVING,
    }
}

/// A call that takes and answers what a check does.
fn decision(path: &'static str, problems: &'static [u16], does: &'static str) -> Call {
    Call {
        parameters: &[Parameter::Wait],
        problems,
        ..post::<bodies::Check>(path, Answers::Decision, does)
    }
}

fn get(path: &'static str, answers: Answers, does: &'static str) -> Call {
    Call {
        methods: GET,
        path,
        does,
        needs_token: false,
        parameters: &[],
        body: None,
        answers,
        problems: &[],
    }
}

fn name<T: ToSchema>() -> String {
    T::name().into_owned()
}
