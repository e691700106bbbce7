//! Whom the gateway trusts where it speaks TLS to the other side itself.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{CertificateError, ClientConfig, RootCertStore};

use crate::settings::GatewayError;

/// The authorities that this host trusts, and those that the operator adds.
#[derive(Debug)]
pub(super) struct Trust {
    config: Arc<ClientConfig>,
    is_empty: bool,
}

impl Trust {
    /// Reads them. A host that trusts nobody is no error before somebody is to be trusted.
    pub(super) fn open(
        provider: Arc<CryptoProvider>,
        trusted_ca: Option<&Path>,
    ) -> Result<Self, GatewayError> {
        let mut roots = RootCertStore::empty();
        let host = rustls_native_certs::load_native_certs();
        for error in &host.errors {
            tracing::warn!(%error, "Some authorities that this host trusts cannot be read");
        }
        roots.add_parsable_certificates(host.certs);
        if let Some(path) = trusted_ca {
            add_file(&mut roots, path)?;
        }
        Ok(Self {
            is_empty: roots.is_empty(),
            config: Arc::new(config(provider, roots)?),
        })
    }

    /// What to say to the other side, with these protocols to choose from.
    pub(super) fn config(&self, protocols: Vec<Vec<u8>>) -> Arc<ClientConfig> {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = protocols;
        Arc::new(config)
    }

    /// Says what went wrong with a host's TLS, in words.
    pub(super) fn explain(&self, name: &str, error: &io::Error) -> String {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
        let Some(rustls::Error::InvalidCertificate(problem)) = inner else {
            return format!("no TLS with `{name}`: {error}");
        };
        let problem = match problem {
            CertificateError::UnknownIssuer if self.is_empty => {
                "cannot be checked, for this server trusts no authority at all: install `ca-certificates`".to_owned()
            }
            CertificateError::UnknownIssuer => {
                "is by an authority that this server does not trust".to_owned()
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => "has expired".to_owned(),
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "is not valid yet".to_owned()
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "is for another name".to_owned()
            }
            other => format!("is no good: {other}"),
        };
        format!("the certificate of `{name}` {problem}")
    }
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), GatewayError> {
    let unfit = |source| GatewayError::File {
        path: path.to_owned(),
        source,
    };
    let text = std::fs::read(path).map_err(unfit)?;
    let bad = |problem: String| unfit(io::Error::new(io::ErrorKind::InvalidData, problem));
    let mut count = 0;
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| bad(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| bad(error.to_string()))?;
        count += 1;
    }
    match count {
        0 => Err(bad("it holds no certificate in PEM".to_owned())),
        _ => Ok(()),
    }
}

fn config(
    provider: Arc<CryptoProvider>,
    roots: RootCertStore,
) -> Result<ClientConfig, GatewayError> {
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| GatewayError::Authority(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}
