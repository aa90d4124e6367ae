//! The proxied request: its attributes, as a proxy tells them or as the asking request has them.
//!
//! Invariants: what a peer says that is no trusted proxy counts for nothing, and which headers become
//! attributes is chosen by the policy alone, so that no client can push one out by sending others.

use std::{borrow::Cow, net::IpAddr};

use http::{HeaderMap, HeaderValue, header, request::Parts};
use ipnet::IpNet;
use tollgate_limit::Attributes;

use super::hops;

/// What the names of attributes that are headers start with.
const HEADER: &str = "header.";

/// A proxied request.
#[derive(Debug)]
pub(super) struct Original<'r> {
    /// The head of the proxy's question.
    pub(super) head: &'r Parts,
    /// The path that the proxy appended to the policy's.
    pub(super) below: Option<&'r str>,
    /// Who asks.
    pub(super) peer: Option<IpAddr>,
    /// Who is believed.
    pub(super) trusted: &'r [IpNet],
}

impl<'r> Original<'r> {
    /// Its attributes: `ip`, `method`, `path`, `host`, and those of the `wanted` that are headers, in
    /// their order.
    pub(super) fn attributes(&self, wanted: &'r [String]) -> Attributes<'r> {
        let told = self.told();
        let mut attributes = Attributes::new();
        if let Some(ip) = self.ip(told) {
            attributes.insert_proxied("ip", ip);
        }
        let method = told.and_then(|told| last(told, &["x-forwarded-method", "x-original-method"]));
        let method = method.unwrap_or(Cow::Borrowed(self.head.method.as_str()));
        attributes.insert_proxied("method", method);
        if let Some(path) = self.path(told) {
            attributes.insert_proxied("path", path);
        }
        if let Some(host) = self.host(told) {
            attributes.insert_proxied("host", host);
        }
        for name in wanted {
            if let Some(value) = name.strip_prefix(HEADER).and_then(|name| self.header(name)) {
                attributes.insert_proxied(name.as_str(), value);
            }
        }
        attributes
    }

    /// The headers that tell of the original request, if who sent them is believed.
    fn told(&self) -> Option<&'r HeaderMap> {
        let is_trusted = self
            .peer
            .is_some_and(|peer| hops::is_one_of(peer, self.trusted));
        is_trusted.then_some(&self.head.headers)
    }

    fn ip(&self, told: Option<&HeaderMap>) -> Option<String> {
        let hop = told.and_then(|told| hops::client(told, self.trusted));
        hop.or_else(|| self.peer.map(|peer| peer.to_canonical().to_string()))
    }

    /// Without the query.
    fn path(&self, told: Option<&'r HeaderMap>) -> Option<Cow<'r, str>> {
        let names = ["x-forwarded-uri", "x-original-uri", "x-original-url"];
        match told.and_then(|told| last(told, &names)) {
            Some(Cow::Borrowed(uri)) => Some(Cow::Borrowed(path_of(uri))),
            Some(Cow::Owned(uri)) => Some(Cow::Owned(path_of(&uri).to_owned())),
            None => self.below.map(Cow::Borrowed),
        }
    }

    /// In lower case and without a port, so that one host is one value however a client writes it.
    fn host(&self, told: Option<&HeaderMap>) -> Option<String> {
        let told = told.and_then(|told| last(told, &["x-forwarded-host"]));
        let own = || {
            let authority = self.head.uri.authority();
            let authority = authority.map(|authority| Cow::Borrowed(authority.as_str()));
            authority.or_else(|| last(&self.head.headers, &[header::HOST.as_str()]))
        };
        let host = told.or_else(own)?;
        let port_at = host
            .rfind(':')
            .filter(|at| host.get(*at..).is_some_and(|port| !port.contains(']')));
        let bare = host.get(..port_at.unwrap_or(host.len()))?;
        let bare = bare.strip_suffix('.').unwrap_or(bare);
        Some(bare.to_ascii_lowercase())
    }

    /// The value of a header; several lines are joined as HTTP says that they may be.
    fn header(&self, name: &str) -> Option<Cow<'r, str>> {
        let mut lines = self.head.headers.get_all(name).iter();
        let mut value = text(lines.next()?);
        for line in lines {
            let value = value.to_mut();
            value.push_str(", ");
            value.push_str(&text(line));
        }
        Some(value)
    }
}

/// The value of the first of these headers that has one; of several lines the last, which the nearest
/// proxy has written.
fn last<'r>(headers: &'r HeaderMap, names: &[&str]) -> Option<Cow<'r, str>> {
    let mut values = names
        .iter()
        .filter_map(|name| headers.get_all(*name).iter().next_back());
    values.find(|value| !value.is_empty()).map(text)
}

/// The path of a URI, with or without scheme and authority.
fn path_of(uri: &str) -> &str {
    let (path, _) = uri.split_once('?').unwrap_or((uri, ""));
    match path.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => {
            rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/")
        }
        Some(_) | None => path,
    }
}

/// A header's value as text: what is not UTF-8 is taken byte by byte, so that no value is lost.
pub(super) fn text(value: &HeaderValue) -> Cow<'_, str> {
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(value.as_bytes().iter().copied().map(char::from).collect()),
    }
}
