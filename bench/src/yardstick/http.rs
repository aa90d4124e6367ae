//! A bare hyper server: reads the body, gives a canned answer. One thread, as it is fastest.

use std::{convert::Infallible, fs, net::Ipv4Addr};

use anyhow::{Context, bail};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, runtime::Builder};

use super::Listening;
use crate::arguments::YardstickHttpOptions;

const MAX_HEADERS: usize = 64;

/// The answer that is always given.
#[derive(Clone, Debug, PartialEq)]
struct Canned {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

/// Serves until it is ended.
pub(crate) fn run(options: &YardstickHttpOptions) -> anyhow::Result<()> {
    let answer = fs::read(&options.answer).context("reading the answer")?;
    let canned = Canned::parse(&answer)?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(canned))
}

impl Canned {
    /// Takes the head and body of an answer apart. What hyper adds itself is left out.
    fn parse(answer: &[u8]) -> anyhow::Result<Self> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(head) = response.parse(answer)? else {
            bail!("the head of the answer is not complete");
        };
        let mut canned = HeaderMap::new();
        for header in &*response.headers {
            let name = HeaderName::from_bytes(header.name.as_bytes())?;
            if name != header::DATE && name != header::CONTENT_LENGTH {
                canned.append(name, HeaderValue::from_bytes(header.value)?);
            }
        }
        Ok(Self {
            status: StatusCode::from_u16(response.code.unwrap_or_default())?,
            headers: canned,
            body: Bytes::copy_from_slice(&answer[head..]),
        })
    }
}

async fn serve(canned: Canned) -> anyhow::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    Listening {
        address,
        certificate: Vec::new(),
    }
    .announce()?;
    loop {
        let (stream, _peer) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let canned = canned.clone();
        let service = service_fn(move |request| answer(request, canned.clone()));
        // A connection that fails ends; the load notices.
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn answer(
    request: Request<Incoming>,
    canned: Canned,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if let Ok(body) = request.into_body().collect().await {
        std::hint::black_box(body.to_bytes());
    }
    let mut response = Response::new(Full::new(canned.body));
    *response.status_mut() = canned.status;
    *response.headers_mut() = canned.headers;
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_taken_apart() {
        let answer =
            b"HTTP/1.1 429 No\r\ndate: now\r\nx-a: 1\r\nx-a: 2\r\ncontent-length: 2\r\n\r\nhi";
        let canned = Canned::parse(answer).unwrap();
        assert_eq!(canned.status, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(canned.headers.len(), 2);
        assert_eq!(canned.body, "hi");
    }
}
