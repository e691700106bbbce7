//! A self-signed certificate: created in the data directory, and used until it is old or its names have changed.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use rcgen::KeyPair;
use sandyard_tls::authority::{CERTIFICATE_FILE, KEY_FILE};
use sandyard_tls::certificate::DAY_MS;
use sandyard_tls::files::{self, PRIVATE, PUBLIC};
use sandyard_tls::{Authority, AuthorityError, AuthoritySpec, ServerCertificateSpec};
use serde::{Deserialize, Serialize};

/// How long a server's certificate is valid, in days. Some clients refuse one that is valid for more than 398.
const VALID_DAYS: i64 = 397;
/// Age in days at which a new certificate is created.
const RENEW_DAYS: i64 = 300;
/// Age in days at which a new authority is created, which clients must then trust.
const RENEW_AUTHORITY_DAYS: i64 = 3200;

/// A certificate cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum SelfSignedError {
    /// A certificate cannot have one of these names.
    #[error("failed to create a certificate for {names:?}")]
    Generate {
        /// The requested names.
        names: Vec<String>,
        /// The cause.
        #[source]
        source: AuthorityError,
    },
    /// A file cannot be written.
    #[error("failed to write `{path}`")]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// The record of an existing certificate.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    names: Vec<String>,
    at_ms: i64,
    authority_at_ms: i64,
}

/// The names of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Names {
    /// Names of the settings: a certificate must have all of these.
    required: Vec<String>,
    /// Current names of this host. They change with the container or network, which must not make clients trust a new authority.
    host_names: Vec<String>,
}

impl Names {
    /// Names for this domain and these addresses, and the current names of this host.
    pub(super) fn new(domain: &str, addresses: &[IpAddr], host_names: Vec<String>) -> Self {
        let mut required = vec![
            domain.to_owned(),
            "localhost".to_owned(),
            Ipv4Addr::LOCALHOST.to_string(),
            Ipv6Addr::LOCALHOST.to_string(),
        ];
        // Clients accept no wildcard below a top-level name, such as `*.localhost`; some refuse the whole certificate.
        if domain.contains('.') && domain.parse::<IpAddr>().is_err() {
            required.push(format!("*.{domain}"));
        }
        let named = addresses.iter().filter(|address| !address.is_unspecified());
        required.extend(named.map(ToString::to_string));
        Self {
            required,
            host_names,
        }
    }

    fn all(&self) -> Vec<String> {
        let mut all = [self.required.as_slice(), &self.host_names].concat();
        all.sort();
        all.dedup();
        all
    }
}

/// The file of the authority that clients must trust.
pub(super) fn authority(folder: &Path) -> PathBuf {
    folder.join(CERTIFICATE_FILE)
}

/// Returns the paths of a certificate with these names and of its key. An existing one may lack current names of this host.
pub(super) fn find_or_create(
    folder: &Path,
    names: &Names,
    now_ms: i64,
) -> Result<(PathBuf, PathBuf), SelfSignedError> {
    let certificate = folder.join("certificate.pem");
    let key = folder.join("key.pem");
    let record_path = folder.join("made.json");
    // Servers that share the folder take turns.
    let _lock = lock(folder)?;
    let made = read_record(&record_path, &names.required, now_ms);
    if let Some(made) = &made {
        warn_of_missing_names(folder, names, made);
    }
    let is_good = made
        .as_ref()
        .is_some_and(|made| now_ms - made.at_ms < RENEW_DAYS * DAY_MS);
    if is_good && certificate.exists() && key.exists() && authority(folder).exists() {
        return Ok((certificate, key));
    }
    let names = &made
        .as_ref()
        .map_or_else(|| names.all(), |made| made.names.clone());
    let is_kept = made.is_some() && authority(folder).exists() && authority_key(folder).exists();
    let authority_at_ms = match made {
        Some(made) if is_kept => made.authority_at_ms,
        _ => {
            let _ = fs::remove_file(&record_path);
            // Both are removed, so that certificate and key always match.
            let _ = fs::remove_file(authority(folder));
            let _ = fs::remove_file(authority_key(folder));
            now_ms
        }
    };
    let (signed, signed_key) = sign(folder, names, authority_at_ms, now_ms).map_err(|source| {
        SelfSignedError::Generate {
            names: names.to_vec(),
            source,
        }
    })?;
    // The record is removed before files change and written last, so that incomplete files are created again. An authority that
    // cannot be opened keeps its record: without one it would be replaced, and clients would have to trust another.
    let _ = fs::remove_file(&record_path);
    let made = Record {
        names: names.to_vec(),
        at_ms: now_ms,
        authority_at_ms,
    };
    let made = serde_json::to_string(&made).expect("strings and numbers");
    write(&key, &signed_key, PRIVATE)?;
    write(&certificate, &signed, PUBLIC)?;
    write(&record_path, &made, PRIVATE)?;
    Ok((certificate, key))
}

