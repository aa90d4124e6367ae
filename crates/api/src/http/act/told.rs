//! The answer to what was done with a check: each limit as it stands now.
//!
//! Nothing of it needs escaping: names are `[A-Za-z0-9._-]{1,64}`, ids `[A-Za-z0-9_-]`.

use bytes::BytesMut;
use http::{Response, header};
use tollgate_limit::AmendedLimit;

use crate::http::{
    answer::{JSON, number, text},
    whole::Whole,
};

/// Bytes that the usual answer fits in.
const USUAL_LENGTH: usize = 512;

/// The answer: the id as it was given and the member that holds it, and the limits.
pub(super) fn respond(id: Option<(&str, &str)>, limits: &[AmendedLimit]) -> Response<Whole> {
    let mut out = BytesMut::with_capacity(USUAL_LENGTH);
    text(&mut out, "{");
    if let Some((member, id)) = id {
        text(&mut out, "\"");
        text(&mut out, member);
        text(&mut out, "\":\"");
        text(&mut out, id);
        text(&mut out, "\",");
    }
    text(&mut out, "\"limits\":[");
    for (place, limit) in limits.iter().enumerate() {
        text(&mut out, if place == 0 { "{" } else { ",{" });
        write_limit(&mut out, limit);
        text(&mut out, "}");
    }
    text(&mut out, "]}");
    let mut response = Response::new(Whole::new(out.freeze()));
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

fn write_limit(out: &mut BytesMut, limit: &AmendedLimit) {
    text(out, "\"name\":\"");
    text(out, &limit.limit);
    text(out, "\",\"algorithm\":\"");
    text(out, limit.rule.algorithm.name());
    text(out, "\",\"limit\":");
    number(out, limit.rule.capacity());
    let now = limit.now.as_ref();
    for (member, told) in [
        (",\"used\":", now.map(|now| now.used)),
        (",\"remaining\":", now.map(|now| now.remaining)),
        (
            ",\"reset_after_ms\":",
            now.map(|now| now.reset_after.ceil_millis()),
        ),
    ] {
        text(out, member);
        match told {
            Some(told) => number(out, told),
            None => text(out, "null"),
        }
    }
    text(out, ",\"node\":");
    match &limit.node {
        Some(node) => {
            text(out, "\"");
            text(out, node.as_str());
            text(out, "\"");
        }
        None => text(out, "null"),
    }
    if now.is_none() {
        text(out, ",\"pending\":true");
    }
}
