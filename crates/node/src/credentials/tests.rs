//! Tests of what is refused at start, and how it is named.

use tollgate_cluster::ClusterName;
use tollgate_limit::NodeId;

use super::{CredentialPem, Credentials, CredentialsError, Holder, Part};
use crate::{
    certificates::{AUTHORITY_SPAN, Authority, LEAF_SPAN, Pem, Validity},
    tls::RoleError,
};

const NOW: u64 = 1_800_000_000;

fn cluster(name: &str) -> ClusterName {
    ClusterName::new(name).unwrap()
}

fn node(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

fn authority() -> Authority {
    Authority::new(&cluster("prod"), Validity::new(NOW, AUTHORITY_SPAN)).unwrap()
}

fn issue(authority: &Authority, name: &str) -> Pem {
    authority
        .issue_node(&node(name), Validity::new(NOW, LEAF_SPAN))
        .unwrap()
}

fn read(
    authority: &Authority,
    leaf: &Pem,
    unix_seconds: u64,
) -> Result<Credentials, CredentialsError> {
    let authority = authority.pem().certificate;
    let pem = CredentialPem {
        authority: &authority,
        certificate: &leaf.certificate,
        key: &leaf.key,
    };
    let (cluster, node) = (cluster("prod"), node("n1"));
    Credentials::from_pem(
        &pem,
        &Holder {
            cluster: &cluster,
            node: &node,
            unix_seconds,
        },
    )
}

#[test]
fn good_credentials_are_taken() {
    let authority = authority();
    let credentials = read(&authority, &issue(&authority, "n1"), NOW).unwrap();
    assert_eq!(credentials.node().as_str(), "n1");
    assert_eq!(credentials.cluster().as_str(), "prod");
}

#[test]
fn whatever_is_wrong_is_named() {
    let authority = authority();
    let leaf = issue(&authority, "n1");
    let other_key = Pem {
        key: issue(&authority, "n1").key,
        ..leaf.clone()
    };
    assert_eq!(
        read(&authority, &other_key, NOW).unwrap_err(),
        CredentialsError::KeyMismatch
    );
    let late = NOW + LEAF_SPAN.as_secs() + 1;
    assert_eq!(
        read(&authority, &leaf, late).unwrap_err(),
        CredentialsError::Expired
    );
    let early = NOW - 301;
    assert_eq!(
        read(&authority, &leaf, early).unwrap_err(),
        CredentialsError::NotValidYet
    );
    let stranger = read(&self::authority(), &leaf, NOW).unwrap_err();
    assert!(
        matches!(stranger, CredentialsError::NotIssued { .. }),
        "{stranger}"
    );
    let (found, expected) = (node("n2"), node("n1"));
    let other_node = read(&authority, &issue(&authority, "n2"), NOW).unwrap_err();
    assert_eq!(other_node, CredentialsError::OtherNode { found, expected });
    let client = authority
        .issue_client("billing", Validity::new(NOW, LEAF_SPAN))
        .unwrap();
    let client = read(&authority, &client, NOW).unwrap_err();
    assert_eq!(
        client,
        CredentialsError::Client {
            name: "billing".to_owned()
        }
    );
    let no_role = read(&authority, &authority.pem(), NOW).unwrap_err();
    assert_eq!(no_role, CredentialsError::Role(RoleError::NoRole));
    let pretending = self::authority().pretending(cluster("test"));
    let other_cluster = read(&pretending, &issue(&pretending, "n1"), NOW).unwrap_err();
    let (found, expected) = (cluster("test"), cluster("prod"));
    assert_eq!(
        other_cluster,
        CredentialsError::OtherCluster { found, expected }
    );
}

#[test]
fn the_file_that_cannot_be_read_is_named() {
    let authority = authority();
    let leaf = issue(&authority, "n1");
    let part = |leaf: &Pem| {
        let refused = read(&authority, leaf, NOW).unwrap_err();
        let (CredentialsError::Unreadable { part, .. } | CredentialsError::TooMany { part }) =
            refused
        else {
            panic!("{refused}");
        };
        part
    };
    let nonsense = "nonsense".to_owned();
    assert_eq!(
        part(&Pem {
            certificate: nonsense.clone(),
            ..leaf.clone()
        }),
        Part::Certificate
    );
    assert_eq!(
        part(&Pem {
            key: nonsense,
            ..leaf.clone()
        }),
        Part::Key
    );
    let many = leaf.certificate.repeat(17);
    assert_eq!(
        part(&Pem {
            certificate: many,
            ..leaf
        }),
        Part::Certificate
    );
}

#[test]
fn secrets_outlive_a_restart_and_differ_by_purpose_and_key() {
    let authority = authority();
    let leaf = issue(&authority, "n1");
    let credentials = read(&authority, &leaf, NOW).unwrap();
    let restarted = read(&authority, &leaf, NOW + 5).unwrap();
    assert_eq!(credentials.secret(b"a"), restarted.secret(b"a"));
    assert_ne!(credentials.secret(b"a"), credentials.secret(b"b"));
    let other = read(&authority, &issue(&authority, "n1"), NOW).unwrap();
    assert_ne!(credentials.secret(b"a"), other.secret(b"a"));
}
