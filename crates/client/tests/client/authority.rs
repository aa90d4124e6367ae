//! A certificate authority of a test cluster.

use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::RootCertStore;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tollgate_client::{Credentials, Trust};

pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let certificate = params.self_signed(&key).unwrap();
        Self {
            certificate: certificate.der().clone(),
            pem: certificate.pem(),
            issuer: Issuer::new(params, key),
        }
    }

    /// What a client trusts.
    pub(crate) fn trust(&self) -> Trust {
        Trust::from_pem(self.pem.as_bytes()).unwrap()
    }

    /// What a node trusts.
    pub(crate) fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        roots
    }

    /// A certificate with these URI names, good for either side of a connection.
    pub(crate) fn issue(&self, uris: &[&str]) -> Credentials {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["n1".to_owned()]).unwrap();
        let names = uris
            .iter()
            .map(|uri| SanType::URI((*uri).try_into().unwrap()));
        params.subject_alt_names.extend(names);
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Credentials {
            chain: vec![certificate.der().clone()],
            key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        }
    }

    /// A node's certificate.
    pub(crate) fn node(&self) -> Credentials {
        self.issue(&["tollgate://test/node/n1"])
    }
}
