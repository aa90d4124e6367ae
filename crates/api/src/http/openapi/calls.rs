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

/// All calls.
pub(super) fn all() -> Vec<Call> {
    let post = |path, does, body: String, answers| Call {
        methods: POST,
        path,
        does,
        needs_token: true,
        parameters: &[],
        body: Some(body),
        answers,
        problems: &[400, 401, 404, 408, 413, 415],
    };
    let get = |path, does, answers| Call {
        methods: GET,
        path,
        does,
        needs_token: false,
        parameters: &[],
        body: None,
        answers,
        problems: &[],
    };
    let check = || name::<bodies::Check>();
    let amended = || Answers::Json(name::<answers::Amended>());
    let acting: &[u16] = &[400, 401, 404, 408, 409, 413, 415];
    vec![
        Call {
            needs_token: false,
            parameters: &[Parameter::Wait],
            problems: &[400, 403, 404, 408, 413, 415],
            ..post(
                "/v1/check",
                "Decides one check.",
                check(),
                Answers::Decision,
            )
        },
        Call {
            needs_token: false,
            problems: &[400, 408, 413, 415],
            ..post(
                "/v1/checks",
                "Decides up to 1000 checks, each on its own.",
                name::<bodies::Checks>(),
                Answers::Json(name::<answers::Decisions>()),
            )
        },
        Call {
            methods: ANY,
            parameters: &[Parameter::PolicyInPath, Parameter::DenyStatus],
            ..get(
                "/v1/forward-auth/{policy}",
                "Decides for a proxy, with any method; the attributes are those of the proxied request. A \
                 path may follow: then it is that of the request, and `deny_status` does not count.",
                Answers::Proxy,
            )
        },
        post(
            "/v1/reserve",
            "Decides a check whose cost is an estimate.",
            check(),
            Answers::Decision,
        ),
        Call {
            problems: acting,
            ..post(
                "/v1/settle",
                "Puts the real cost in the place of the estimate, once.",
                name::<bodies::Settle>(),
                amended(),
            )
        },
        Call {
            problems: acting,
            ..post(
                "/v1/refund",
                "Gives back what a check charged, once; or what such a check would cost.",
                name::<bodies::Refund>(),
                amended(),
            )
        },
        Call {
            problems: acting,
            ..post(
                "/v1/report",
                "Tells limits that count failures how it ended, once.",
                name::<bodies::Report>(),
                amended(),
            )
        },
        post(
            "/v1/acquire",
            "Decides a check that takes permits too.",
            check(),
            Answers::Decision,
        ),
        post(
            "/v1/release",
            "Gives permits back; a second time it does nothing.",
            name::<bodies::Release>(),
            amended(),
        ),
        Call {
            needs_token: true,
            parameters: COUNTER,
            problems: &[400, 401, 404, 503],
            ..get(
                "/v1/keys",
                "The state of one counter.",
                Answers::Json(name::<answers::Counter>()),
            )
        },
        Call {
            methods: DELETE,
            needs_token: true,
            parameters: COUNTER,
            problems: &[400, 401, 404, 503],
            ..get(
                "/v1/keys",
                "Resets one counter, its ban too.",
                Answers::Nothing,
            )
        },
        Call {
            needs_token: true,
            problems: &[401],
            ..get(
                "/v1/cluster",
                "Members and placement.",
                Answers::Json(name::<answers::Cluster>()),
            )
        },
        get(
            "/livez",
            "200 while the process answers.",
            Answers::Text("text/plain"),
        ),
        Call {
            problems: &[503],
            ..get(
                "/readyz",
                "Whether checks should be sent here.",
                Answers::Text("text/plain"),
            )
        },
        get(
            "/metrics",
            "What the node has counted, as OpenMetrics text.",
            Answers::Text("application/openmetrics-text"),
        ),
        get("/openapi.json", "This document.", Answers::Object),
    ]
}

const COUNTER: &[Parameter] = &[Parameter::Policy, Parameter::Limit, Parameter::Attributes];

fn name<T: ToSchema>() -> String {
    T::name().into_owned()
}
