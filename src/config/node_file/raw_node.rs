//! `node.toml` as it is written.

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use crate::config::raw::{Span, Whole};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawNode {
    pub(super) node_id: Option<Spanned<String>>,
    pub(super) data_dir: Option<String>,
    pub(super) cluster: Option<String>,
    pub(super) policies: Option<String>,
    #[serde(default)]
    pub(super) seeds: Vec<Spanned<String>>,
    pub(super) weight: Option<Spanned<Whole>>,
    pub(super) max_memory_mb: Option<Spanned<Whole>>,
    pub(super) inline_limits: Option<bool>,
    pub(super) check_deadline_ms: Option<Spanned<Whole>>,
    pub(super) forward_timeout_ms: Option<Spanned<Whole>>,
    pub(super) standby_timeout_ms: Option<Spanned<Whole>>,
    pub(super) join_timeout: Option<Span>,
    #[serde(default)]
    pub(super) http: RawHttp,
    pub(super) quic: Spanned<RawQuic>,
    pub(super) log: Option<RawLog>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawHttp {
    pub(super) listen: Option<Spanned<String>>,
    pub(super) advertise: Option<Spanned<String>>,
    pub(super) token_file: Option<Spanned<String>>,
    pub(super) trusted_proxies: Option<Vec<Spanned<String>>>,
    pub(super) max_wait_ms: Option<Spanned<Whole>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawQuic {
    pub(super) listen: Option<Spanned<String>>,
    pub(super) advertise: Option<Spanned<String>>,
    pub(super) authority: String,
    pub(super) certificate: String,
    pub(super) key: String,
    pub(super) clients: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLog {
    pub(super) format: Option<Spanned<String>>,
    pub(super) level: Option<Spanned<String>>,
}

impl RawNode {
    pub(super) fn quic_span(&self) -> Range<usize> {
        self.quic.span()
    }
}
