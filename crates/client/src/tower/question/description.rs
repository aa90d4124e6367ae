//! A request as attributes: method, path, host, chosen headers, and where it came from.

use std::{borrow::Cow, fmt, net::IpAddr, sync::Arc};

use http::{Extensions, HeaderName, header, request::Parts, uri::Authority};
use thiserror::Error;
use tollgate_limit::{DEFAULT_POLICY, MAX_ATTRIBUTES, MAX_NAME_LENGTH};

use super::fit;
use crate::{Check, Pairs, Subject};

/// Attributes besides those of headers: method, path, host, ip.
const OWN_ATTRIBUTES: usize = 4;
/// The most headers of a description.
const MAX_HEADERS: usize = MAX_ATTRIBUTES - OWN_ATTRIBUTES;
/// What stands before a header's name in the attribute's.
const HEADER_PREFIX: &str = "header.";

/// Where a request came from, as some extension of it says.
type Peer = dyn Fn(&Extensions) -> Option<IpAddr> + Send + Sync;
/// What a request costs.
type Costing = dyn Fn(&Parts) -> u64 + Send + Sync;

/// Describes requests by attributes:
///
/// | attribute | is |
/// | --- | --- |
/// | `method` | the method as sent |
/// | `path` | the path as sent, without the query, not decoded |
/// | `host` | the target's host, else the header's: lower case, without port and final dot |
/// | `header.<name>` | the first value of each [chosen](Self::with_headers) header, name in lower case |
/// | `ip` | the [peer's](Self::with_peer) address |
///
/// What a request does not have is absent. A value of more than 1024 bytes or with control
/// characters is replaced by its beginning, a hash of the whole and its end, so that it still has a
/// counter of its own, and patterns of a beginning or an end still match.
#[derive(Clone)]
pub struct Description {
    policy: Cow<'static, str>,
    headers: Vec<ChosenHeader>,
    peer: Option<Arc<Peer>>,
    cost: Option<Arc<Costing>>,
}

#[derive(Clone, Debug)]
struct ChosenHeader {
    name: HeaderName,
    attribute: String,
}

impl Description {
    /// For this policy: method, path and host, at a cost of 1.
    pub fn new(policy: impl Into<Cow<'static, str>>) -> Self {
        Self {
            policy: policy.into(),
            headers: Vec::new(),
            peer: None,
            cost: None,
        }
    }

    /// Tells these headers too, in all at most 60, with names of at most 121 bytes.
    ///
    /// # Errors
    /// [`DescriptionError`]: the caller's fault.
    pub fn with_headers(
        mut self,
        names: impl IntoIterator<Item = HeaderName>,
    ) -> Result<Self, DescriptionError> {
        for name in names {
            if self.headers.iter().any(|known| known.name == name) {
                continue;
            }
            let attribute = format!("{HEADER_PREFIX}{name}");
            if attribute.len() > MAX_NAME_LENGTH {
                return Err(DescriptionError::HeaderTooLong { name });
            }
            if self.headers.len() >= MAX_HEADERS {
                return Err(DescriptionError::TooManyHeaders);
            }
            self.headers.push(ChosenHeader { name, attribute });
        }
        Ok(self)
    }

    /// Tells the address that the closure finds in a request's extensions, where the server put it.
    #[must_use]
    pub fn with_peer(
        mut self,
        peer: impl Fn(&Extensions) -> Option<IpAddr> + Send + Sync + 'static,
    ) -> Self {
        self.peer = Some(Arc::new(peer));
        self
    }

    /// Asks at the cost that the closure says: 0 to 2^53, and more than that is 2^53. A cost of 0
    /// asks for 1 without consuming.
    #[must_use]
    pub fn with_cost(mut self, cost: impl Fn(&Parts) -> u64 + Send + Sync + 'static) -> Self {
        self.cost = Some(Arc::new(cost));
        self
    }

    pub(super) fn check<'a>(&'a self, request: &'a Parts) -> Check<'a> {
        let mut attributes = Pairs::new();
        attributes.push("method", request.method.as_str());
        attributes.push("path", request.uri.path());
        if let Some(host) = host(request) {
            attributes.push("host", host);
        }
        for chosen in &self.headers {
            if let Some(value) = request.headers.get(&chosen.name) {
                attributes.push(chosen.attribute.as_str(), fit::text(value.as_bytes()));
            }
        }
        let peer = self.peer.as_ref();
        if let Some(ip) = peer.and_then(|peer| peer(&request.extensions)) {
            // The same peer whichever way the listener names it.
            attributes.push("ip", ip.to_canonical().to_string());
        }
        Check {
            subject: Subject::Policy {
                name: self.policy.as_ref().into(),
                attributes,
            },
            cost: self.cost.as_ref().map_or(1, |cost| cost(request)),
            peek: false,
        }
    }
}

/// The host in one spelling, so that another one of the same is no other key.
fn host(request: &Parts) -> Option<String> {
    let mut host = match request.uri.authority() {
        Some(authority) => authority.host().to_owned(),
        None => {
            let value = request.headers.get(header::HOST)?.as_bytes();
            match Authority::try_from(value) {
                Ok(authority) => authority.host().to_owned(),
                Err(_) => fit::text(value).into_owned(),
            }
        }
    };
    host.make_ascii_lowercase();
    if host.ends_with('.') {
        host.pop();
    }
    Some(host)
}

impl Default for Description {
    fn default() -> Self {
        Self::new(DEFAULT_POLICY)
    }
}

impl fmt::Debug for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Description")
            .field("policy", &self.policy)
            .field("headers", &self.headers)
            .finish_non_exhaustive()
    }
}

/// Headers that cannot be told. The caller's fault.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DescriptionError {
    /// More than a check has room for.
    #[error("headers: choose at most {MAX_HEADERS}")]
    TooManyHeaders,
    /// The attribute's name would be too long.
    #[error("headers: {name} must have at most {} bytes", MAX_NAME_LENGTH - HEADER_PREFIX.len())]
    HeaderTooLong {
        /// The header.
        name: HeaderName,
    },
}
