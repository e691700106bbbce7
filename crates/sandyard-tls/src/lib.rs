//! TLS for every crate: which roots to trust, certificate authorities on disk, and the certificates they sign.
//!
//! - [`roots`]: the host's trusted roots, more from a PEM file, and client settings that use them
//! - [`authority`]: a certificate authority kept in a folder
//! - [`certificate`]: what a certificate says
//! - [`files`]: files that are written whole or not at all
//!
//! This crate opens no connections and knows nothing of sandboxes.
#![forbid(unsafe_code)]

pub mod authority;
pub mod certificate;
pub mod files;
pub mod roots;

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::server::WantsServerCert;
use rustls::{ConfigBuilder, ServerConfig};

pub use authority::{Authority, AuthorityError, AuthoritySpec};
pub use certificate::ServerCertificateSpec;
pub use roots::RootsError;

const PROTOCOL_VERSIONS: &str = "ring has cipher suites for TLS 1.2 and 1.3";

/// The cryptography that all TLS of this program uses.
pub fn crypto_provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Begins the settings of a TLS server that asks for no client certificate.
pub fn server_builder() -> ConfigBuilder<ServerConfig, WantsServerCert> {
    ServerConfig::builder_with_provider(crypto_provider())
        .with_safe_default_protocol_versions()
        .expect(PROTOCOL_VERSIONS)
        .with_no_client_auth()
}
