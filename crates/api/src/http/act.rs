//! The calls that count or give back on purpose: reserve, settle, refund, report, acquire, release.
//!
//! All of them can lift a limit, so all of them are the operators' (P8). What is done with a check stands
//! in its id: nothing of it is looked up here. Knows nothing of how a receipt is made use of.

mod told;

use std::sync::Arc;

use axum::extract::State;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use hyper::body::Body;
use tollgate_limit::{self as limit, ActionError};
use tollgate_wire::receipt;

use crate::{
    checker::Checker,
    fault::Fault,
    http::{
        HttpConfig, Shared,
        ask::{Act, Acting},
        body::Posted,
        check, operate,
        problem::Problem,
        whole::Whole,
    },
    operator::Operator,
};

type Reply = Response<axum::body::Body>;
type Asked = Request<axum::body::Body>;

/// `POST /v1/reserve`: a check whose cost is an estimate.
pub(super) async fn reserve<C: Checker, O: Operator>(
    State(shared): State<Arc<Shared<C, O>>>,
    request: Asked,
) -> Reply {
    decide(limit::Call::Check, &shared, request).await
}

/// `POST /v1/acquire`: a check that takes permits too.
pub(super) async fn acquire<C: Checker, O: Operator>(
    State(shared): State<Arc<Shared<C, O>>>,
    request: Asked,
) -> Reply {
    decide(limit::Call::Acquire, &shared, request).await
}

/// `POST /v1/settle`.
pub(super) async fn settle<C: Checker, O: Operator>(
    State(shared): State<Arc<Shared<C, O>>>,
    request: Asked,
) -> Reply {
    act(Act::Settle, &shared, request).await
}

/// `POST /v1/refund`.
pub(super) async fn refund<C: Checker, O: Operator>(
    State(shared): State<Arc<Shared<C, O>>>,
    request: Asked,
) -> Reply {
    act(Act::Refund, &shared, request).await
}

/// `POST /v1/report`.
pub(super) async fn report<C: Checker, O: Operator>(
    State(shared): State<Arc<Shared<C, O>>>,
    request: Asked,
) -> Reply {
    act(Act::Report, &shared, request).await
}

/// `POST /v1/release`.
pub(super) async fn release<C: Checker, O: Operator>(
    State(shared): State<Arc<Shared<C, O>>>,
    request: Asked,
) -> Reply {
    act(Act::Release, &shared, request).await
}

async fn decide<C: Checker, O: Operator>(
    call: limit::Call,
    shared: &Shared<C, O>,
    request: Asked,
) -> Reply {
    let answered = match operate::admit(shared, &request) {
        Ok(()) => {
            let posted = Posted::new(request);
            check::one(call, &*shared.checker, &shared.config, posted).await
        }
        Err(problem) => Err(problem),
    };
    let response = answered.unwrap_or_else(Problem::into_response);
    response.map(axum::body::Body::new)
}

async fn act<C: Checker, O: Operator>(act: Act, shared: &Shared<C, O>, request: Asked) -> Reply {
    let answered = match operate::admit(shared, &request) {
        Ok(()) => {
            let posted = Posted::new(request);
            done(act, &*shared.checker, &shared.config, posted).await
        }
        Err(problem) => Err(problem),
    };
    let response = answered.unwrap_or_else(Problem::into_response);
    response.map(axum::body::Body::new)
}

/// Reads what is to be done, and does it.
async fn done<C: Checker, B: Body<Data = Bytes>>(
    act: Act,
    checker: &C,
    config: &HttpConfig,
    posted: Posted<B>,
) -> Result<Response<Whole>, Problem> {
    let body = check::json_body(config, posted, act.example()).await?;
    let asked = Acting::read(act, &body);
    let asked = asked.map_err(|error| check::not_json(&body, &error, act.example()))??;
    let now = checker.now();
    match asked {
        Acting::Receipt { id, action } => {
            let opened = receipt::open(&id, checker.receipt_key());
            let receipt = opened.map_err(|error| unknown(act, error.to_string()))?;
            let acted = checker.act(now, receipt, action).await;
            let limits = acted.map_err(|error| problem_of(act, error))?;
            // What opens as a receipt is text that needs no escaping.
            Ok(told::respond(Some((act.id(), &*id)), &limits))
        }
        Acting::Check(ask) => {
            let acted = ask.refund(checker, now)??.await;
            let limits = acted.map_err(|error| problem_of(act, error))?;
            Ok(told::respond(None, &limits))
        }
    }
}

fn problem_of(act: Act, error: ActionError) -> Problem {
    let wrong = error.to_string();
    match error {
        ActionError::Used => {
            let right = "an id that nothing was done with before";
            Problem::of(StatusCode::CONFLICT, Fault::new(act.id(), wrong, right))
        }
        ActionError::Unknown => unknown(act, wrong),
        ActionError::Unreachable => Problem::new(StatusCode::SERVICE_UNAVAILABLE, wrong),
        ActionError::Nothing { .. } => Fault::new(act.id(), wrong, act.needed()).into(),
    }
}

fn unknown(act: Act, wrong: String) -> Problem {
    let right =
        "the id of an answer of this cluster, as long as the window of its limits, at most an hour";
    Problem::of(StatusCode::NOT_FOUND, Fault::new(act.id(), wrong, right))
}
