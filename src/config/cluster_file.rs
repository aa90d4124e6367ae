//! `cluster.toml`: what is equal on every node for the cluster's life.

use std::path::Path;

use serde::Deserialize;
use tollgate_cluster::ClusterName;
use tollgate_limit::HashKey;
use toml::Spanned;

use super::{
    error::ConfigError,
    source::{Source, read_text},
};

/// The validated `cluster.toml`.
#[derive(Clone, Debug)]
pub struct ClusterFile {
    /// The cluster's name.
    pub name: ClusterName,
    /// Its secret for hashing keys.
    pub hash_key: HashKey,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCluster {
    name: Spanned<String>,
    hash_key_file: Spanned<String>,
}

impl ClusterFile {
    /// Reads the file and the hash key that it names.
    ///
    /// # Errors
    /// [`ConfigError`]: the operator's fault.
    pub fn load(file: &Path) -> Result<Self, ConfigError> {
        let source = Source::read(file)?;
        let raw: RawCluster = source.parse()?;
        let name = ClusterName::new(raw.name.get_ref()).ok_or_else(|| {
            let wrong = format!("{:?} is not a cluster name", raw.name.get_ref());
            let right = "1 to 63 characters of a-z, 0-9 and '-'";
            source.mistake(&raw.name.span(), "name", wrong, right)
        })?;
        let path = source.resolve(raw.hash_key_file.get_ref());
        let text = read_text(&path)?;
        let hash_key = parse_hash_key(text.trim()).ok_or_else(|| {
            let wrong = format!("{} does not hold a hash key", path.display());
            let right = "32 hexadecimal digits, as `tollgate certs init` writes them";
            source.mistake(&raw.hash_key_file.span(), "hash_key_file", wrong, right)
        })?;
        Ok(Self { name, hash_key })
    }
}

/// Reads 32 hexadecimal digits.
fn parse_hash_key(text: &str) -> Option<HashKey> {
    let legal = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u128::from_str_radix(text, 16).ok()?;
    legal.then(|| HashKey::new(number.to_be_bytes()))
}
