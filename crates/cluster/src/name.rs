//! Names: the cluster's, and the role that a certificate gives its holder.
//!
//! Knows nothing of certificates but the text of the URI in them. A name that exists is legal.

use std::fmt;

use tollgate_limit::{HashKey, KeyHasher, NodeId, SLOT_COUNT};

/// The name of a cluster: `[a-z0-9-]{1,63}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterName(String);

impl ClusterName {
    /// The longest name, in bytes.
    pub const MAX_LENGTH: usize = 63;

    /// The cluster of this name; `None` if it is not `[a-z0-9-]{1,63}`.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let fits = (1..=Self::MAX_LENGTH).contains(&name.len());
        (fits && name.bytes().all(legal)).then(|| Self(name.to_owned()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a certificate lets its holder be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The node of this name.
    Node(NodeId),
    /// A client; its name follows the same rule as a node's.
    Client(String),
}

impl Role {
    /// The URI name of this role in a certificate of the cluster.
    #[must_use]
    pub fn uri(&self, cluster: &ClusterName) -> String {
        match self {
            Self::Node(node) => format!("{SCHEME}{cluster}/node/{node}"),
            Self::Client(name) => format!("{SCHEME}{cluster}/client/{name}"),
        }
    }

    /// The cluster and the role of a URI name; `None` if it is not one of ours, to the letter.
    #[must_use]
    pub fn parse_uri(uri: &str) -> Option<(ClusterName, Self)> {
        let (cluster, path) = uri.strip_prefix(SCHEME)?.split_once('/')?;
        let (kind, name) = path.split_once('/')?;
        let name = NodeId::new(name)?;
        let role = match kind {
            "node" => Self::Node(name),
            "client" => Self::Client(name.as_str().to_owned()),
            _other => return None,
        };
        Some((ClusterName::new(cluster)?, role))
    }
}

const SCHEME: &str = "tollgate://";

/// A hash of what must be equal on all nodes for the cluster's life: name, slots and hash key. It
/// tells nothing of the hash key.
#[must_use]
pub fn cluster_fingerprint(cluster: &ClusterName, hash_key: &HashKey) -> u64 {
    let mut hasher = KeyHasher::new(hash_key);
    hasher.part(b"cluster");
    hasher.part(cluster.as_str().as_bytes());
    hasher.part(SLOT_COUNT.to_string().as_bytes());
    hasher.finish().high()
}

#[cfg(test)]
mod tests {
    use tollgate_limit::{HashKey, NodeId};

    use super::{ClusterName, Role, cluster_fingerprint};

    fn cluster(name: &str) -> ClusterName {
        ClusterName::new(name).unwrap()
    }

    #[test]
    fn a_cluster_name_is_lower_case_and_short() {
        let longest = "a".repeat(63);
        for legal in ["a", "prod-eu-1", "0", longest.as_str()] {
            assert!(ClusterName::new(legal).is_some(), "{legal}");
        }
        let too_long = "a".repeat(64);
        for illegal in ["", "Prod", "a_b", "a.b", "a/b", "ä", too_long.as_str()] {
            assert!(ClusterName::new(illegal).is_none(), "{illegal}");
        }
    }

    #[test]
    fn a_role_comes_back_from_its_uri() {
        let node = Role::Node(NodeId::new("n1").unwrap());
        let client = Role::Client("billing.v2".to_owned());
        assert_eq!(node.uri(&cluster("prod")), "tollgate://prod/node/n1");
        assert_eq!(
            client.uri(&cluster("prod")),
            "tollgate://prod/client/billing.v2"
        );
        for role in [node, client] {
            let parsed = Role::parse_uri(&role.uri(&cluster("prod")));
            assert_eq!(parsed, Some((cluster("prod"), role)));
        }
    }

    #[test]
    fn only_our_own_form_is_a_role() {
        for foreign in [
            "",
            "spiffe://prod/node/n1",
            "TOLLGATE://prod/node/n1",
            "tollgate://prod/admin/n1",
            "tollgate://prod/node/",
            "tollgate://prod/node/n1/",
            "tollgate://prod/node/n1?x",
            "tollgate://prod/node",
            "tollgate:///node/n1",
            "tollgate://Prod/node/n1",
            " tollgate://prod/node/n1",
        ] {
            assert_eq!(Role::parse_uri(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn the_fingerprint_tells_clusters_and_hash_keys_apart() {
        let key = HashKey::new([1; 16]);
        let one = cluster_fingerprint(&cluster("a"), &key);
        assert_eq!(one, cluster_fingerprint(&cluster("a"), &key));
        assert_ne!(one, cluster_fingerprint(&cluster("b"), &key));
        assert_ne!(
            one,
            cluster_fingerprint(&cluster("a"), &HashKey::new([2; 16]))
        );
    }
}
