//! What the URL of a proxy's question names: the policy, and the status of a refusal.
//!
//! The operator wrote it into the proxy's configuration, so what is wrong with it is told. Only what is
//! below the policy is the client's, and then the query is too.

use axum::extract::Query;
use http::{StatusCode, Uri};

use crate::{fault::Fault, http::tally::Call};

const PARAMETERS: &str = "`deny_status` is the only parameter, once";
const DENY_STATUS: &str = "a status from 400 to 599";

/// What is asked of whom.
#[derive(Debug)]
pub(super) struct Target<'u> {
    pub(super) policy: &'u str,
    /// The client's path, where the proxy appends it.
    pub(super) below: Option<&'u str>,
    /// The status of a refusal, where the URL names it.
    pub(super) deny_status: Option<StatusCode>,
}

impl<'u> Target<'u> {
    /// The target of a request to [`Call::ForwardAuth`].
    ///
    /// # Errors
    /// The query is not what it should be; without a path below, since else it is the client's.
    pub(super) fn of(uri: &'u Uri) -> Result<Self, Fault> {
        let path = uri.path();
        let rest = path.strip_prefix(Call::ForwardAuth.path()).unwrap_or(path);
        let policy = rest.split('/').next().unwrap_or_default();
        let below = rest.strip_prefix(policy).filter(|below| !below.is_empty());
        Ok(Self {
            policy,
            below,
            deny_status: match below {
                Some(_) => None,
                None => deny_status(uri)?,
            },
        })
    }
}

fn deny_status(uri: &Uri) -> Result<Option<StatusCode>, Fault> {
    if uri.query().is_none() {
        return Ok(None);
    }
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
        .map_err(|error| Fault::new("query", error.to_string(), PARAMETERS))?;
    let mut status = None;
    for (name, value) in pairs {
        if name != "deny_status" || status.is_some() {
            let short: String = name.chars().take(64).collect();
            return Err(Fault::new(short, "unknown or given twice", PARAMETERS));
        }
        let number = value.parse::<u16>().ok();
        let number = number.filter(|number| (400..=599).contains(number));
        let parsed = number.and_then(|number| StatusCode::from_u16(number).ok());
        let wrong = || Fault::new("deny_status", "no such status", DENY_STATUS);
        status = Some(parsed.ok_or_else(wrong)?);
    }
    Ok(status)
}
