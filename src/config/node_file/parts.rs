//! The single values of `node.toml`, checked.

use std::{
    net::{IpAddr, SocketAddr},
    ops::Range,
    time::Duration,
};

use ipnet::IpNet;
use tollgate_api::Token;
use tollgate_limit::NodeId;
use tollgate_node::{Clients, Seed};
use toml::Spanned;

use super::{
    HttpSettings, LogFormat, LogSettings,
    raw_node::{RawLog, RawNode},
};
use crate::config::{
    DEFAULTS,
    error::ConfigError,
    log_filter::{self, RIGHT_FORM},
    raw::Whole,
    source::{Source, read_text},
};

/// The most seeds of a node.
const MAX_SEEDS: usize = 64;
/// The most networks of trusted proxies.
const MAX_TRUSTED_PROXIES: usize = 256;
/// The least memory for counters, in MiB.
const MIN_MEMORY_MB: u64 = 1;
/// The most memory for counters, in MiB: one TiB.
const MAX_MEMORY_MB: u64 = 1 << 20;
/// The longest deadline of a check, in milliseconds.
const MAX_DEADLINE_MS: u64 = 60_000;
/// What a name in a file must look like.
const NAME_FORM: &str = "1 to 64 characters of A-Z, a-z, 0-9, '.', '_' and '-'";
/// What an address in a file must look like.
const ADDRESS_FORM: &str = "an IP address and a port, such as \"127.0.0.1:7601\" or \"[::1]:7601\"";

pub(super) fn node_id(
    source: &Source,
    raw: Option<&Spanned<String>>,
) -> Result<Option<NodeId>, ConfigError> {
    let Some(name) = raw else {
        return Ok(None);
    };
    let Some(node) = NodeId::new(name.get_ref()) else {
        let wrong = format!("{:?} is not a node id", name.get_ref());
        return Err(source.mistake(&name.span(), "node_id", wrong, NAME_FORM));
    };
    Ok(Some(node))
}

pub(super) fn address(
    source: &Source,
    raw: Option<&Spanned<String>>,
    field: &str,
    default: &str,
) -> Result<SocketAddr, ConfigError> {
    let (text, span) = raw.map_or((default, 0..0), |text| {
        (text.get_ref().as_str(), text.span())
    });
    let parsed = text
        .parse::<SocketAddr>()
        .ok()
        .filter(|address| address.port() != 0);
    parsed.ok_or_else(|| {
        source.mistake(
            &span,
            field,
            format!("{text:?} is not an address"),
            ADDRESS_FORM,
        )
    })
}

/// Where peers reach a socket that listens at `listen`.
pub(super) fn advertised(
    source: &Source,
    raw: Option<&Spanned<String>>,
    listen: SocketAddr,
    table: Range<usize>,
) -> Result<SocketAddr, ConfigError> {
    let told = match raw {
        Some(_) => address(source, raw, "quic.advertise", "")?,
        None => listen,
    };
    if told.ip().is_unspecified() {
        let span = raw.map_or(table, Spanned::span);
        let right = "write the address that the other nodes reach this one by";
        let wrong = format!("{} cannot be reached by the other nodes", told.ip());
        return Err(source.mistake(&span, "quic.advertise", wrong, right));
    }
    Ok(told)
}

pub(super) fn http_settings(
    source: &Source,
    raw: &RawNode,
    peer: SocketAddr,
) -> Result<HttpSettings, ConfigError> {
    let table = &raw.http;
    let listen = address(
        source,
        table.listen.as_ref(),
        "http.listen",
        DEFAULTS.http_listen,
    )?;
    let advertise = match table.advertise.as_ref() {
        Some(_) => address(source, table.advertise.as_ref(), "http.advertise", "")?,
        None if listen.ip().is_unspecified() => SocketAddr::new(peer.ip(), listen.port()),
        None => listen,
    };
    let token = table
        .token_file
        .as_ref()
        .map(|path| token(source, path))
        .transpose()?;
    let max_wait = table.max_wait_ms.as_ref();
    Ok(HttpSettings {
        listen,
        advertise,
        token,
        trusted_proxies: trusted_proxies(source, table.trusted_proxies.as_deref())?,
        max_wait: millis(source, max_wait, "http.max_wait_ms", DEFAULTS.max_wait_ms)?,
    })
}

fn trusted_proxies(
    source: &Source,
    raw: Option<&[Spanned<String>]>,
) -> Result<Vec<IpNet>, ConfigError> {
    let Some(raw) = raw else {
        return Ok(DEFAULTS.trusted_proxies.to_vec());
    };
    if let Some(extra) = raw.get(MAX_TRUSTED_PROXIES) {
        let right = format!("at most {MAX_TRUSTED_PROXIES}");
        let wrong = "too many networks";
        return Err(source.mistake(&extra.span(), "http.trusted_proxies", wrong, right));
    }
    let network = |text: &Spanned<String>| {
        let written = text.get_ref();
        let one = || written.parse().map(|address: IpAddr| address.into());
        let parsed = written.parse().or_else(|_error| one());
        // Bits below the prefix have no meaning, and are as a rule a mistake in the prefix.
        match parsed {
            Ok(network) if network == IpNet::trunc(&network) => Ok(network),
            Ok(_) | Err(_) => {
                let wrong = format!("{written:?} is not a network");
                let right = "an address and a prefix length, such as \"10.0.0.0/8\" or \"::1/128\"";
                Err(source.mistake(&text.span(), "http.trusted_proxies", wrong, right))
            }
        }
    };
    raw.iter().map(network).collect()
}

