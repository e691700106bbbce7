//! Which servers are trusted: those the host trusts, and those whose certificate the caller names.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::Result;
use crate::error::ClientError;

/// Settings of TLS for one client. The host's certificates are only read when they are needed.
pub(crate) fn config(is_needed: bool, ca_pem: Option<&[u8]>) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    if is_needed {
        for certificate in rustls_native_certs::load_native_certs().certs {
            // A host may hold certificates that rustls cannot read; the rest still counts.
            let _ = roots.add(certificate);
        }
        if let Some(pem) = ca_pem {
            add_named(&mut roots, pem)?;
        }
        if roots.is_empty() {
            return Err(setup(
                "this host has no certificates to trust; name the server's with `ca_pem`",
            ));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| setup(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

fn add_named(roots: &mut RootCertStore, pem: &[u8]) -> Result<()> {
    let before = roots.len();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate =
            certificate.map_err(|error| setup(format!("reading the CA certificate: {error}")))?;
        roots
            .add(certificate)
            .map_err(|error| setup(format!("using the CA certificate: {error}")))?;
    }
    if roots.len() == before {
        return Err(setup("there is no certificate in the CA file"));
    }
    Ok(())
}

fn setup(problem: impl Into<String>) -> ClientError {
    ClientError::Setup {
        problem: problem.into(),
    }
}
