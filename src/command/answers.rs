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
    pub(super) policies: String,
    #[serde(default)]
    pub(super) policies_error: Option<String>,
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
    pub(super) policies: Option<String>,
}

impl ClusterAnswer {
    /// Members that own slots.
    pub(super) fn active(&self) -> usize {
        self.members
            .iter()
            .filter(|member| member.phase == "active")
            .count()
    }

    /// The members that told of other policies than this one's.
    pub(super) fn with_other_policies(&self) -> Vec<&str> {
        let differs = |member: &&MemberAnswer| {
            let told = member.policies.as_ref();
            told.is_some_and(|policies| *policies != self.policies)
        };
        let differing = self.members.iter().filter(differs);
        differing.map(|member| member.id.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::ClusterAnswer;

    #[test]
    fn members_whose_policies_differ_are_named_and_unknown_ones_are_not() {
        let member = |id: &str, policies: Option<&str>| {
            json!({
                "id": id, "phase": "active", "reachable": true, "peer": "127.0.0.1:1",
                "api": "127.0.0.1:2", "weight": 1, "slots": 1, "placement": "p",
                "policies": policies,
            })
        };
        let members = [
            member("n1", Some("a")),
            member("n2", Some("b")),
            member("n3", None),
        ];
        let answer = json!({"self": "n1", "placement": "p", "policies": "a", "members": members});
        let cluster: ClusterAnswer = serde_json::from_value(answer).unwrap();
        assert_eq!(cluster.with_other_policies(), ["n2"]);
    }
}
