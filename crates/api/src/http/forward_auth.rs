//! `ANY /v1/forward-auth/{policy}` and any path below: what proxies ask before they let a request pass.
//!
//! The attributes are those of the proxied request. Invariant: no property of that request is an error;
//! what is wrong with the URL that the operator wrote into the proxy's configuration is. Knows nothing of
//! how a check is decided.

mod hops;
mod original;
mod target;

use std::net::IpAddr;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use hyper::body::Body;
use tollgate_limit::{Call, CheckError, Cost, Mode, Nanos, Policy, Question, Subject};

use self::{original::Original, target::Target};
use crate::{
    checker::{Checked, Checker},
    fault::Fault,
    http::{HttpConfig, answer, body, problem::Problem, whole::Whole},
};

/// Answers a proxy. The body of the request is read and dropped after the decision.
pub(super) async fn answer<C: Checker, B: Body<Data = Bytes>>(
    checker: &C,
    config: &HttpConfig,
    peer: Option<IpAddr>,
    request: Request<B>,
) -> Response<Whole> {
    let (head, sent) = request.into_parts();
    let answered = match Target::of(&head.uri) {
        Ok(target) => {
            let original = Original {
                head: &head,
                below: target.below,
                peer,
                trusted: &config.trusted_proxies,
            };
            decide(checker, &target, &original).await
        }
        Err(fault) => Err(fault.into()),
    };
    let response = answered.unwrap_or_else(Problem::into_response);
    body::discard(sent, config.body_timeout).await;
    if head.method == Method::HEAD {
        return response.map(|_| Whole::default());
    }
    response
}

async fn decide<C: Checker>(
    checker: &C,
    target: &Target<'_>,
    original: &Original<'_>,
) -> Result<Response<Whole>, Problem> {
    let of_policy = || checker.deny_status(target.policy);
    let denied = target.deny_status.unwrap_or_else(of_policy);
    let families = checker.headers(target.policy);
    let now = checker.now();
    let decision = match put(checker, now, target, original) {
        Ok(Checked::Now(decision)) => {
            return Ok(answer::respond_to_proxy(
                &decision, families, checker, now, denied,
            ));
        }
        Ok(Checked::Later(decision)) => decision.await,
        Err(error) if matches!(error, CheckError::Required { .. }) => {
            return Ok(refuse(error, denied));
        }
        Err(error) => return Err(error.into()),
    };
    let now = checker.now();
    Ok(answer::respond_to_proxy(
        &decision, families, checker, now, denied,
    ))
}

fn put<C: Checker>(
    checker: &C,
    now: Nanos,
    target: &Target<'_>,
    original: &Original<'_>,
) -> Result<Checked, CheckError> {
    let policies = checker.policies();
    let wanted = policies.policy(target.policy).map(Policy::attributes);
    let question = Question {
        subject: Subject::Policy {
            name: target.policy,
            attributes: original.attributes(wanted.unwrap_or_default()),
        },
        cost: Cost::ONE,
        mode: Mode::Consume,
        call: Call::Check,
    };
    checker.check(now, &question)
}

/// The refusal of a request that lacks what a limit requires: it is not the proxy that is at fault.
fn refuse(error: CheckError, denied: StatusCode) -> Response<Whole> {
    let (_, fault) = Fault::of_check(error);
    let mut response = Problem::of(denied, fault).into_response();
    // Neither a token nor time would help.
    let headers = response.headers_mut();
    headers.remove(header::WWW_AUTHENTICATE);
    headers.remove(header::RETRY_AFTER);
    response
}
