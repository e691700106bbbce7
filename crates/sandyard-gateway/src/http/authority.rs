//! The installation's own certificate authority: two files, the key first and everything else from it.
//!
//! The name in the certificate is made from the key, and so is what signs. A certificate that is made twice is therefore as good
//! as one: whichever server comes first, both sign what the same certificate vouches for.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData,
};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, RootCertStore};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::certificates::{self, DAY};
use super::files::{as_text, place, read, reread, unusable};
use crate::settings::GatewayError;

const KEY_FILE: &str = "ca.key";
const CERTIFICATE_FILE: &str = "ca.pem";

/// How long the certificate lasts.
const VALIDITY: Duration = DAY.saturating_mul(3653);

/// It is made anew, with the same key, when it would not last this long.
const MARGIN: Duration = DAY.saturating_mul(30);

/// The authority, ready to sign.
pub(super) struct Authority {
    /// Its key and name.
    pub(super) issuer: Issuer<'static, KeyPair>,
    /// Its certificate.
    pub(super) pem: String,
}

impl Authority {
    /// Opens the authority of a folder, made when missing. Any number of servers may do so at once.
    pub(super) fn open(
        provider: &Arc<CryptoProvider>,
        folder: &Path,
    ) -> Result<Self, GatewayError> {
        let mut builder = fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(folder);
        made.map_err(|source| unusable(folder, source))?;
        let (key_path, pem_path) = (folder.join(KEY_FILE), folder.join(CERTIFICATE_FILE));
        let key = open_key(provider, &key_path)?;
        let params = params(provider, &key)?;
        let pem = match read(&pem_path)? {
            Some(pem) => pem,
            None => {
                let pem = params.self_signed(&key).map_err(unable)?.pem();
                place(provider, &pem_path, pem.as_bytes(), 0o644, false)?;
                reread(&pem_path)?
            }
        };
        let mut authority = Self {
            issuer: Issuer::new(params.clone(), key),
            pem: as_text(&pem_path, pem)?,
        };
        if authority.is_ending(provider, &pem_path)? {
            let pem = params
                .self_signed(authority.issuer.key())
                .map_err(unable)?
                .pem();
            place(provider, &pem_path, pem.as_bytes(), 0o644, true)?;
            authority.pem = as_text(&pem_path, reread(&pem_path)?)?;
        }
        Ok(authority)
    }

    /// Checks that the certificate vouches for what the key signs, and says whether it is about to expire.
    fn is_ending(&self, provider: &Arc<CryptoProvider>, path: &Path) -> Result<bool, GatewayError> {
        let name = path.display();
        let foreign = |_| {
            GatewayError::Authority(format!(
                "`{name}` is not the certificate of `{KEY_FILE}` beside it: remove the former, and it is made again"
            ))
        };
        let certificate = CertificateDer::from_pem_slice(self.pem.as_bytes());
        let certificate = certificate.map_err(|error| {
            GatewayError::Authority(format!("`{name}` holds no certificate: {error}"))
        })?;
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).map_err(foreign)?;
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider.clone());
        let verifier = verifier
            .build()
            .map_err(|error| GatewayError::Authority(error.to_string()))?;
        let tried = ServerName::try_from("sandyard.invalid").expect("that is a name");
        let leaf = certificates::sign(
            provider,
            &self.issuer,
            "sandyard.invalid",
            self.issuer.key(),
        )?;
        let now = UnixTime::now();
        let checked = verifier.verify_server_cert(leaf.der(), &[], &tried, &[], now);
        checked.map_err(foreign)?;
        // A root's dates are nobody's business for this verifier, but it looks at those of what it takes for a server's.
        let later = UnixTime::since_unix_epoch(Duration::from_secs(now.as_secs()) + MARGIN);
        let checked = verifier.verify_server_cert(&certificate, &[], &tried, &[], later);
        Ok(matches!(
            checked,
            Err(rustls::Error::InvalidCertificate(
                CertificateError::Expired | CertificateError::ExpiredContext { .. }
            ))
        ))
    }
}

fn open_key(provider: &CryptoProvider, path: &Path) -> Result<KeyPair, GatewayError> {
    if read(path)?.is_none() {
        let key = KeyPair::generate().map_err(unable)?;
        let pem = Zeroizing::new(key.serialize_pem());
        place(provider, path, pem.as_bytes(), 0o600, false)?;
    }
    let pem = reread(path)?;
    let mode = fs::metadata(path)
        .map_err(|source| unusable(path, source))?
        .permissions()
        .mode();
    if mode & 0o077 != 0 {
        tracing::warn!(path = %path.display(), "Others could read the authority's key; now they cannot");
        let closed = fs::set_permissions(path, Permissions::from_mode(0o600));
        closed.map_err(|source| unusable(path, source))?;
    }
    let bad = |problem: String| unusable(path, io::Error::new(io::ErrorKind::InvalidData, problem));
    let pem = std::str::from_utf8(&pem).map_err(|error| bad(error.to_string()))?;
    KeyPair::from_pem(pem).map_err(|error| bad(format!("it holds no key: {error}")))
}

/// What its certificate says, all of it made from the key but for the dates.
pub(super) fn params(
    provider: &CryptoProvider,
    key: &KeyPair,
) -> Result<CertificateParams, GatewayError> {
    let mut params = certificates::params(provider, VALIDITY)?;
    let digest = Sha256::digest(key.subject_public_key_info());
    let short = sandyard_core::random::hex(&digest[..4]);
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, format!("Sandyard gateway {short}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    Ok(params)
}

fn unable(error: rcgen::Error) -> GatewayError {
    GatewayError::Authority(error.to_string())
}
