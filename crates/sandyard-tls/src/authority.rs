//! A certificate authority kept in a folder: the files `ca.key` and `ca.pem`.
//!
//! The key is made first, and the certificate from it. Several servers may open the same folder at the same time: each
//! may make a certificate, and all of them vouch for what the one key signs.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{Certificate, CertificateParams, Issuer, KeyPair, PublicKeyData};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, RootCertStore};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::certificate::{DAY_MS, ServerCertificateSpec, authority_params};
use crate::{crypto_provider, files};

/// The key's file name, in PEM.
pub const KEY_FILE: &str = "ca.key";
/// The certificate's file name, in PEM.
pub const CERTIFICATE_FILE: &str = "ca.pem";

/// How long an authority's certificate is valid, in days.
const VALID_DAYS: i64 = 3653;
/// The certificate is made again, with the same key, when it is valid for fewer days.
const RENEW_BEFORE_DAYS: i64 = 30;
/// A name to sign for when an authority is checked and may sign for any.
const PROBE_NAME: &str = "sandyard.invalid";

/// What an authority is for.
#[derive(Clone, Copy, Debug)]
pub struct AuthoritySpec<'a> {
    /// Its subject. `None`: `Sandyard gateway`, with a part of the key's digest.
    pub common_name: Option<&'a str>,
    /// The only host names and IP addresses it may sign for; empty: any. Who steals its key can pose as nobody else.
    pub permitted_names: &'a [String],
    /// When a new certificate is valid from, in milliseconds since 1970.
    pub made_ms: i64,
}

/// An authority that is ready to sign.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate_pem: String,
}

/// An authority that cannot be opened, or cannot sign.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// One of its files cannot be read or written.
    #[error("cannot use `{path}`")]
    File {
        /// The file.
        path: PathBuf,
        /// Why it cannot be used.
        #[source]
        source: io::Error,
    },
    /// The two files do not belong together.
    #[error(
        "`{path}` is not the certificate of `{KEY_FILE}` beside it: remove `{path}` and start again to have it made from the key"
    )]
    Mismatch {
        /// The certificate.
        path: PathBuf,
    },
    /// A certificate cannot be made, for example for a name that is not a host name.
    #[error("cannot make a certificate")]
    Generate(#[from] rcgen::Error),
    /// The kernel gave no random bytes.
    #[error("cannot read random bytes")]
    Random(#[source] io::Error),
}

impl Authority {
    /// Opens the authority of a folder at the time `now_ms`. Missing files are made.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or written, or the certificate is not the key's.
    pub fn open(
        folder: &Path,
        spec: AuthoritySpec<'_>,
        now_ms: i64,
    ) -> Result<Self, AuthorityError> {
        files::create_private_folder(folder).map_err(|source| unusable(folder, source))?;
        let path = folder.join(CERTIFICATE_FILE);
        let failed = |source| unusable(&path, source);
        let key = open_key(&folder.join(KEY_FILE))?;
        let params = spec.params(&key)?;
        if files::read(&path).map_err(failed)?.is_none() {
            let pem = params.self_signed(&key)?.pem();
            files::create(&path, pem.as_bytes(), files::PUBLIC).map_err(failed)?;
        }
        let mut authority = Self {
            issuer: Issuer::new(params.clone(), key),
            certificate_pem: fs::read_to_string(&path).map_err(failed)?,
        };
        if authority.is_expiring(&path, spec.permitted_names, now_ms)? {
            let pem = params.self_signed(authority.issuer.key())?.pem();
            files::replace(&path, pem.as_bytes(), files::PUBLIC).map_err(failed)?;
            authority.certificate_pem = fs::read_to_string(&path).map_err(failed)?;
        }
        Ok(authority)
    }

    /// The certificate that clients trust, in PEM.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// Signs a server's certificate.
    ///
    /// # Errors
    ///
    /// [`AuthorityError::Generate`] for a name that no certificate can have.
    pub fn sign(
        &self,
        spec: ServerCertificateSpec<'_>,
        key: &impl PublicKeyData,
    ) -> Result<Certificate, AuthorityError> {
        Ok(spec.params()?.signed_by(key, &self.issuer)?)
    }

    /// Checks that the certificate vouches for what the key signs, and says whether it expires soon.
    fn is_expiring(
        &self,
        path: &Path,
        permitted_names: &[String],
        now_ms: i64,
    ) -> Result<bool, AuthorityError> {
        let mismatch = || AuthorityError::Mismatch {
            path: path.to_owned(),
        };
        let certificate = CertificateDer::from_pem_slice(self.certificate_pem.as_bytes());
        let certificate = certificate
            .map_err(|error| unusable(path, io::Error::new(io::ErrorKind::InvalidData, error)))?;
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).map_err(|_| mismatch())?;
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), crypto_provider());
        let verifier = verifier.build().map_err(|_| mismatch())?;
        let mut names = permitted_names.iter().map(String::as_str);
        let name = names.find(|name| !name.starts_with('*'));
        let name = name.unwrap_or(PROBE_NAME).to_owned();
        let server = ServerName::try_from(name.clone()).map_err(|_| mismatch())?;
        let leaf = ServerCertificateSpec {
            common_name: &name,
            names: std::slice::from_ref(&name),
            now_ms,
            valid_days: 1,
        };
        let leaf = self.sign(leaf, self.issuer.key())?;
        let verify = |certificate: &CertificateDer<'_>, at_ms: i64| {
            let at = Duration::from_millis(at_ms.unsigned_abs());
            let at = UnixTime::since_unix_epoch(at);
            verifier.verify_server_cert(certificate, &[], &server, &[], at)
        };
        verify(leaf.der(), now_ms).map_err(|_| mismatch())?;
        // The verifier ignores the dates of a root, so here the root is presented as a server's certificate.
        let checked = verify(&certificate, now_ms + RENEW_BEFORE_DAYS * DAY_MS);
        Ok(matches!(
            checked,
            Err(rustls::Error::InvalidCertificate(
                CertificateError::Expired | CertificateError::ExpiredContext { .. }
            ))
        ))
    }
}

