//! Load over HTTP/1.1: keep-alive connections with one request in flight each.
//!
//! Speaks to servers that say `Content-Length`, which all of ours do. A client library would cost more
//! than the server that it measures.

use std::{net::SocketAddr, sync::Arc};

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

use super::{
    Latencies, LoadError, Report, Volume, clock,
    tally::{Inspected, Tally},
};

/// The most bytes of an answer, head and body.
pub const MAX_HTTP_ANSWER: usize = 1 << 20;

const MAX_HEADERS: usize = 64;
const READ_BYTES: usize = 16 << 10;
const OK: u16 = 200;
const TOO_MANY_REQUESTS: u16 = 429;

/// A load over HTTP.
#[derive(Clone, Debug)]
pub struct HttpLoad {
    /// The server.
    pub address: SocketAddr,
    /// Whole requests ([`http_request`]), sent in turn; at least one.
    pub requests: Arc<[Bytes]>,
    /// Connections, each with one request in flight.
    pub connections: usize,
    /// When it ends.
    pub volume: Volume,
}

/// The bytes of a request; with a body it is JSON.
#[must_use]
pub fn http_request(method: &str, target: &str, body: &str) -> Bytes {
    let mut request = format!("{method} {target} HTTP/1.1\r\nhost: 127.0.0.1\r\n");
    if !body.is_empty() {
        let length = body.len();
        request += &format!("content-type: application/json\r\ncontent-length: {length}\r\n");
    }
    request += "\r\n";
    request += body;
    Bytes::from(request)
}

/// Runs a load to its end.
///
/// # Errors
/// [`LoadError`]: the first connection that fails ends it; so does an answer that is no decision.
pub async fn run_http(load: HttpLoad) -> Result<Report, LoadError> {
    let mut streams = Vec::with_capacity(load.connections);
    for _ in 0..load.connections {
        streams.push(connect(load.address).await?);
    }
    let latencies = Latencies::new().map_err(std::io::Error::other)?;
    let tally = Tally::start(load.volume, latencies);
    let mut connections = JoinSet::new();
    let stride = (load.requests.len() / load.connections.max(1)).max(1);
    for (number, stream) in streams.into_iter().enumerate() {
        let requests = Arc::clone(&load.requests);
        connections.spawn(drive(stream, requests, number * stride, tally.clone()));
    }
    while let Some(ended) = connections.join_next().await {
        ended.map_err(std::io::Error::other)??;
    }
    Ok(tally.report())
}

/// One request on a connection of its own: the whole answer, its body apart from its head.
///
/// # Errors
/// [`LoadError`].
pub async fn whole_answer(
    address: SocketAddr,
    request: &[u8],
) -> Result<(Vec<u8>, Vec<u8>), LoadError> {
    let mut stream = connect(address).await?;
    stream.write_all(request).await?;
    let mut buffer = Vec::with_capacity(READ_BYTES);
    let answer = read_answer(&mut stream, &mut buffer).await?;
    let body = buffer.split_off(answer.head);
    Ok((buffer, body))
}

async fn connect(address: SocketAddr) -> Result<TcpStream, LoadError> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn drive(
    mut stream: TcpStream,
    requests: Arc<[Bytes]>,
    first: usize,
    tally: Tally,
) -> Result<(), LoadError> {
    let mut buffer = Vec::with_capacity(READ_BYTES);
    let mut sent_at = clock::now();
    for request in requests.iter().cycle().skip(first) {
        if tally.take(1, sent_at) == 0 {
            break;
        }
        stream.write_all(request).await?;
        let answer = read_answer(&mut stream, &mut buffer).await?;
        let now = clock::now();
        let inspected = match answer.status {
            OK | TOO_MANY_REQUESTS => Inspected {
                refused: answer.status == TOO_MANY_REQUESTS,
                degraded: answer.degraded,
            },
            status => return Err(LoadError::Status { status }),
        };
        tally.record(now, [sent_at], Some(inspected));
        sent_at = now;
    }
    Ok(())
}

/// Where an answer lies in the buffer, and what it says.
struct HttpAnswer {
    head: usize,
    body: usize,
    status: u16,
    degraded: bool,
}

/// Reads one answer into the buffer, which holds nothing else then.
async fn read_answer(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
) -> Result<HttpAnswer, LoadError> {
    buffer.clear();
    loop {
        if let Some(answer) = parse(buffer)? {
            let length = answer.head + answer.body;
            if buffer.len() > length {
                return Err(LoadError::TooLong);
            }
            if buffer.len() == length {
                return Ok(answer);
            }
        }
        if buffer.len() > MAX_HTTP_ANSWER {
            return Err(LoadError::TooLong);
        }
        buffer.reserve(READ_BYTES);
        if stream.read_buf(buffer).await? == 0 {
            return Err(LoadError::Ended);
        }
    }
}

/// The answer that starts the buffer; `None` if its head is not all there yet.
fn parse(buffer: &[u8]) -> Result<Option<HttpAnswer>, LoadError> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(head) = response.parse(buffer)? else {
        return Ok(None);
    };
    let (mut body, mut degraded) = (None, false);
    for header in &*response.headers {
        if header.name.eq_ignore_ascii_case("content-length") {
            let value = str::from_utf8(header.value).ok();
            body = value.and_then(|value| value.parse().ok());
        }
        degraded |= header.name.eq_ignore_ascii_case("tollgate-degraded");
    }
    Ok(Some(HttpAnswer {
        head,
        body: body.ok_or(LoadError::NoLength)?,
        status: response.code.unwrap_or_default(),
        degraded,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_parsed_once_its_head_is_there() {
        let answer = b"HTTP/1.1 429 Too Many\r\nTollgate-Degraded: fallback\r\nContent-Length: 5\r\n\r\nhello";
        let head = answer.len() - 5;
        for partial in 0..head {
            assert!(
                parse(&answer[..partial]).unwrap().is_none(),
                "{partial} bytes"
            );
        }
        let parsed = parse(answer).unwrap().unwrap();
        assert_eq!(
            (parsed.head, parsed.body, parsed.status),
            (head, 5, TOO_MANY_REQUESTS)
        );
        assert!(parsed.degraded);
    }

    #[test]
    fn an_answer_without_a_length_is_an_error() {
        let answer = parse(b"HTTP/1.1 200 OK\r\nserver: x\r\n\r\n");
        assert!(matches!(answer, Err(LoadError::NoLength)));
    }

    #[test]
    fn a_request_says_how_long_its_body_is() {
        let request = http_request("POST", "/v1/check", "{}");
        assert!(request.ends_with(b"content-length: 2\r\n\r\n{}"));
        assert!(http_request("GET", "/", "").ends_with(b"host: 127.0.0.1\r\n\r\n"));
    }
}