/// Creates a server's certificate and its key, in PEM; creates the authority of the folder if it is missing.
///
/// There are two certificates because some clients refuse a server's certificate that is an authority, and others trust only
/// authorities. Besides, the server's can be renewed without any change of the clients. The authority's certificate follows the server's,
/// so that clients may trust this file too.
fn sign(
    folder: &Path,
    names: &[String],
    authority_at_ms: i64,
    now_ms: i64,
) -> Result<(String, String), AuthorityError> {
    let spec = AuthoritySpec {
        common_name: Some(&format!("sandyard authority {authority_at_ms}")),
        permitted_names: names,
        made_ms: authority_at_ms,
    };
    let authority = Authority::open(folder, spec, now_ms)?;
    let spec = ServerCertificateSpec {
        common_name: "sandyard",
        names,
        now_ms,
        valid_days: VALID_DAYS,
    };
    let key = KeyPair::generate()?;
    let certificate = authority.sign(spec, &key)?.pem() + authority.certificate_pem();
    Ok((certificate, key.serialize_pem()))
}

/// Warns of names of the host that the certificate lacks, since its authority is valid for no names but its first ones.
fn warn_of_missing_names(folder: &Path, names: &Names, record: &Record) {
    let is_missing = |name: &&String| !record.names.contains(name);
    let missing: Vec<_> = names.host_names.iter().filter(is_missing).collect();
    if !missing.is_empty() {
        let folder = folder.display();
        tracing::warn!(
            "The certificate is not valid for {missing:?}, current names of this host. To create a new one, remove `{folder}` and \
             restart the server; clients must then trust its new `ca.pem`"
        );
    }
}

/// The record of a certificate with these names, unless its authority is too old.
fn read_record(path: &Path, names: &[String], now_ms: i64) -> Option<Record> {
    let made: Record = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    let is_young = now_ms - made.authority_at_ms < RENEW_AUTHORITY_DAYS * DAY_MS;
    // A certificate may have more names: an address that is temporarily missing must not make clients trust a new authority.
    let has_all = names.iter().all(|name| made.names.contains(name));
    (has_all && is_young).then_some(made)
}

fn authority_key(folder: &Path) -> PathBuf {
    folder.join(KEY_FILE)
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), SelfSignedError> {
    files::replace(path, text.as_bytes(), mode).map_err(|source| SelfSignedError::Write {
        path: path.to_owned(),
        source,
    })
}