sandyard_core::debug_fields!(Authority);

impl AuthoritySpec<'_> {
    /// What the certificate says: the same for the same key and spec, but for its serial number.
    fn params(&self, key: &KeyPair) -> Result<CertificateParams, AuthorityError> {
        let digest = Sha256::digest(key.subject_public_key_info());
        let from_key = format!(
            "Sandyard gateway {}",
            sandyard_core::random::hex(&digest[..4])
        );
        let common_name = self.common_name.unwrap_or(&from_key);
        authority_params(common_name, self.permitted_names, self.made_ms, VALID_DAYS)
    }
}

fn open_key(path: &Path) -> Result<KeyPair, AuthorityError> {
    let failed = |source| unusable(path, source);
    if !path.try_exists().map_err(failed)? {
        let pem = Zeroizing::new(KeyPair::generate()?.serialize_pem());
        files::create(path, pem.as_bytes(), files::PRIVATE).map_err(failed)?;
    }
    let pem = Zeroizing::new(fs::read_to_string(path).map_err(failed)?);
    let mode = fs::metadata(path).map_err(failed)?.permissions().mode();
    if mode & 0o077 != 0 {
        tracing::warn!(path = %path.display(), "Other users could read the authority's key; restricted it to its owner");
        fs::set_permissions(path, Permissions::from_mode(files::PRIVATE)).map_err(failed)?;
    }
    KeyPair::from_pem(&pem).map_err(|error| {
        failed(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("it holds no private key: {error}"),
        ))
    })
}

