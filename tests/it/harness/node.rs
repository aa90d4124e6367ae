//! One node's HTTP interface, called from a plain thread.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tollgate::http_client::{Answer, Call, CallError, Connection};

use super::wait::now;

/// A connection to one node's HTTP interface.
#[derive(Debug)]
pub(crate) struct Node {
    runtime: Runtime,
    connection: Connection,
}

/// What a call came to.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
    pub(crate) text: String,
    pub(crate) took: Duration,
}

/// The cluster as a node sees it.
#[derive(Debug)]
pub(crate) struct ClusterSeen {
    pub(crate) placement: String,
    /// Phase by node.
    pub(crate) phases: BTreeMap<String, String>,
}

impl ClusterSeen {
    pub(crate) fn active(&self) -> Vec<&str> {
        let active = self.phases.iter().filter(|(_, phase)| *phase == "active");
        active.map(|(id, _)| id.as_str()).collect()
    }
}

impl Answered {
    /// Whether the check was admitted.
    pub(crate) fn is_allowed(&self) -> bool {
        self.body["allowed"]
            .as_bool()
            .unwrap_or_else(|| panic!("no decision: {}", self.text))
    }

    /// The only limit of the answer.
    pub(crate) fn limit(&self) -> &Value {
        &self.body["limits"][0]
    }

    /// Whether any limit of the answer was decided without all counts.
    pub(crate) fn is_degraded(&self) -> bool {
        let limits = self.body["limits"].as_array();
        limits.is_some_and(|limits| limits.iter().any(|limit| limit["degraded"] == true))
    }
}

impl Node {
    pub(crate) fn new(url: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        Self {
            runtime: runtime.unwrap(),
            connection: Connection::new(url.parse().unwrap()),
        }
    }

    /// Makes one call.
    pub(crate) fn call(&mut self, call: Call<'_>) -> Result<Answered, CallError> {
        let start: Instant = now();
        let Answer {
            status,
            headers,
            body,
        } = self.runtime.block_on(self.connection.call(call))?;
        Ok(Answered {
            status,
            headers,
            took: start.elapsed(),
            text: String::from_utf8_lossy(&body).into_owned(),
            body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        })
    }

    pub(crate) fn get(&mut self, path: &str) -> Result<Answered, CallError> {
        self.call(Call::read(path))
    }

    pub(crate) fn post(
        &mut self,
        path: &str,
        body: impl Into<Vec<u8>>,
    ) -> Result<Answered, CallError> {
        self.call(Call {
            method: Method::POST,
            path,
            token: None,
            body: body.into(),
        })
    }

    /// Asks one check of the policy `default` for one client.
    pub(crate) fn check(&mut self, ip: &str) -> Result<Answered, CallError> {
        let body = json!({ "attributes": { "ip": ip } });
        self.post("/v1/check", body.to_string())
    }

    /// The cluster as the node sees it; `None` if it does not say.
    pub(crate) fn cluster(&mut self) -> Option<ClusterSeen> {
        let answer = self.get("/v1/cluster").ok()?;
        let members = answer.body["members"].as_array()?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Some(ClusterSeen {
            placement: text(&answer.body["placement"]),
            phases: members
                .iter()
                .map(|it| (text(&it["id"]), text(&it["phase"])))
                .collect(),
        })
    }
}
