//! `POST /v1/check`, `POST /v1/checks`, and the calls that are answered like a check.
//!
//! One clock reading for each request. The only wait is that for the body, and for a peer where one
//! decides.

use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use futures_util::future::join_all;
use http::{Response, StatusCode, header};
use hyper::body::Body;
use tollgate_limit::{Call, Decision};

use crate::{
    checker::{Checked, Checker},
    families::HeaderFamilies,
    fault::Fault,
    http::{
        HttpConfig,
        answer::{self, JSON, Sealing},
        ask::Ask,
        body::Posted,
        problem::Problem,
        whole::Whole,
    },
};

const SEND_JSON: &str = "send the body as `Content-Type: application/json`";
pub(super) const EXAMPLE: &str =
    "a JSON object such as {\"policy\": \"default\", \"attributes\": {\"ip\": \"203.0.113.7\"}}";

/// Answers one check, or one acquisition of permits.
pub(super) async fn one<C: Checker, B: Body<Data = Bytes>>(
    call: Call,
    checker: &C,
    config: &HttpConfig,
    posted: Posted<B>,
) -> Result<Response<Whole>, Problem> {
    let body = json_body(config, posted, EXAMPLE).await?;
    let (families, decision) = match take(call, checker, &body)? {
        Taken::Now(response) => return Ok(response),
        Taken::Later(families, decision) => (families, decision.await),
    };
    let now = checker.now();
    Ok(answer::respond(&decision, call, families, checker, now))
}

/// A check that was taken: answered, or waiting for its decision.
enum Taken {
    Now(Response<Whole>),
    Later(
        HeaderFamilies,
        Pin<Box<dyn Future<Output = Decision> + Send>>,
    ),
}

/// Reads a check, asks it, and answers it if it is decided at once.
fn take<C: Checker>(call: Call, checker: &C, body: &[u8]) -> Result<Taken, Problem> {
    let ask = Ask::read(body).map_err(|error| not_json(body, &error, EXAMPLE))??;
    let families = checker.headers(ask.policy());
    let now = checker.now();
    Ok(match ask.put(call, checker, now)? {
        Checked::Now(decision) => {
            Taken::Now(answer::respond(&decision, call, families, checker, now))
        }
        Checked::Later(decision) => Taken::Later(families, decision),
    })
}

/// Answers a list of checks, in its order.
pub(super) async fn many<C: Checker, B: Body<Data = Bytes>>(
    checker: &C,
    config: &HttpConfig,
    posted: Posted<B>,
) -> Result<Response<Whole>, Problem> {
    let body = json_body(config, posted, EXAMPLE).await?;
    let asks = Ask::read_list(&body).map_err(|error| not_json(&body, &error, EXAMPLE))??;
    let now = checker.now();
    let mut items = Vec::with_capacity(asks.len());
    let mut waiting = Vec::new();
    for ask in asks {
        let checked = ask
            .map_err(Problem::from)
            .and_then(|ask| Ok(ask.put(Call::Check, checker, now)?));
        items.push(match checked {
            Ok(Checked::Now(decision)) => Item::Done(Ok(decision)),
            Ok(Checked::Later(decision)) => {
                waiting.push(decision);
                Item::Waiting
            }
            Err(problem) => Item::Done(Err(problem)),
        });
    }
    // Asked in the order of the list; only their answers are awaited together.
    let mut waited = join_all(waiting).await.into_iter();
    let sealing = Sealing::at(now, checker);
    let mut out = BytesMut::with_capacity(items.len().saturating_mul(ITEM_LENGTH));
    out.extend_from_slice(b"{\"results\":[");
    for (place, item) in items.into_iter().enumerate() {
        if place > 0 {
            out.extend_from_slice(b",");
        }
        let result = match item {
            Item::Done(result) => Some(result),
            Item::Waiting => waited.next().map(Ok),
        };
        match result {
            Some(Ok(decision)) => {
                answer::write_decision(&mut out, &decision, Call::Check, sealing);
            }
            Some(Err(problem)) => {
                out.extend_from_slice(b"{\"error\":");
                problem.write(&mut out);
                out.extend_from_slice(b"}");
            }
            None => debug_assert!(false, "every item that waits has an answer"),
        }
    }
    out.extend_from_slice(b"]}");
    let mut response = Response::new(Whole::new(out.freeze()));
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    Ok(response)
}

/// Bytes that the usual item fits in.
const ITEM_LENGTH: usize = 512;

enum Item {
    Done(Result<Decision, Problem>),
    Waiting,
}

/// The whole of a body that is JSON by what its head says.
pub(super) async fn json_body<B: Body<Data = Bytes>>(
    config: &HttpConfig,
    posted: Posted<B>,
    example: &'static str,
) -> Result<Bytes, Problem> {
    let is_json = posted.is_json;
    let body = posted.collect(config.body_timeout).await?;
    if !is_json {
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, SEND_JSON));
    }
    if body.is_empty() {
        return Err(Fault::new("body", "missing", example).into());
    }
    Ok(body)
}

/// What is said of a body that is no JSON after all.
pub(super) fn not_json(body: &[u8], error: &serde_json::Error, example: &'static str) -> Problem {
    let wrong = match std::str::from_utf8(body) {
        Ok(_) => format!("not JSON: {error}"),
        Err(error) => format!("not UTF-8 at byte {}", error.valid_up_to()),
    };
    Fault::new("body", wrong, example).into()
}
