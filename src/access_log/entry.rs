//! One line of the Apache and nginx common or combined form.
//!
//! Pure: text in, borrowed parts out. Must not know of files or checks. A line of any content is
//! either read or refused, never a panic.

use std::{borrow::Cow, net::IpAddr};

use super::fitting::fitting;

/// One request of an access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The host that was asked, without its port, where the line starts with one: Apache's
    /// `vhost_combined`.
    pub host: Option<&'a str>,
    /// The client, as logged: an address or a host name.
    pub client: &'a str,
    /// The user, if one was logged.
    pub user: Option<Cow<'a, str>>,
    /// When, as logged: `17/May/2015:10:05:03 +0000`.
    pub time: &'a str,
    /// The request's method, if there was a request line.
    pub method: Option<&'a str>,
    /// The request's path without its query, if there was a request line.
    pub path: Option<Cow<'a, str>>,
    /// The status that was answered.
    pub status: u16,
    /// Bytes that were answered; `-` is none.
    pub bytes: u64,
    /// Where the client came from, in the combined form.
    pub referrer: Option<Cow<'a, str>>,
    /// What the client called itself, in the combined form.
    pub user_agent: Option<Cow<'a, str>>,
}

impl<'a> Entry<'a> {
    /// Reads a line; `None` if it is of neither form.
    #[must_use]
    pub fn parse(line: &'a str) -> Option<Self> {
        let (host, line) = host(line.trim_end());
        let (client, rest) = word(line)?;
        let (_identity, rest) = word(rest)?;
        // A user name may hold spaces: it ends where the time starts.
        let (user, rest) = rest.split_once(" [")?;
        let (time, rest) = rest.split_once(']')?;
        let (request, rest) = quoted(rest.trim_start())?;
        let (status, rest) = word(rest.trim_start())?;
        let (bytes, rest) = word(rest).unwrap_or((rest, ""));
        let (referrer, rest) = quoted(rest).unwrap_or((Cow::Borrowed("-"), ""));
        let (user_agent, _more) = quoted(rest.trim_start()).unwrap_or((Cow::Borrowed("-"), ""));
        let (method, path) = request_line(request);
        Some(Self {
            host,
            client,
            user: present(user.trim().into()),
            time,
            method,
            path,
            status: status.parse().ok()?,
            bytes: if bytes == "-" { 0 } else { bytes.parse().ok()? },
            referrer: present(referrer),
            user_agent: present(user_agent),
        })
    }

    /// The entry as attributes of a check; values are made to fit the bounds of attributes.
    pub fn attributes(&self) -> impl Iterator<Item = (&'static str, Cow<'_, str>)> {
        [
            ("ip", Some(fitting(self.client))),
            ("method", self.method.map(fitting)),
            ("path", self.path.as_deref().map(fitting)),
            ("status", Some(Cow::Owned(self.status.to_string()))),
            ("user", self.user.as_deref().map(fitting)),
            ("host", self.host.map(fitting)),
            ("header.referer", self.referrer.as_deref().map(fitting)),
            ("header.user-agent", self.user_agent.as_deref().map(fitting)),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }
}

/// The host that a line starts with, and the line that follows: a client's address is its second word
/// then, where all other lines have the client's identity.
fn host(line: &str) -> (Option<&str>, &str) {
    let named = word(line).filter(|(_, rest)| {
        let second = word(rest).map(|(second, _)| second);
        second.is_some_and(|second| second.parse::<IpAddr>().is_ok())
    });
    let Some((host, rest)) = named else {
        return (None, line);
    };
    let port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match host.rsplit_once(':') {
        Some((name, digits)) if port(digits) && !name.is_empty() => (Some(name), rest),
        Some(_) | None => (Some(host), rest),
    }
}

/// The first word and what follows its space.
fn word(text: &str) -> Option<(&str, &str)> {
    if text.is_empty() {
        return None;
    }
    Some(text.split_once(' ').unwrap_or((text, "")))
}

/// A text in double quotes, a backslash before a quote or a backslash taken away, and what follows.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let inner = text.strip_prefix('"')?;
    let mut escaped = false;
    let mut any = false;
    for (at, character) in inner.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => (escaped, any) = (true, true),
            '"' => {
                let (content, rest) = inner.split_at(at);
                let content = if any {
                    unescaped(content).into()
                } else {
                    content.into()
                };
                return Some((content, rest.get(1..).unwrap_or_default()));
            }
            _ => {}
        }
    }
    None
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let quotes = character == '\\' && matches!(characters.peek(), Some('"' | '\\'));
        out.push(if quotes {
            characters.next().unwrap_or(character)
        } else {
            character
        });
    }
    out
}

/// Method and path of `GET /path?query HTTP/1.1`; nothing of any other text.
fn request_line(request: Cow<'_, str>) -> (Option<&str>, Option<Cow<'_, str>>) {
    match request {
        Cow::Borrowed(line) => match split_request(line) {
            Some((method, path)) => (Some(method), Some(Cow::Borrowed(path))),
            None => (None, None),
        },
        // A request line with escapes in it: its method is not borrowed from the line, so only the path
        // is kept.
        Cow::Owned(line) => {
            let path = split_request(&line).map(|(_, path)| Cow::Owned(path.to_owned()));
            (None, path)
        }
    }
}

fn split_request(line: &str) -> Option<(&str, &str)> {
    let (method, rest) = line.split_once(' ')?;
    let target = rest
        .rsplit_once(' ')
        .map_or(rest, |(target, _version)| target);
    let path = target.split(['?', '#']).next().unwrap_or(target);
    let legal = method.bytes().all(|byte| byte.is_ascii_alphabetic());
    (legal && !method.is_empty() && !path.is_empty()).then_some((method, path))
}

fn present(value: Cow<'_, str>) -> Option<Cow<'_, str>> {
    (!value.is_empty() && value != "-").then_some(value)
}

#[cfg(test)]
mod tests;
