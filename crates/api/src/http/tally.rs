//! How many requests were answered, by call and status.
//!
//! Invariant: the series are fixed; no request can add one.

use std::sync::atomic::{AtomicU64, Ordering};

use http::StatusCode;

/// A call, as metrics name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Check,
    Checks,
    ForwardAuth,
    Reserve,
    Settle,
    Refund,
    Report,
    Acquire,
    Release,
    Cluster,
    Keys,
    KillSwitch,
    ShadowSwitch,
    Livez,
    Readyz,
    Metrics,
    OpenApi,
    /// A path that is none of these.
    Unknown,
}

impl Call {
    pub(super) const ALL: [Self; 18] = [
        Self::Check,
        Self::Checks,
        Self::ForwardAuth,
        Self::Reserve,
        Self::Settle,
        Self::Refund,
        Self::Report,
        Self::Acquire,
        Self::Release,
        Self::Cluster,
        Self::Keys,
        Self::KillSwitch,
        Self::ShadowSwitch,
        Self::Livez,
        Self::Readyz,
        Self::Metrics,
        Self::OpenApi,
        Self::Unknown,
    ];

    /// The call of this path.
    pub(super) fn of(path: &str) -> Self {
        let known = Self::ALL.into_iter().find(|call| call.path() == path);
        known.unwrap_or_else(|| {
            if path.starts_with(Self::ForwardAuth.path()) {
                Self::ForwardAuth
            } else {
                Self::Unknown
            }
        })
    }

    /// Its path, of `ForwardAuth` the start of its paths; empty for unknown ones.
    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::Check => "/v1/check",
            Self::Checks => "/v1/checks",
            Self::ForwardAuth => "/v1/forward-auth/",
            Self::Reserve => "/v1/reserve",
            Self::Settle => "/v1/settle",
            Self::Refund => "/v1/refund",
            Self::Report => "/v1/report",
            Self::Acquire => "/v1/acquire",
            Self::Release => "/v1/release",
            Self::Cluster => "/v1/cluster",
            Self::Keys => "/v1/keys",
            Self::KillSwitch => "/v1/switches/kill",
            Self::ShadowSwitch => "/v1/switches/shadow",
            Self::Livez => "/livez",
            Self::Readyz => "/readyz",
            Self::Metrics => "/metrics",
            Self::OpenApi => "/openapi.json",
            Self::Unknown => "",
        }
    }

    /// Its name in metrics.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Checks => "checks",
            Self::ForwardAuth => "forward_auth",
            Self::Reserve => "reserve",
            Self::Settle => "settle",
            Self::Refund => "refund",
            Self::Report => "report",
            Self::Acquire => "acquire",
            Self::Release => "release",
            Self::Cluster => "cluster",
            Self::Keys => "keys",
            Self::KillSwitch => "kill_switch",
            Self::ShadowSwitch => "shadow_switch",
            Self::Livez => "livez",
            Self::Readyz => "readyz",
            Self::Metrics => "metrics",
            Self::OpenApi => "openapi",
            Self::Unknown => "unknown",
        }
    }
}

/// The statuses that are told apart; the last stands for all others.
const STATUSES: [u16; 15] = [
    200, 204, 400, 401, 403, 404, 405, 408, 409, 413, 415, 429, 500, 503, 0,
];

/// One counter for each call and status.
#[derive(Debug, Default)]
pub(super) struct RequestTally([[AtomicU64; STATUSES.len()]; Call::ALL.len()]);

impl RequestTally {
    /// Counts one answer.
    pub(super) fn count(&self, call: Call, status: StatusCode) {
        let status = status.as_u16();
        let last = STATUSES.len() - 1;
        let place = STATUSES
            .iter()
            .position(|known| *known == status)
            .unwrap_or(last);
        let counters = self.row(call);
        if let Some(counter) = counters.and_then(|counters| counters.get(place)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// All counters that are not zero: call, status (`other` where it is not told apart), count.
    pub(super) fn read(&self) -> Vec<(&'static str, String, u64)> {
        let mut read = Vec::new();
        for call in Call::ALL {
            let counters = self.row(call).into_iter().flatten();
            for (counter, status) in counters.zip(STATUSES) {
                let count = counter.load(Ordering::Relaxed);
                let status = if status == 0 {
                    "other".to_owned()
                } else {
                    status.to_string()
                };
                if count > 0 {
                    read.push((call.as_str(), status, count));
                }
            }
        }
        read
    }

    fn row(&self, call: Call) -> Option<&[AtomicU64; STATUSES.len()]> {
        let mut rows = self.0.iter().zip(Call::ALL);
        rows.find(|(_, known)| *known == call).map(|(row, _)| row)
    }
}
