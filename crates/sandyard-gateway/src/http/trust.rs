//! Trusted roots for the gateway's own TLS connections.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::{CertificateError, ClientConfig};
use sandyard_tls::roots;

use crate::settings::GatewayError;

/// The root certificates that this host trusts, and those that the operator adds.
#[derive(Debug)]
pub(super) struct Trust {
    config: ClientConfig,
    is_empty: bool,
}

impl Trust {
    /// Reads the roots. A host without any is no error: it may never need one.
    pub(super) fn open<'a>(
        files: impl IntoIterator<Item = Option<&'a Path>>,
    ) -> Result<Self, GatewayError> {
        let mut roots = roots::host_roots();
        for path in files.into_iter().flatten() {
            let failed = |source| GatewayError::File {
                path: path.to_owned(),
                source,
            };
            let pem = std::fs::read(path).map_err(failed)?;
            roots::add_pem(&mut roots, &pem)
                .map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidData, error)))?;
        }
        Ok(Self {
            is_empty: roots.is_empty(),
            config: roots::client_config(roots),
        })
    }

    /// TLS settings for a connection to a host, with these protocols to choose from.
    pub(super) fn config(&self, protocols: Vec<Vec<u8>>) -> Arc<ClientConfig> {
        let mut config = self.config.clone();
        config.alpn_protocols = protocols;
        Arc::new(config)
    }

    /// Describes why TLS with a host failed.
    pub(super) fn explain(&self, name: &str, error: &io::Error) -> String {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
        let Some(rustls::Error::InvalidCertificate(problem)) = inner else {
            return format!("the TLS handshake with `{name}` failed: {error}");
        };
        let problem = match problem {
            CertificateError::UnknownIssuer if self.is_empty => {
                "cannot be verified, because this server trusts no certificates: install `ca-certificates` on it".to_owned()
            }
            CertificateError::UnknownIssuer => {
                "is signed by an authority that this server does not trust".to_owned()
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => "has expired".to_owned(),
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "is not valid yet".to_owned()
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "is for another name".to_owned()
            }
            other => format!("is not valid: {other}"),
        };
        format!("the certificate of `{name}` {problem}")
    }
}