/// Waits until no other server creates certificates here. The lock ends when the returned file is dropped.
fn lock(folder: &Path) -> Result<fs::File, SelfSignedError> {
    let path = folder.join("lock");
    let locked = files::create_private_folder(folder)
        .and_then(|()| fs::File::create(&path))
        .and_then(|file| file.lock().map(|()| file));
    locked.map_err(|source| SelfSignedError::Write { path, source })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;
    use std::time::Duration;

    use rustls::RootCertStore;
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier;
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

    use super::*;

    const NOW_MS: i64 = 1_800_000_000_000;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    /// Checks a server's certificate as a client would that trusts what is in `trusted`.
    fn is_trusted(certificate: &Path, trusted: &[u8], name: &str, now_ms: i64) -> bool {
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(trusted) {
            roots.add(root.unwrap()).unwrap();
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider)
            .build()
            .unwrap();
        let leaf = CertificateDer::from_pem_file(certificate).unwrap();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_millis(now_ms.unsigned_abs()));
        verifier
            .verify_server_cert(&leaf, &[], &name, &[], now)
            .is_ok()
    }

    #[test]
    fn a_certificate_is_used_again_until_it_is_old_or_its_names_change() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("tls");
        let names = Names::new("boxes.example", &["192.0.2.7".parse().unwrap()], vec![]);
        let (certificate, key) = find_or_create(&folder, &names, NOW_MS).unwrap();
        let first = fs::read(&certificate).unwrap();
        let trusted = fs::read(authority(&folder)).unwrap();
        assert_eq!((mode(&key), mode(&authority_key(&folder))), (0o600, 0o600));
        assert_eq!(
            (mode(&certificate), mode(&authority(&folder))),
            (0o644, 0o644)
        );
        find_or_create(&folder, &names, NOW_MS + DAY_MS).unwrap();
        assert_eq!(fs::read(&certificate).unwrap(), first);
        // Another one that those trust who trust the first.
        let later = NOW_MS + RENEW_DAYS * DAY_MS;
        find_or_create(&folder, &names, later).unwrap();
        let second = fs::read(&certificate).unwrap();
        assert_ne!(second, first);
        assert_eq!(fs::read(authority(&folder)).unwrap(), trusted);
        assert!(is_trusted(&certificate, &trusted, "boxes.example", later));
        find_or_create(&folder, &Names::new("other.example", &[], vec![]), later).unwrap();
        assert_ne!(fs::read(&certificate).unwrap(), second);
        assert_ne!(fs::read(authority(&folder)).unwrap(), trusted);
    }

    #[test]
    fn a_renamed_host_keeps_its_authority() {
        let folder = tempfile::tempdir().unwrap();
        let called = |host_names: &[&str]| {
            let host_names = host_names.iter().map(|&name| name.to_owned()).collect();
            Names::new("localhost", &[], host_names)
        };
        let first = called(&["yard", "192.0.2.7"]);
        let (certificate, _) = find_or_create(folder.path(), &first, NOW_MS).unwrap();
        let trusted = fs::read(authority(folder.path())).unwrap();
        for later in [NOW_MS, NOW_MS + RENEW_DAYS * DAY_MS] {
            for host_names in [&["yard"][..], &["4f1c", "192.0.2.8"]] {
                find_or_create(folder.path(), &called(host_names), later).unwrap();
                assert_eq!(fs::read(authority(folder.path())).unwrap(), trusted);
                for name in ["yard", "192.0.2.7", "localhost"] {
                    assert!(is_trusted(&certificate, &trusted, name, later), "{name}");
                }
            }
        }
    }

    #[test]
    fn clients_that_trust_the_authority_or_the_chain_reach_every_name() {
        let folder = tempfile::tempdir().unwrap();
        let names = Names::new("boxes.example", &["192.0.2.7".parse().unwrap()], vec![]);
        let (certificate, _) = find_or_create(folder.path(), &names, NOW_MS).unwrap();
        let authority = fs::read(authority(folder.path())).unwrap();
        let chain = fs::read(&certificate).unwrap();
        for trusted in [&authority, &chain] {
            let reaches = |name| is_trusted(&certificate, trusted, name, NOW_MS);
            for name in [
                "boxes.example",
                "api.boxes.example",
                "sandbox.boxes.example",
                "3000-abc.boxes.example",
                "localhost",
                "127.0.0.1",
                "::1",
                "192.0.2.7",
            ] {
                assert!(reaches(name), "{name}");
            }
            assert!(!reaches("other.example") && !reaches("192.0.2.8"));
        }
    }

    #[test]
    fn an_authority_vouches_for_no_other_names() {
        let made = |domain: &str| Names::new(domain, &[], vec![]).all();
        let folder = tempfile::tempdir().unwrap();
        let spec = AuthoritySpec {
            common_name: Some("authority"),
            permitted_names: &made("boxes.example"),
            made_ms: NOW_MS,
        };
        let authority = Authority::open(folder.path(), spec, NOW_MS).unwrap();
        let stolen = ServerCertificateSpec {
            common_name: "stolen",
            names: &made("bank.example"),
            now_ms: NOW_MS,
            valid_days: VALID_DAYS,
        };
        let stolen = authority
            .sign(stolen, &KeyPair::generate().unwrap())
            .unwrap();
        let path = folder.path().join("stolen.pem");
        fs::write(&path, stolen.pem()).unwrap();
        let trusted = authority.certificate_pem().as_bytes();
        assert!(!is_trusted(&path, trusted, "bank.example", NOW_MS));
    }

    #[test]
    fn names_have_the_wildcard_of_the_domain_and_no_address_of_all_interfaces() {
        let everywhere = ["0.0.0.0".parse().unwrap()];
        let names = Names::new("boxes.example", &everywhere, vec!["yard".to_owned()]).all();
        assert!(names.contains(&"*.boxes.example".to_owned()));
        assert!(!names.contains(&"0.0.0.0".to_owned()));
        assert!(names.contains(&"yard".to_owned()));
        for domain in ["192.0.2.7", "localhost"] {
            let all = Names::new(domain, &[], vec![]).all();
            assert!(!all.iter().any(|name| name.contains('*')));
        }
    }
}
