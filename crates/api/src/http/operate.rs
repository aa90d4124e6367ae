//! The calls for operators and machines that watch: cluster, keys, health, metrics.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    body::Body,
    extract::{Query, State},
    response::Response,
};
use bytes::BytesMut;
use http::{HeaderValue, Request, StatusCode, Uri, header};
use serde::Serialize;
use tollgate_limit::Outcome;

use crate::{
    checker::Checker,
    fault::Fault,
    http::{
        Reach, Shared,
        answer::{self, JSON},
        exposition, guard,
        problem::{PROBLEM_JSON, Problem},
        whole::Whole,
    },
    operator::{ClusterView, CounterQuery, Operator, Readiness, Switches},
};

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// `GET /livez`: the process answers.
pub(super) async fn livez() -> Response {
    std::future::ready(text(StatusCode::OK, "ok\n".to_owned())).await
}

/// `GET /readyz`: whether checks should be sent here.
pub(super) async fn readyz<C: Checker, O: Operator>(
    State(shared): State<Arc<Shared<C, O>>>,
) -> Response {
    let (status, line) = match shared.operator.readiness() {
        Readiness::Ready => (StatusCode::OK, "ready\n".to_owned()),
        Readiness::NotReady { why } => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    };
    std::future::ready(text(status, line)).await
}

/// `GET /metrics`.
pub(super) async fn metrics<C: Checker, O: Operator>(
    State(shared): State<Arc<Shared<C, O>>>,
) -> Response {
    let exposed = exposition::render(shared.operator.metrics(), shared.tally.read());
    std::future::ready(respond(
        StatusCode::OK,
        exposition::MEDIA,
        exposed.into_bytes(),
    ))
    .await
}

/// `GET /v1/cluster`.
pub(super) async fn cluster<C: Checker, O: Operator>(
    State(shared): State<Arc<Shared<C, O>>>,
    request: Request<Body>,
) -> Response {
    let view = admit(&shared, &request).map(|()| shared.operator.cluster());
    let answer = match view {
        Ok(view) => respond(StatusCode::OK, JSON, to_json(&ClusterBody::from(&view))),
        Err(problem) => boxed(problem.into_response()),
    };
    std::future::ready(answer).await
}

/// `GET /v1/keys?policy=&limit=&attr.<name>=`.
pub(super) async fn keys<C: Checker, O: Operator>(
    State(shared): State<Arc<Shared<C, O>>>,
    request: Request<Body>,
) -> Response {
    let query = admit(&shared, &request).and_then(|()| Ok(counter_query(request.uri())?));
    match query {
        Ok(query) => match shared.operator.counter(query.clone()).await {
            Ok(view) => {
                let json = to_json(&CounterBody {
                    policy: &query.policy,
                    owner: view.owner.as_ref().map(tollgate_limit::NodeId::as_str),
                    standby: view.standby.as_ref().map(tollgate_limit::NodeId::as_str),
                    reason: match view.state.verdict.outcome {
                        Outcome::Allow => None,
                        Outcome::Refuse(reason) => Some(reason.as_str()),
                    },
                });
                // The state's members follow, written as answers write them.
                let open = json.strip_suffix(b"}").unwrap_or(&json);
                let mut body = BytesMut::from(open);
                body.extend_from_slice(b",");
                answer::write_limit_members(&mut body, &view.state);
                body.extend_from_slice(b"}");
                respond(StatusCode::OK, JSON, body.freeze())
            }
            Err(error) => boxed(Problem::from(error).into_response()),
        },
        Err(problem) => boxed(problem.into_response()),
    }
}

/// `DELETE /v1/keys?policy=&limit=&attr.<name>=`: answered without a body once the owner has done it.
pub(super) async fn reset<C: Checker, O: Operator>(
    State(shared): State<Arc<Shared<C, O>>>,
    request: Request<Body>,
) -> Response {
    let query = admit(&shared, &request).and_then(|()| Ok(counter_query(request.uri())?));
    let reset = match query {
        Ok(query) => shared.operator.reset(query).await.map_err(Problem::from),
        Err(problem) => Err(problem),
    };
    match reset {
        Ok(()) => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        }
        Err(problem) => boxed(problem.into_response()),
    }
}

/// A path that is none.
pub(super) async fn not_found() -> Response {
    let problem = Problem::new(StatusCode::NOT_FOUND, "no call has this path");
    std::future::ready(boxed(problem.into_response())).await
}

/// A path with another method; the router adds `Allow`.
pub(super) async fn method_not_allowed() -> Response {
    let detail = "this call takes the methods of the `Allow` header";
    let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail);
    std::future::ready(boxed(problem.into_response())).await
}

