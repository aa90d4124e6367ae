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
    // Nodes of an older version do not say what follows.
    #[serde(default)]
    pub(super) switches: SwitchesAnswer,
    #[serde(default)]
    pub(super) motion: MotionAnswer,
    pub(super) members: Vec<MemberAnswer>,
}

/// How the cluster's switches stand.
#[derive(Debug, Default, Deserialize)]
pub(super) struct SwitchesAnswer {
    #[serde(default)]
    pub(super) kill: bool,
    #[serde(default)]
    pub(super) shadow: bool,
}

/// Slots on their way to the node that answers and away from it.
#[derive(Debug, Deserialize)]
pub(super) struct MotionAnswer {
    pub(super) slots_in: u64,
    pub(super) slots_out: u64,
    pub(super) warm: bool,
}

impl Default for MotionAnswer {
    fn default() -> Self {
        Self {
            slots_in: 0,
            slots_out: 0,
            warm: true,
        }
    }
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
    #[serde(default)]
    pub(super) replication_lag_ms: Option<u64>,
}

impl ClusterAnswer {
    /// What is not as it is in a settled cluster, a line for each: switches that are on, slots that move.
    pub(super) fn unsettled(&self) -> Vec<String> {
        let SwitchesAnswer { kill, shadow } = self.switches;
        let MotionAnswer {
            slots_in,
            slots_out,
            warm,
        } = self.motion;
        let switches = [
            (
                kill,
                "the kill switch is ON: everything is admitted, nothing is counted",
            ),
            (shadow, "the shadow switch is ON: nothing is denied"),
        ];
        let on = switches.into_iter().filter(|(on, _)| *on);
        let mut lines: Vec<_> = on.map(|(_, line)| line.to_owned()).collect();
        if slots_in > 0 || slots_out > 0 {
            let this = &self.this;
            lines.push(format!(
                "slots are moving: {slots_in} on their way to {this}, {slots_out} away from it"
            ));
        }
        if !warm {
            let this = &self.this;
            lines.push(format!("{this} still copies the counts of its slots"));
        }
        lines
    }

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

    fn cluster(more: serde_json::Value) -> ClusterAnswer {
        let mut answer = json!({"self": "n1", "placement": "p", "policies": "a", "members": []});
        let (into, more) = (answer.as_object_mut(), more.as_object().cloned());
        into.unwrap().extend(more.unwrap());
        serde_json::from_value(answer).unwrap()
    }

    #[test]
    fn switches_and_moving_slots_are_told_and_nothing_of_a_settled_cluster() {
        let unsettled = |more| cluster(more).unsettled();
        let still = json!({"slots_in": 0, "slots_out": 0, "warm": true});
        assert_eq!(unsettled(json!({})), [""; 0]);
        let off = json!({"kill": false, "shadow": false});
        assert_eq!(
            unsettled(json!({"switches": off, "motion": still})),
            [""; 0]
        );
        let on = json!({"kill": true, "shadow": true});
        assert_eq!(
            unsettled(json!({"switches": on, "motion": still})),
            [
                "the kill switch is ON: everything is admitted, nothing is counted",
                "the shadow switch is ON: nothing is denied"
            ]
        );
        let moving = json!({"slots_in": 7, "slots_out": 0, "warm": false});
        assert_eq!(
            unsettled(json!({"switches": off, "motion": moving})),
            [
                "slots are moving: 7 on their way to n1, 0 away from it",
                "n1 still copies the counts of its slots"
            ]
        );
        let leaving = json!({"slots_in": 0, "slots_out": 9, "warm": true});
        assert_eq!(
            unsettled(json!({"motion": leaving})),
            ["slots are moving: 0 on their way to n1, 9 away from it"]
        );
    }

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
