//! Who may make the operators' calls.
//!
//! Invariant (P8): with a token set only its bearer; without one only a client of this machine that
//! names this machine, so that neither the network nor a web page that rebinds its name gets in.

use http::{HeaderMap, StatusCode, Uri, header, uri::Authority};

use crate::http::{HttpConfig, Reach, problem::Problem};

/// Admits a request to the operators' calls, or says what it lacks.
pub(super) fn admit(
    config: &HttpConfig,
    reach: Reach,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), Problem> {
    let refuse = |detail: &str| Err(Problem::new(StatusCode::UNAUTHORIZED, detail));
    if let Some(token) = &config.token {
        return match bearer(headers) {
            Some(presented) if token.is(presented) => Ok(()),
            Some(_) => refuse("the token is wrong"),
            None => refuse("this call needs the node's token: `Authorization: Bearer <token>`"),
        };
    }
    if reach != Reach::Loopback {
        return refuse(
            "without a token set on the node this call works on a loopback listener alone",
        );
    }
    if !names_loopback(uri, headers) {
        return refuse("without a token set on the node this call needs a loopback `Host`");
    }
    Ok(())
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(SCHEME.len())?;
    (scheme.eq_ignore_ascii_case(SCHEME) && token.starts_with(b" ")).then(|| token.trim_ascii())
}

const SCHEME: &[u8] = b"Bearer";

fn names_loopback(uri: &Uri, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let from_header = match (hosts.next(), hosts.next()) {
        (None, _) => None,
        (Some(host), None) => match Authority::try_from(host.as_bytes()) {
            Ok(host) => Some(host),
            Err(_) => return false,
        },
        (Some(_), Some(_)) => return false,
    };
    let named = [uri.authority(), from_header.as_ref()];
    let mut named = named.into_iter().flatten().peekable();
    named.peek().is_some() && named.all(|authority| is_loopback(authority.host()))
}

fn is_loopback(host: &str) -> bool {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    match bare.unwrap_or(host).parse::<std::net::IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}