/// Lets in who may make the operators' calls.
pub(super) fn admit<C: Checker, O: Operator>(
    shared: &Shared<C, O>,
    request: &Request<Body>,
) -> Result<(), Problem> {
    // A request that came by no listener is taken for one from outside.
    let reach = request.extensions().get::<Reach>().copied();
    let reach = reach.unwrap_or(Reach::Network);
    guard::admit(&shared.config, reach, request.uri(), request.headers())
}

fn counter_query(uri: &Uri) -> Result<CounterQuery, Fault> {
    const PARAMETERS: &str = "`policy`, `limit` and `attr.<name>` are the parameters, each once";
    let parsed = Query::<Vec<(String, String)>>::try_from_uri(uri);
    let Query(pairs) =
        parsed.map_err(|error| Fault::new("query", error.to_string(), PARAMETERS))?;
    let (mut policy, mut limit, mut attributes) = (None, None, Vec::new());
    for (name, value) in pairs {
        let taken = match (name.as_str(), name.strip_prefix("attr.")) {
            ("policy", _) => policy.replace(value).is_none(),
            ("limit", _) => limit.replace(value).is_none(),
            (_, Some(attribute)) if !attribute.is_empty() => {
                let known = attributes.iter().any(|(known, _)| known == attribute);
                attributes.push((attribute.to_owned(), value));
                !known
            }
            _ => false,
        };
        if !taken {
            return Err(Fault::new(name, "unknown or given twice", PARAMETERS));
        }
    }
    Ok(CounterQuery {
        policy: policy.unwrap_or_else(|| tollgate_limit::DEFAULT_POLICY.to_owned()),
        limit: limit.ok_or_else(|| Fault::new("limit", "missing", "the name of a limit"))?,
        attributes,
    })
}

/// The body of `GET /v1/keys`, but for the state.
#[derive(Serialize)]
struct CounterBody<'a> {
    policy: &'a str,
    owner: Option<&'a str>,
    standby: Option<&'a str>,
    /// Why one unit more would be refused; `null` if it would not.
    reason: Option<&'a str>,
}

/// The body of `GET /v1/cluster`.
#[derive(Serialize)]
struct ClusterBody<'a> {
    #[serde(rename = "self")]
    this: &'a str,
    placement: String,
    policies: String,
    /// Why the newest policies are not in force; `null` if they are.
    policies_error: Option<&'a str>,
    switches: SwitchesBody,
    motion: MotionBody,
    members: Vec<MemberBody<'a>>,
}

/// How the switches stand.
#[derive(Serialize)]
pub(super) struct SwitchesBody {
    kill: bool,
    shadow: bool,
}

impl From<Switches> for SwitchesBody {
    fn from(switches: Switches) -> Self {
        Self {
            kill: switches.kill,
            shadow: switches.shadow,
        }
    }
}

#[derive(Serialize)]
struct MotionBody {
    slots_in: u64,
    slots_out: u64,
    warm: bool,
}

#[derive(Serialize)]
struct MemberBody<'a> {
    id: &'a str,
    boot: String,
    phase: &'static str,
    reachable: bool,
    peer: SocketAddr,
    api: SocketAddr,
    weight: u8,
    slots: usize,
    placement: Option<String>,
    policies: Option<String>,
    replication_lag_ms: Option<u64>,
}

impl<'a> From<&'a ClusterView> for ClusterBody<'a> {
    fn from(view: &'a ClusterView) -> Self {
        let members = view.members.iter().map(|member| MemberBody {
            id: member.id.as_str(),
            boot: hex(member.boot),
            phase: member.phase.as_str(),
            reachable: member.reachable,
            peer: member.peer,
            api: member.api,
            weight: member.weight,
            slots: member.slots,
            placement: member.placement.map(hex),
            policies: member.policies.map(hex),
            replication_lag_ms: member.replication_lag_ms,
        });
        Self {
            this: view.this.as_str(),
            placement: hex(view.placement),
            policies: hex(view.policies),
            policies_error: view.policies_error.as_deref(),
            switches: view.switches.into(),
            motion: MotionBody {
                slots_in: view.motion.incoming,
                slots_out: view.motion.outgoing,
                warm: view.motion.is_warm,
            },
            members: members.collect(),
        }
    }
}

fn hex(number: u64) -> String {
    format!("{number:016x}")
}

pub(super) fn to_json<T: Serialize>(value: &T) -> Vec<u8> {
    let mut body = Vec::new();
    let written = serde_json::to_writer(&mut body, value);
    debug_assert!(written.is_ok(), "plain structs always serialize");
    body
}

fn text(status: StatusCode, line: String) -> Response {
    respond(status, TEXT, line.into_bytes())
}

fn respond(status: StatusCode, media: HeaderValue, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, media);
    response
}

fn boxed(response: Response<Whole>) -> Response {
    debug_assert_eq!(
        response.headers().get(header::CONTENT_TYPE),
        Some(&PROBLEM_JSON)
    );
    response.map(Body::new)
}
