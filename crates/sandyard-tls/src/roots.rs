//! Trusted root certificates, and client settings that use them.

use rustls::client::WantsClientCert;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore};

use crate::{PROTOCOL_VERSIONS, crypto_provider};

/// PEM text that cannot be used as trusted roots.
#[derive(Debug, thiserror::Error)]
pub enum RootsError {
    /// The text is not valid PEM.
    #[error("the text is not valid PEM: {0}")]
    Pem(pem::Error),
    /// A certificate cannot be a root.
    #[error("a certificate cannot be used: {0}")]
    Certificate(rustls::Error),
    /// The text has no certificate.
    #[error("there is no certificate in PEM format")]
    Empty,
}

/// Reads the roots that this host trusts. `SSL_CERT_FILE` and `SSL_CERT_DIR` replace the usual locations.
///
/// Roots that cannot be read or used are skipped: the others still count.
pub fn host_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let host = rustls_native_certs::load_native_certs();
    for error in &host.errors {
        tracing::warn!(%error, "Some certificates that this host trusts cannot be read");
    }
    roots.add_parsable_certificates(host.certs);
    roots
}

/// Adds all certificates of a PEM text to trusted roots.
///
/// # Errors
///
/// [`RootsError`] when one of them cannot be used, or there is none.
pub fn add_pem(roots: &mut RootCertStore, pem: &[u8]) -> Result<(), RootsError> {
    let mut is_empty = true;
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(RootsError::Pem)?;
        roots.add(certificate).map_err(RootsError::Certificate)?;
        is_empty = false;
    }
    if is_empty {
        return Err(RootsError::Empty);
    }
    Ok(())
}

/// Reads the roots that this host trusts, and adds the certificates of a PEM text, if one is given.
///
/// # Errors
///
/// As [`add_pem`].
pub fn host_roots_and(pem: Option<&[u8]>) -> Result<RootCertStore, RootsError> {
    let mut roots = host_roots();
    if let Some(pem) = pem {
        add_pem(&mut roots, pem)?;
    }
    Ok(roots)
}

/// Begins the settings of a TLS client that trusts these roots.
pub fn client_builder(roots: RootCertStore) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    ClientConfig::builder_with_provider(crypto_provider())
        .with_safe_default_protocol_versions()
        .expect(PROTOCOL_VERSIONS)
        .with_root_certificates(roots)
}

/// Settings of a TLS client that trusts these roots and has no certificate of its own.
pub fn client_config(roots: RootCertStore) -> ClientConfig {
    client_builder(roots).with_no_client_auth()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pem_text_must_hold_usable_certificates() {
        let mut roots = RootCertStore::empty();
        let empty = add_pem(&mut roots, b"no certificate");
        assert!(matches!(empty, Err(RootsError::Empty)), "{empty:?}");
        let cut_short = add_pem(&mut roots, b"-----BEGIN CERTIFICATE-----\nAAAA\n");
        assert!(
            matches!(cut_short, Err(RootsError::Pem(_))),
            "{cut_short:?}"
        );
        let unusable = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let unusable = add_pem(&mut roots, unusable);
        assert!(
            matches!(unusable, Err(RootsError::Certificate(_))),
            "{unusable:?}"
        );
        assert!(roots.is_empty());
    }
}
