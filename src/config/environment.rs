//! The environment variables that the program reads, all of them.
//!
//! A plain value, so that tests hand in their own.

use tollgate_limit::NodeId;

use super::{
    error::ConfigError,
    log_filter::{self, RIGHT_FORM},
};

/// The node's name; goes before `node_id` of `node.toml`.
const NODE_ID: &str = "TOLLGATE_NODE_ID";
/// What is logged; goes before `log.level` of `node.toml`.
const LOG: &str = "TOLLGATE_LOG";

/// What the environment says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// `TOLLGATE_NODE_ID`.
    pub node_id: Option<NodeId>,
    /// `TOLLGATE_LOG`.
    pub log_level: Option<String>,
}

impl Environment {
    /// Reads the process's environment. A variable that is set to nothing is not set.
    ///
    /// # Errors
    /// [`ConfigError::Environment`]: the operator's fault.
    pub fn read() -> Result<Self, ConfigError> {
        Ok(Self {
            node_id: variable(NODE_ID)?.map(|name| node_id(&name)).transpose()?,
            log_level: variable(LOG)?.map(log_level).transpose()?,
        })
    }
}

fn node_id(name: &str) -> Result<NodeId, ConfigError> {
    NodeId::new(name).ok_or_else(|| ConfigError::Environment {
        name: NODE_ID,
        wrong: format!("{name:?} is not a node id"),
        right: "1 to 64 characters of A-Z, a-z, 0-9, '.', '_' and '-'".to_owned(),
    })
}

fn log_level(text: String) -> Result<String, ConfigError> {
    log_filter::check(&text).map_err(|wrong| ConfigError::Environment {
        name: LOG,
        wrong,
        right: RIGHT_FORM.to_owned(),
    })?;
    Ok(text)
}

fn variable(name: &'static str) -> Result<Option<String>, ConfigError> {
    let Some(value) = std::env::var_os(name).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    value
        .into_string()
        .map(Some)
        .map_err(|_value| ConfigError::Environment {
            name,
            wrong: "is not UTF-8".to_owned(),
            right: "write it as UTF-8".to_owned(),
        })
}