fn token(source: &Source, path: &Spanned<String>) -> Result<Token, ConfigError> {
    let text = read_text(&source.resolve(path.get_ref()))?;
    Token::new(text.trim())
        .map_err(|error| source.mistake(&path.span(), "http.token_file", error.to_string(), ""))
}

pub(super) fn seeds(source: &Source, raw: &[Spanned<String>]) -> Result<Vec<Seed>, ConfigError> {
    if let Some(extra) = raw.get(MAX_SEEDS) {
        let right = format!("at most {MAX_SEEDS}");
        return Err(source.mistake(&extra.span(), "seeds", "too many seeds", right));
    }
    raw.iter().map(|seed| self::seed(source, seed)).collect()
}

fn seed(source: &Source, raw: &Spanned<String>) -> Result<Seed, ConfigError> {
    let text = raw.get_ref();
    let parsed = match text.strip_prefix("dns:") {
        Some(name) => name.rsplit_once(':').and_then(|(host, port)| {
            let port = port.parse().ok().filter(|port| *port != 0)?;
            (!host.is_empty()).then(|| Seed::Name {
                host: host.to_owned(),
                port,
            })
        }),
        None => text.parse().ok().map(Seed::Address),
    };
    parsed.ok_or_else(|| {
        let right = "\"10.0.0.1:7601\", or \"dns:host:7601\" for a name";
        source.mistake(
            &raw.span(),
            "seeds",
            format!("{text:?} is not a seed"),
            right,
        )
    })
}

pub(super) fn clients(
    source: &Source,
    raw: Option<&Spanned<String>>,
) -> Result<Clients, ConfigError> {
    match raw.map(|text| (text.get_ref().as_str(), text.span())) {
        None | Some(("certificate", _)) => Ok(Clients::Certificate),
        Some(("off", _)) => Ok(Clients::Off),
        Some(("open", _)) => Ok(Clients::Open),
        Some((other, span)) => {
            let right = "write \"off\", \"certificate\" or \"open\"";
            Err(source.mistake(
                &span,
                "quic.clients",
                format!("{other:?} is not known"),
                right,
            ))
        }
    }
}

pub(super) fn log_settings(
    source: &Source,
    raw: Option<&RawLog>,
) -> Result<LogSettings, ConfigError> {
    let format = match raw
        .and_then(|table| table.format.as_ref())
        .map(|text| (text.get_ref().as_str(), text.span()))
    {
        None | Some(("text", _)) => LogFormat::Text,
        Some(("json", _)) => LogFormat::Json,
        Some((other, span)) => {
            let right = "write \"text\" or \"json\"";
            let wrong = format!("{other:?} is not a format");
            return Err(source.mistake(&span, "log.format", wrong, right));
        }
    };
    let level = raw.and_then(|table| table.level.as_ref());
    if let Some(level) = level {
        log_filter::check(level.get_ref())
            .map_err(|wrong| source.mistake(&level.span(), "log.level", wrong, RIGHT_FORM))?;
    }
    Ok(LogSettings {
        format,
        level: level
            .map_or(DEFAULTS.log_level, |level| level.get_ref())
            .to_owned(),
    })
}

pub(super) fn weight(source: &Source, raw: Option<&Spanned<Whole>>) -> Result<u8, ConfigError> {
    let Some(weight) = raw else {
        return Ok(DEFAULTS.weight);
    };
    let number = weight.get_ref().0;
    u8::try_from(number)
        .ok()
        .filter(|weight| *weight > 0)
        .ok_or_else(|| {
            let wrong = format!("{number} is out of range");
            source.mistake(
                &weight.span(),
                "weight",
                wrong,
                "a whole number from 1 to 255",
            )
        })
}

pub(super) fn max_memory_bytes(
    source: &Source,
    raw: Option<&Spanned<Whole>>,
) -> Result<u64, ConfigError> {
    let megabytes = raw.map_or(DEFAULTS.max_memory_mb, |number| number.get_ref().0);
    if (MIN_MEMORY_MB..=MAX_MEMORY_MB).contains(&megabytes) {
        return Ok(megabytes << 20);
    }
    let span = raw.map_or(0..0, Spanned::span);
    let right = format!("a whole number from {MIN_MEMORY_MB} to {MAX_MEMORY_MB}");
    Err(source.mistake(
        &span,
        "max_memory_mb",
        format!("{megabytes} is out of range"),
        right,
    ))
}

pub(super) fn millis(
    source: &Source,
    raw: Option<&Spanned<Whole>>,
    field: &str,
    default: u64,
) -> Result<Duration, ConfigError> {
    let millis = raw.map_or(default, |number| number.get_ref().0);
    if (1..=MAX_DEADLINE_MS).contains(&millis) {
        return Ok(Duration::from_millis(millis));
    }
    let span = raw.map_or(0..0, Spanned::span);
    let right = format!("a whole number from 1 to {MAX_DEADLINE_MS}");
    Err(source.mistake(&span, field, format!("{millis} is out of range"), right))
}
