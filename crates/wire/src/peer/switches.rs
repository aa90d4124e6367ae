//! The switches of the cluster, as nodes tell each other how they stand.

use serde::{Deserialize, Serialize};

use crate::codec;

/// The switches of the whole cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switches {
    /// Whether everything is admitted and nothing counted.
    pub kill: Register,
    /// Whether no refusal holds.
    pub shadow: Register,
}

/// A switch as it was set last: of two that differ, the one with the higher counter holds, and of equal
/// counters the one of the greater name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Register {
    /// Raised by each that sets it; 0 if nobody has.
    pub counter: u64,
    /// Who set it; empty if nobody has.
    #[serde(deserialize_with = "codec::owned_name")]
    pub node: String,
    /// How it stands.
    pub on: bool,
}
