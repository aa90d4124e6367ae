//! What nodes answer, as far as the commands read it.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// A check, as it is sent.
#[derive(Debug, Serialize)]
pub(super) struct CheckBody<'a> {
    pub(super) policy: &'a str,
    pub(super) attributes: serde_json::Map<String, serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) peek: bool,
}

impl<'a> CheckBody<'a> {
    /// A check with these attributes, at the default cost.
    pub(super) fn new<N: Into<String>, V: Into<String>>(
        policy: &'a str,
        attributes: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let attributes = attributes.into_iter();
        Self {
            policy,
            attributes: attributes
                .map(|(name, value)| (name.into(), value.into().into()))
                .collect(),
            cost: None,
            peek: false,
        }
    }

    /// The body's bytes.
    pub(super) fn bytes(&self) -> Vec<u8> {
        // A map with text keys and plain values always serializes.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// The answer to a check.
#[derive(Debug, Deserialize)]
pub(super) struct CheckAnswer {
    pub(super) allowed: bool,
    #[serde(default)]
    pub(super) limits: Vec<LimitAnswer>,
}

/// What one limit said.
#[derive(Debug, Deserialize)]
pub(super) struct LimitAnswer {
    pub(super) name: String,
    pub(super) allowed: bool,
    pub(super) degraded: bool,
}

/// `GET /v1/cluster`.
#[derive(Debug, Deserialize)]
pub(super) struct ClusterAnswer {
    #[serde(rename = "self")]
    pub(super) this: String,
    pub(super) placement: String,
    pub(super) members: Vec<MemberAnswer>,
}

/// A member of the cluster.
#[derive(Debug, Deserialize)]
pub(super) struct MemberAnswer {
    pub(super) id: String,
    pub(super) phase: String,
    pub(super) reachable: bool,
    pub(super) peer: SocketAddr,
    pub(super) api: SocketAddr,
    pub(super) weight: u64,
    pub(super) slots: u64,
    pub(super) placement: Option<String>,
}

impl ClusterAnswer {
    /// Members that own slots.
    pub(super) fn active(&self) -> usize {
        self.members
            .iter()
            .filter(|member| member.phase == "active")
            .count()
    }
}
