//! Tests of making certificates.

use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use tollgate_cluster::{ClusterName, Role};
use tollgate_limit::NodeId;
use x509_parser::{certificate::X509Certificate, extensions::GeneralName, prelude::FromDer as _};

use super::{AUTHORITY_SPAN, Authority, IssueError, LEAF_SPAN, Pem, Validity};
use crate::tls;

const NOW: u64 = 1_800_000_000;

fn authority() -> Authority {
    let cluster = ClusterName::new("prod").unwrap();
    Authority::new(&cluster, Validity::new(NOW, AUTHORITY_SPAN)).unwrap()
}

fn leaf() -> Validity {
    Validity::new(NOW, LEAF_SPAN)
}

fn der(pem: &Pem) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.certificate.as_bytes()).unwrap()
}

fn dns_names(pem: &Pem) -> Vec<String> {
    let der = der(pem);
    let (_, parsed) = X509Certificate::from_der(&der).unwrap();
    let names = &parsed
        .subject_alternative_name()
        .unwrap()
        .unwrap()
        .value
        .general_names;
    let dns = names.iter().filter_map(|name| {
        let GeneralName::DNSName(name) = name else {
            return None;
        };
        Some((*name).to_owned())
    });
    dns.collect()
}

#[test]
fn roles_stand_in_the_certificates() {
    let authority = authority();
    let node = NodeId::new("n1").unwrap();
    let issued = authority.issue_node(&node, leaf()).unwrap();
    let (cluster, role) = tls::role_of(&[der(&issued)]).unwrap();
    assert_eq!((cluster.as_str(), role), ("prod", Role::Node(node)));
    let issued = authority.issue_client("billing", leaf()).unwrap();
    let (_, role) = tls::role_of(&[der(&issued)]).unwrap();
    assert_eq!(role, Role::Client("billing".to_owned()));
}

#[test]
fn only_legal_dns_names_are_given() {
    let authority = authority();
    let names = |node: &str| {
        let node = NodeId::new(node).unwrap();
        dns_names(&authority.issue_node(&node, leaf()).unwrap())
    };
    assert_eq!(names("n1.eu"), ["n1.eu", "prod"]);
    assert_eq!(names("prod"), ["prod"]);
    for illegal in ["n_1", "-n", "n-", "a..b", "10.0.0.1"] {
        assert_eq!(names(illegal), ["prod"], "{illegal}");
    }
}

#[test]
fn a_client_is_no_server() {
    let issued = authority().issue_client("billing", leaf()).unwrap();
    let der = der(&issued);
    let (_, parsed) = X509Certificate::from_der(&der).unwrap();
    let usage = parsed.extended_key_usage().unwrap().unwrap().value;
    assert!(usage.client_auth && !usage.server_auth);
}

#[test]
fn the_span_is_the_one_that_was_asked_for() {
    let issued = authority().issue_client("billing", leaf()).unwrap();
    let der = der(&issued);
    let (_, parsed) = X509Certificate::from_der(&der).unwrap();
    let validity = parsed.validity();
    assert_eq!(
        validity.not_before.timestamp(),
        i64::try_from(NOW).unwrap() - 300
    );
    let end = NOW + LEAF_SPAN.as_secs();
    assert_eq!(validity.not_after.timestamp(), i64::try_from(end).unwrap());
    let endless = Validity::new(u64::MAX, AUTHORITY_SPAN);
    authority().issue_client("billing", endless).unwrap();
}

#[test]
fn all_certificates_of_a_name_have_one_length() {
    let authority = authority();
    let node = NodeId::new("n1").unwrap();
    let length = || der(&authority.issue_node(&node, leaf()).unwrap()).len();
    let first = length();
    assert!((0..20).all(|_| length() == first));
}

#[test]
fn an_authority_comes_back_from_its_files() {
    let pem = authority().pem();
    let again = Authority::from_pem(&pem).unwrap();
    assert_eq!(again.cluster().as_str(), "prod");
    assert_eq!(again.pem(), pem);
    let other = authority().pem();
    let mixed = Pem {
        key: other.key,
        ..pem.clone()
    };
    assert_eq!(
        Authority::from_pem(&mixed).unwrap_err(),
        IssueError::AuthorityMismatch
    );
    let no_key = Pem {
        key: "nonsense".to_owned(),
        ..pem.clone()
    };
    assert!(matches!(
        Authority::from_pem(&no_key),
        Err(IssueError::AuthorityKey(_))
    ));
    let no_certificate = Pem {
        certificate: "nonsense".to_owned(),
        ..pem
    };
    let refused = Authority::from_pem(&no_certificate);
    assert!(matches!(refused, Err(IssueError::AuthorityCertificate(_))));
    let leaf = authority().issue_client("billing", leaf()).unwrap();
    assert!(matches!(
        Authority::from_pem(&leaf),
        Err(IssueError::AuthorityCertificate(_))
    ));
}

#[test]
fn a_clients_name_must_be_legal() {
    for illegal in ["", "a/b", "ä", &"a".repeat(65)] {
        let refused = authority().issue_client(illegal, leaf());
        assert_eq!(refused.unwrap_err(), IssueError::ClientName);
    }
}

#[test]
fn a_key_is_not_shown() {
    let pem = authority().pem();
    assert!(!format!("{pem:?}").contains("PRIVATE"));
}
