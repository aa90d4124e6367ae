//! A small HTTP client for calls to nodes: one connection, one call at a time, no TLS.
//!
//! Knows nothing of checks. Bounds: a call takes at most [`CALL_TIMEOUT`], an answer has at most
//! [`MAX_ANSWER`] bytes. A call is sent at most once: a check that was sent may have been counted.

use std::{fmt, str::FromStr, time::Duration};

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::{net::TcpStream, task::JoinHandle, time::timeout};

/// The longest that one call may take.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest answer, in bytes.
pub const MAX_ANSWER: usize = 16 << 20;

/// The address of a node's HTTP interface: `http://127.0.0.1:7600`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeUrl {
    authority: String,
    target: String,
}

impl NodeUrl {
    /// Host and port, to connect to.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }
}

impl FromStr for NodeUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let uri: http::Uri = text.parse().map_err(|_error| UrlError)?;
        let authority = uri.authority().ok_or(UrlError)?;
        let plain =
            uri.scheme_str() == Some("http") && uri.path_and_query().is_none_or(|path| path == "/");
        if !plain || authority.as_str().contains('@') {
            return Err(UrlError);
        }
        let port = authority.port_u16().unwrap_or(80);
        Ok(Self {
            authority: authority.to_string(),
            target: format!("{}:{port}", authority.host()),
        })
    }
}

impl fmt::Display for NodeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority)
    }
}

/// A text that is not the address of a node. The caller's fault.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("write http://, a host and a port, such as http://127.0.0.1:7600")]
pub struct UrlError;

/// A call that was not answered. Whether it was counted is not known unless it could not connect.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CallError {
    /// The node could not be reached: nothing was sent.
    #[error("{url}: cannot connect: {reason}")]
    Connect {
        /// The node.
        url: String,
        /// What the system said.
        reason: String,
    },
    /// The connection failed under way, or what came is not HTTP.
    #[error("{url}: the call failed: {reason}")]
    Broken {
        /// The node.
        url: String,
        /// What went wrong.
        reason: String,
    },
    /// Nothing came in time.
    #[error("{url}: no answer within {} s", CALL_TIMEOUT.as_secs())]
    Timeout {
        /// The node.
        url: String,
    },
}

/// What a node answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: http::HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// One call.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub path: &'a str,
    /// The operators' token.
    pub token: Option<&'a str>,
    /// A JSON body; empty for none.
    pub body: Vec<u8>,
}

impl<'a> Call<'a> {
    /// A call that reads.
    #[must_use]
    pub const fn read(path: &'a str) -> Self {
        Self {
            method: Method::GET,
            path,
            token: None,
            body: Vec::new(),
        }
    }

    /// A call with a JSON body.
    #[must_use]
    pub const fn post(path: &'a str, body: Vec<u8>) -> Self {
        Self {
            method: Method::POST,
            path,
            token: None,
            body,
        }
    }

    /// The same call with the operators' token.
    #[must_use]
    pub const fn with_token(mut self, token: Option<&'a str>) -> Self {
        self.token = token;
        self
    }
}

/// A connection to one node, opened when it is needed and again after it was closed.
#[derive(Debug)]
pub struct Connection {
    url: NodeUrl,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    /// A connection to this node; nothing is opened yet.
    #[must_use]
    pub const fn new(url: NodeUrl) -> Self {
        Self { url, open: None }
    }

    /// Makes one call.
    ///
    /// # Errors
    /// [`CallError`]: the node's fault or the network's; the connection is opened anew the next time.
    pub async fn call(&mut self, call: Call<'_>) -> Result<Answer, CallError> {
        let answered = timeout(CALL_TIMEOUT, self.exchange(call)).await;
        let answer = answered.unwrap_or_else(|_elapsed| {
            Err(CallError::Timeout {
                url: self.url.to_string(),
            })
        });
        if answer.is_err() {
            self.open = None;
        }
        answer
    }

    async fn exchange(&mut self, call: Call<'_>) -> Result<Answer, CallError> {
        let request = self.request(call)?;
        let response = match self.ready().await?.try_send_request(request).await {
            Ok(response) => response,
            Err(mut error) => match error.take_message() {
                // The connection was closed just then, and nothing was sent.
                Some(unsent) => {
                    self.open = None;
                    let sent = self.ready().await?.send_request(unsent).await;
                    sent.map_err(|error| self.broken(&error))?
                }
                None => return Err(self.broken(error.error())),
            },
        };
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, MAX_ANSWER).collect().await;
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            body: body.map_err(|error| self.broken(&error))?.to_bytes(),
        })
    }

    fn request(&self, call: Call<'_>) -> Result<Request<Full<Bytes>>, CallError> {
        let mut request = Request::builder()
            .method(call.method)
            .uri(call.path)
            .header(header::HOST, &self.url.authority);
        if let Some(token) = call.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        if !call.body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let body = Full::new(Bytes::from(call.body));
        request.body(body).map_err(|error| self.broken(&error))
    }

    /// A sender that can take a request, of the open connection or of a new one.
    async fn ready(&mut self) -> Result<&mut SendRequest<Full<Bytes>>, CallError> {
        let usable = match &mut self.open {
            Some(open) => open.sender.ready().await.is_ok(),
            None => false,
        };
        if !usable {
            self.open = None;
        }
        match &mut self.open {
            Some(open) => Ok(&mut open.sender),
            none => {
                let opened = open(&self.url).await?;
                Ok(&mut none.insert(opened).sender)
            }
        }
    }

    fn broken(&self, error: &dyn fmt::Display) -> CallError {
        CallError::Broken {
            url: self.url.to_string(),
            reason: error.to_string(),
        }
    }
}

async fn open(url: &NodeUrl) -> Result<Open, CallError> {
    let failed = |reason: String| CallError::Connect {
        url: url.to_string(),
        reason,
    };
    let stream = TcpStream::connect(&url.target).await;
    let stream = stream.map_err(|error| failed(error.to_string()))?;
    stream
        .set_nodelay(true)
        .map_err(|error| failed(error.to_string()))?;
    let shaken = handshake(TokioIo::new(stream)).await;
    let (sender, connection) = shaken.map_err(|error| failed(error.to_string()))?;
    // A failure shows at the sender.
    let driver = tokio::spawn(async move { drop(connection.await) });
    Ok(Open { sender, driver })
}
