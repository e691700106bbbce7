//! The certificate of TLS listeners: the operator's, or a self-signed one.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::host_names::host_names;
use super::self_signed::{self, Names, SelfSignedError};

/// The source of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateSource {
    /// Files of the operator.
    Files {
        /// The chain in PEM, the server's own certificate first.
        certificate: PathBuf,
        /// The key of the server's certificate, in PEM.
        key: PathBuf,
    },
    /// A certificate that the server creates and keeps.
    SelfSigned {
        /// Folder of the certificate.
        folder: PathBuf,
        /// The certificate is valid for this domain and all names one level below.
        domain: String,
        /// The certificate is valid for these addresses.
        addresses: Vec<IpAddr>,
    },
}

/// A certificate that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The certificate or key cannot be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    /// The file of the chain is empty.
    #[error("`{path}` contains no certificate")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Certificate and key do not match, or are of an unsupported kind.
    #[error("the certificate in `{path}` cannot be used with its key")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: rustls::Error,
    },
    /// A self-signed certificate cannot be created.
    #[error("cannot create a certificate")]
    Make(#[from] SelfSignedError),
}

/// The TLS configuration of listeners. Cheap to clone.
#[derive(Clone)]
pub struct TlsConfig {
    server: Arc<ServerConfig>,
    current: Arc<Current>,
    source: CertificateSource,
}

impl fmt::Debug for TlsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsConfig")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

/// The current certificate. A reload replaces it; open connections keep theirs.
#[derive(Debug)]
struct Current(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(
            &self.0.read().unwrap_or_else(PoisonError::into_inner),
        ))
    }
}

impl TlsConfig {
    /// Reads or creates a certificate; `now_ms` determines the age of a self-signed one.
    ///
    /// # Errors
    ///
    /// When it cannot be read, created or used.
    pub fn open(source: CertificateSource, now_ms: i64) -> Result<Self, CertificateError> {
        let key = read(&source, &sandyard_tls::crypto_provider(), now_ms)?;
        let current = Arc::new(Current(RwLock::new(Arc::new(key))));
        let mut server =
            sandyard_tls::server_builder().with_cert_resolver(Arc::clone(&current) as _);
        server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            server: Arc::new(server),
            current,
            source,
        })
    }

    /// Reads the certificate again, for new connections. If that fails, the old one stays.
    ///
    /// # Errors
    ///
    /// As [`TlsConfig::open`].
    pub fn reload(&self, now_ms: i64) -> Result<(), CertificateError> {
        let key = read(&self.source, self.server.crypto_provider(), now_ms)?;
        *self
            .current
            .0
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Arc::new(key);
        Ok(())
    }

    /// The certificate that clients must trust; none if the operator provides the server's.
    pub fn to_trust(&self) -> Option<PathBuf> {
        match &self.source {
            CertificateSource::Files { .. } => None,
            CertificateSource::SelfSigned { folder, .. } => Some(self_signed::authority(folder)),
        }
    }

    pub(super) fn server(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.server)
    }
}

fn read(
    source: &CertificateSource,
    provider: &CryptoProvider,
    now_ms: i64,
) -> Result<CertifiedKey, CertificateError> {
    match source {
        CertificateSource::Files { certificate, key } => read_files(certificate, key, provider),
        CertificateSource::SelfSigned {
            folder,
            domain,
            addresses,
        } => {
            // A server that listens on all addresses is reached by every name of the host.
            let own = match addresses.iter().any(IpAddr::is_unspecified) {
                true => host_names(),
                false => Vec::new(),
            };
            let names = Names::new(domain, addresses, own);
            let (certificate, key) = self_signed::find_or_create(folder, &names, now_ms)?;
            read_files(&certificate, &key, provider)
        }
    }
}

fn read_files(
    certificate: &Path,
    key: &Path,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, CertificateError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| CertificateError::Read { path, source }
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(failed(certificate))?;
    if chain.is_empty() {
        return Err(CertificateError::Empty {
            path: certificate.to_owned(),
        });
    }
    let key = PrivateKeyDer::from_pem_file(key).map_err(failed(key))?;
    CertifiedKey::from_der(chain, key, provider).map_err(|source| CertificateError::Unusable {
        path: certificate.to_owned(),
        source,
    })
}
