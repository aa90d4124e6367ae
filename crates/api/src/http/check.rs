//! `POST /v1/check` and `POST /v1/checks`.
//!
//! One clock reading for each request. The only wait is that for the body, and for a peer where one
//! decides.

use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Body;

use crate::{
    checker::{Checked, Checker},
    fault::Fault,
    http::{
        HttpConfig,
        answer::{self, JSON},
        ask::Ask,
        body,
        problem::Problem,
    },
};

const SEND_JSON: &str = "send the body as `Content-Type: application/json`";
const EXAMPLE: &str =
    "a JSON object such as {\"policy\": \"default\", \"attributes\": {\"ip\": \"203.0.113.7\"}}";

/// Answers one check.
pub(super) async fn one<C: Checker, B: Body<Data = Bytes>>(
    checker: &C,
    config: &HttpConfig,
    request: Request<B>,
) -> Result<Response<Full<Bytes>>, Problem> {
    let body = json_body(config, request).await?;
    let ask = Ask::read(&body).map_err(|error| not_json(&body, &error))??;
    let families = checker.headers(ask.policy());
    let now = checker.now();
    Ok(match ask.put(checker, now)? {
        Checked::Now(decision) => answer::respond(&decision, families, checker, now),
        Checked::Later(decision) => {
            let decision = decision.await;
            answer::respond(&decision, families, checker, checker.now())
        }
    })
}

/// Answers a list of checks, in its order.
pub(super) async fn many<C: Checker, B: Body<Data = Bytes>>(
    checker: &C,
    config: &HttpConfig,
    request: Request<B>,
) -> Result<Response<Full<Bytes>>, Problem> {
    let body = json_body(config, request).await?;
    let asks = Ask::read_list(&body).map_err(|error| not_json(&body, &error))??;
    let now = checker.now();
    let mut items = Vec::with_capacity(asks.len());
    let mut waiting = Vec::new();
    for ask in asks {
        let checked = ask
            .map_err(Problem::from)
            .and_then(|ask| Ok(ask.put(checker, now)?));
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
    let mut out = Vec::with_capacity(items.len().saturating_mul(ITEM_LENGTH));
    out.extend_from_slice(b"{\"results\":[");
    for (place, item) in items.into_iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        let result = match item {
            Item::Done(result) => Some(result),
            Item::Waiting => waited.next().map(Ok),
        };
        match result {
            Some(Ok(decision)) => answer::write_decision(&mut out, &decision),
            Some(Err(problem)) => {
                out.extend_from_slice(b"{\"error\":");
                problem.write(&mut out);
                out.push(b'}');
            }
            None => debug_assert!(false, "every item that waits has an answer"),
        }
    }
    out.extend_from_slice(b"]}");
    let mut response = Response::new(Full::new(Bytes::from(out)));
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    Ok(response)
}

/// Bytes that the usual item fits in.
const ITEM_LENGTH: usize = 512;

enum Item {
    Done(Result<tollgate_limit::Decision, Problem>),
    Waiting,
}

async fn json_body<B: Body<Data = Bytes>>(
    config: &HttpConfig,
    request: Request<B>,
) -> Result<Bytes, Problem> {
    let (parts, body) = request.into_parts();
    let body = body::collect(&parts.headers, body, config.body_timeout).await?;
    if !is_json(&parts.headers) {
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, SEND_JSON));
    }
    if body.is_empty() {
        return Err(Fault::new("body", "missing", EXAMPLE).into());
    }
    Ok(body)
}

/// Whether the body may be read as JSON: it says so, or says nothing.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(media) = headers.get(header::CONTENT_TYPE) else {
        return true;
    };
    let media = media.as_bytes();
    if media == b"application/json" {
        return true;
    }
    let essence = media.split(|byte| *byte == b';').next().unwrap_or_default();
    essence
        .trim_ascii()
        .eq_ignore_ascii_case(b"application/json")
}

fn not_json(body: &[u8], error: &serde_json::Error) -> Problem {
    let wrong = match std::str::from_utf8(body) {
        Ok(_) => format!("not JSON: {error}"),
        Err(error) => format!("not UTF-8 at byte {}", error.valid_up_to()),
    };
    Fault::new("body", wrong, EXAMPLE).into()
}
