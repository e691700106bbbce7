//! The certificate of TLS listeners: the operator's, or one made here.

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

use super::own_names;
use super::self_signed::{self, Names, SelfSignedError};

/// Where a certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateSource {
    /// The operator has one.
    Files {
        /// The chain, in PEM, our own certificate first.
        certificate: PathBuf,
        /// Its key, in PEM.
        key: PathBuf,
    },
    /// One is made here and kept.
    SelfSigned {
        /// Where it is kept.
        folder: PathBuf,
        /// Its names get this domain and everything one level below.
        domain: String,
        /// Its addresses.
        addresses: Vec<IpAddr>,
    },
}

/// A certificate that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("cannot read `{path}`")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    /// The chain has nothing in it.
    #[error("`{path}` holds no certificate")]
    Empty {
        /// Which.
        path: PathBuf,
    },
    /// Certificate and key do not go together, or are of a kind that cannot be used.
    #[error("the certificate in `{path}` cannot be used with its key")]
    Unusable {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: rustls::Error,
    },
    /// Making one failed.
    #[error("cannot make a certificate")]
    Make(#[from] SelfSignedError),
}

/// What TLS listeners need. Cheap to clone.
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

/// The certificate in force; replaced by a reload while connections go on.
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
    /// Reads or makes a certificate; `now_ms` is for the age of one made here.
    ///
    /// # Errors
    ///
    /// When it cannot be read, made or used.
    pub fn open(source: CertificateSource, now_ms: i64) -> Result<Self, CertificateError> {
        let key = read(&source, &sandyard_tls::crypto_provider(), now_ms)?;
        let current = Arc::new(Current(RwLock::new(Arc::new(key))));
        let mut server =
            sandyard_tls::server_builder().with_cert_resolver(Arc::clone(&current) as _);
        server.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            server: Arc::new(server),
            current,
            source,
        })
    }

    /// Reads the certificate again, for connections from now on. When that fails the old one stays.
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

    /// What clients must be told to trust; none if the operator's certificate is one they know.
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
            // Who listens everywhere is found by every name of the host.
            let own = match addresses.iter().any(IpAddr::is_unspecified) {
                true => own_names::own_names(),
                false => Vec::new(),
            };
            let names = Names::new(domain, addresses, own);
            let (certificate, key) = self_signed::find_or_make(folder, &names, now_ms)?;
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
