//! `tollgate certs`: a cluster's authority and secrets, and the certificates of nodes and clients.
//!
//! Invariant: no file is overwritten, and keys are readable by their owner alone.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use rand::{TryRng as _, rngs::SysRng};
use tollgate_cluster::ClusterName;
use tollgate_limit::NodeId;
use tollgate_node::{
    TokioClock,
    certificates::{AUTHORITY_SPAN, Authority, IssueError, LEAF_SPAN, Pem, Validity},
};

use super::{
    Exit, Failure,
    files::{self, Readers},
};
use crate::{
    arguments::{CertsInitArguments, CertsIssueArguments},
    output,
};

/// The authority's certificate in its folder.
pub(super) const AUTHORITY_CERTIFICATE: &str = "authority.pem";
/// The authority's key in its folder.
pub(super) const AUTHORITY_KEY: &str = "authority.key";
/// The cluster's secret for hashing keys.
pub(super) const HASH_KEY: &str = "hash.key";
/// The cluster's file.
pub(super) const CLUSTER_FILE: &str = "cluster.toml";

/// All that belongs to a new cluster.
const CLUSTER_FILES: [&str; 4] = [AUTHORITY_CERTIFICATE, AUTHORITY_KEY, HASH_KEY, CLUSTER_FILE];
/// The shortest that a certificate may be valid.
const MIN_SPAN: Duration = Duration::from_secs(1);

pub(super) fn init(arguments: &CertsInitArguments) -> Result<Exit, Failure> {
    let cluster = ClusterName::new(&arguments.cluster).ok_or_else(|| {
        let form = "1 to 63 characters of a-z, 0-9 and '-'";
        Failure::Usage(format!(
            "{:?} is not a cluster name; {form}",
            arguments.cluster
        ))
    })?;
    check_span(arguments.valid_for)?;
    make_cluster(&arguments.out, &cluster, arguments.valid_for)?;
    for name in CLUSTER_FILES {
        output::line(arguments.out.join(name).display())?;
    }
    output::note(
        "authority.key makes members: keep it off the nodes. hash.key and cluster.toml go to every node.",
    );
    Ok(Exit::Done)
}

/// Writes a new authority, hash key and cluster file.
pub(super) fn make_cluster(
    folder: &Path,
    cluster: &ClusterName,
    valid_for: Option<Duration>,
) -> Result<Authority, Failure> {
    files::make_folder(folder)?;
    files::refuse_existing(CLUSTER_FILES.iter().map(|name| folder.join(name)))?;
    let authority = Authority::new(cluster, validity(valid_for.unwrap_or(AUTHORITY_SPAN)));
    let authority = authority.map_err(|error| failed(&error))?;
    let Pem { certificate, key } = authority.pem();
    files::write_new(&folder.join(AUTHORITY_KEY), &key, Readers::Owner)?;
    files::write_new(
        &folder.join(AUTHORITY_CERTIFICATE),
        &certificate,
        Readers::Anyone,
    )?;
    files::write_new(
        &folder.join(HASH_KEY),
        &format!("{}\n", hash_key()?),
        Readers::Owner,
    )?;
    let text = format!("name = \"{cluster}\"\nhash_key_file = \"{HASH_KEY}\"\n");
    files::write_new(&folder.join(CLUSTER_FILE), &text, Readers::Anyone)?;
    Ok(authority)
}

pub(super) fn issue(arguments: &CertsIssueArguments) -> Result<Exit, Failure> {
    check_span(arguments.valid_for)?;
    let authority = Authority::from_pem(&Pem {
        certificate: files::read(&arguments.authority.join(AUTHORITY_CERTIFICATE))?,
        key: files::read(&arguments.authority.join(AUTHORITY_KEY))?,
    });
    let authority = authority.map_err(|error| failed(&error))?;
    let validity = validity(arguments.valid_for.unwrap_or(LEAF_SPAN));
    let (name, pem) = match (&arguments.node, &arguments.client) {
        (Some(name), _) => (name, issue_node(&authority, name, validity)?),
        (None, Some(name)) => {
            let pem = authority.issue_client(name, validity);
            (name, pem.map_err(|error| failed(&error))?)
        }
        (None, None) => {
            return Err(Failure::Usage(
                "write --node ID or --client NAME".to_owned(),
            ));
        }
    };
    for file in write_pem(&arguments.out, name, &pem)? {
        output::line(file.display())?;
    }
    Ok(Exit::Done)
}

/// Issues a node's certificate, valid for a year, and writes it and its key.
pub(super) fn make_node(authority: &Authority, folder: &Path, name: &str) -> Result<(), Failure> {
    let pem = issue_node(authority, name, validity(LEAF_SPAN))?;
    write_pem(folder, name, &pem).map(drop)
}

/// Issues a client's certificate, valid for a year, and writes it and its key.
pub(super) fn make_client(authority: &Authority, folder: &Path, name: &str) -> Result<(), Failure> {
    let pem = authority.issue_client(name, validity(LEAF_SPAN));
    write_pem(folder, name, &pem.map_err(|error| failed(&error))?).map(drop)
}

fn issue_node(authority: &Authority, name: &str, validity: Validity) -> Result<Pem, Failure> {
    let node = NodeId::new(name).ok_or_else(|| {
        let form = "1 to 64 characters of A-Z, a-z, 0-9, '.', '_' and '-'";
        Failure::Usage(format!("{name:?} is not a node id; {form}"))
    })?;
    authority
        .issue_node(&node, validity)
        .map_err(|error| failed(&error))
}

fn write_pem(folder: &Path, name: &str, pem: &Pem) -> Result<[PathBuf; 2], Failure> {
    files::make_folder(folder)?;
    let certificate = folder.join(format!("{name}.pem"));
    let key = folder.join(format!("{name}.key"));
    files::refuse_existing([&certificate, &key])?;
    files::write_new(&key, &pem.key, Readers::Owner)?;
    files::write_new(&certificate, &pem.certificate, Readers::Anyone)?;
    Ok([certificate, key])
}

/// Refuses a certificate that would have expired when it is made.
fn check_span(valid_for: Option<Duration>) -> Result<(), Failure> {
    match valid_for {
        Some(span) if span < MIN_SPAN => Err(Failure::Usage(format!(
            "--valid-for: a certificate is valid for whole seconds; write {} s or longer, such as 90d",
            MIN_SPAN.as_secs()
        ))),
        Some(_) | None => Ok(()),
    }
}

fn validity(span: Duration) -> Validity {
    Validity::new(TokioClock::system_unix_seconds(), span)
}

/// A new hash key, as 32 hexadecimal digits.
fn hash_key() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    let filled = SysRng.try_fill_bytes(&mut bytes);
    filled.map_err(|error| Failure::Runtime(format!("the system has no randomness: {error}")))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

fn failed(error: &IssueError) -> Failure {
    match error {
        IssueError::Failed(_) => Failure::Runtime(error.to_string()),
        IssueError::AuthorityKey(_)
        | IssueError::AuthorityCertificate(_)
        | IssueError::AuthorityMismatch
        | IssueError::ClientName => Failure::Usage(error.to_string()),
    }
}
