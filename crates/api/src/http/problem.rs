//! What is wrong with a request, as `application/problem+json` (RFC 9457).
//!
//! The one place where typed errors become statuses. Knows nothing of refusals: a refused check is an
//! answer, not a problem with the request.

use std::borrow::Cow;

use bytes::{BufMut as _, BytesMut};
use http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;
use tollgate_limit::CheckError;

use crate::{
    fault::{Blame, Fault},
    http::whole::Whole,
    operator::CounterError,
};

/// The media type of problems and refusals.
pub(super) const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// A request that is not answered as asked.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    detail: String,
    field: Option<String>,
    expected: Option<Cow<'static, str>>,
}

/// The members of the body.
#[derive(Serialize)]
struct Members<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'a str,
    status: u16,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<&'a str>,
}

impl Problem {
    /// A problem that no field of the body is the cause of.
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            detail: detail.into(),
            field: None,
            expected: None,
        }
    }

    /// The same, as one of a field.
    pub(super) fn of(status: StatusCode, fault: Fault) -> Self {
        Self {
            status,
            detail: format!(
                "{}: {}; right is: {}",
                fault.field, fault.wrong, fault.right
            ),
            field: Some(fault.field),
            expected: Some(fault.right),
        }
    }

    /// Appends the body.
    pub(super) fn write(&self, out: &mut BytesMut) {
        let members = Members {
            kind: "about:blank",
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            detail: &self.detail,
            field: self.field.as_deref(),
            expected: self.expected.as_deref(),
        };
        let written = serde_json::to_writer(out.writer(), &members);
        debug_assert!(written.is_ok(), "strings and numbers always serialize");
    }

    /// The answer.
    pub(super) fn into_response(self) -> Response<Whole> {
        let mut body = BytesMut::with_capacity(256);
        self.write(&mut body);
        let mut response = Response::new(Whole::new(body.freeze()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, PROBLEM_JSON);
        if self.status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Bearer realm=\"tollgate\"");
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        Self::of(StatusCode::BAD_REQUEST, fault)
    }
}

impl From<CheckError> for Problem {
    fn from(error: CheckError) -> Self {
        let (blame, fault) = Fault::of_check(error);
        let status = match blame {
            Blame::Field => StatusCode::BAD_REQUEST,
            Blame::UnknownPolicy => StatusCode::NOT_FOUND,
            Blame::InlineOff => StatusCode::FORBIDDEN,
        };
        Self::of(status, fault)
    }
}

impl From<CounterError> for Problem {
    fn from(error: CounterError) -> Self {
        let wrong = error.to_string();
        match error {
            CounterError::UnknownPolicy { .. } => Self::of(
                StatusCode::NOT_FOUND,
                Fault::new("policy", wrong, "the name of a configured policy"),
            ),
            CounterError::UnknownLimit { .. } => Self::of(
                StatusCode::NOT_FOUND,
                Fault::new("limit", wrong, "the name of a limit of the policy"),
            ),
            CounterError::Unlimited { .. } => Self::of(
                StatusCode::NOT_FOUND,
                Fault::new("limit", wrong, "attributes of a tier that is limited"),
            ),
            CounterError::MissingAttribute { attribute } => {
                let field = format!("attr.{attribute}");
                Fault::new(field, wrong, "a value that is not empty").into()
            }
            CounterError::Attribute(error) => Fault::attribute("attr", &error).into(),
            CounterError::Unreachable => Self::new(StatusCode::SERVICE_UNAVAILABLE, wrong),
        }
    }
}