fn unusable(path: &Path, source: io::Error) -> AuthorityError {
    AuthorityError::File {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    const NOW_MS: i64 = 1_800_000_000_000;
    const SPEC: AuthoritySpec<'static> = AuthoritySpec {
        common_name: None,
        permitted_names: &[],
        made_ms: NOW_MS,
    };

    fn open(folder: &Path) -> Result<Authority, AuthorityError> {
        Authority::open(folder, SPEC, NOW_MS)
    }

    fn key_pem(authority: &Authority) -> String {
        authority.issuer.key().serialize_pem()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn file_names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn the_files_are_made_once_and_only_the_owner_reads_the_key() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("a/b");
        let first = open(&folder).unwrap();
        assert_eq!(file_names(&folder), ["ca.key", "ca.pem"]);
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(mode(&folder.join("ca.key")), 0o600);
        assert_eq!(mode(&folder.join("ca.pem")), 0o644);
        let written = fs::read_to_string(folder.join("ca.pem")).unwrap();
        assert_eq!(written, first.certificate_pem());
        let second = open(&folder).unwrap();
        assert_eq!(first.certificate_pem(), second.certificate_pem());
    }

    #[test]
    fn a_key_that_others_could_read_is_closed_to_them() {
        let folder = tempfile::tempdir().unwrap();
        open(folder.path()).unwrap();
        let key = folder.path().join("ca.key");
        fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
        open(folder.path()).unwrap();
        assert_eq!(mode(&key), 0o600);
    }

    #[test]
    fn servers_that_start_at_once_have_one_authority() {
        for _ in 0..10 {
            let folder = tempfile::tempdir().unwrap();
            let start = Barrier::new(8);
            let opened: Vec<_> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..8)
                    .map(|_| {
                        scope.spawn(|| {
                            start.wait();
                            let authority = open(folder.path()).unwrap();
                            (authority.certificate_pem.clone(), key_pem(&authority))
                        })
                    })
                    .collect();
                threads
                    .into_iter()
                    .map(|thread| thread.join().unwrap())
                    .collect()
            });
            assert!(opened.iter().all(|one| *one == opened[0]));
            assert_eq!(file_names(folder.path()), ["ca.key", "ca.pem"]);
        }
    }

    #[test]
    fn a_key_without_a_certificate_gets_one_again() {
        let folder = tempfile::tempdir().unwrap();
        let first = open(folder.path()).unwrap();
        fs::remove_file(folder.path().join("ca.pem")).unwrap();
        let second = open(folder.path()).unwrap();
        assert_eq!(key_pem(&first), key_pem(&second));
    }

    #[test]
    fn a_certificate_of_another_key_is_refused() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for folder in [&one, &two] {
            open(folder.path()).unwrap();
        }
        fs::copy(one.path().join("ca.key"), two.path().join("ca.key")).unwrap();
        let refused = open(two.path()).unwrap_err().to_string();
        assert!(
            refused.contains("is not the certificate of `ca.key`") && refused.contains("remove"),
            "{refused}"
        );
        fs::write(two.path().join("ca.key"), "nothing").unwrap();
        assert!(open(two.path()).is_err());
    }

    #[test]
    fn a_certificate_about_to_expire_is_made_again_with_the_same_key() {
        let folder = tempfile::tempdir().unwrap();
        let first = open(folder.path()).unwrap();
        let later = NOW_MS + (VALID_DAYS - RENEW_BEFORE_DAYS + 1) * DAY_MS;
        let spec = AuthoritySpec {
            made_ms: later,
            ..SPEC
        };
        let second = Authority::open(folder.path(), spec, later).unwrap();
        assert_ne!(second.certificate_pem(), first.certificate_pem());
        let written = fs::read_to_string(folder.path().join("ca.pem")).unwrap();
        assert_eq!(written, second.certificate_pem());
        assert_eq!(key_pem(&second), key_pem(&first));
        assert_eq!(file_names(folder.path()), ["ca.key", "ca.pem"]);
        // One that lasts long enough stays.
        let third = Authority::open(folder.path(), spec, later + DAY_MS).unwrap();
        assert_eq!(third.certificate_pem(), second.certificate_pem());
    }

    #[test]
    fn debug_output_does_not_show_the_key() {
        let folder = tempfile::tempdir().unwrap();
        let authority = open(folder.path()).unwrap();
        assert_eq!(format!("{authority:?}"), "Authority { .. }");
    }
}
