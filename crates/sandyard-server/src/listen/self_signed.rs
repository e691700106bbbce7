//! A certificate made here, kept in the data directory and used again until it is old or its names have changed.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair};
use serde::{Deserialize, Serialize};

use super::certificate::write_secret;

/// How long one is valid. Some clients refuse what is valid for longer than 398 days.
const VALID_DAYS: i64 = 397;
/// From which age on another is made.
const RENEW_DAYS: i64 = 300;

const DAY_MS: i64 = 24 * 3600 * 1000;

/// A certificate that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SelfSignedError {
    /// A name that no certificate can have.
    #[error("failed to make a certificate for {names:?}")]
    Generate {
        /// Its names.
        names: Vec<String>,
        /// Why.
        #[source]
        source: rcgen::Error,
    },
    /// It could not be kept.
    #[error("failed to write `{path}`")]
    Write {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// What a kept certificate was made for.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Made {
    names: Vec<String>,
    at_ms: i64,
}

/// The names of a certificate for this domain and these addresses.
pub(super) fn names(domain: &str, addresses: &[IpAddr]) -> Vec<String> {
    let mut names = vec![
        domain.to_owned(),
        "localhost".to_owned(),
        "*.localhost".to_owned(),
        Ipv4Addr::LOCALHOST.to_string(),
        Ipv6Addr::LOCALHOST.to_string(),
    ];
    if domain.parse::<IpAddr>().is_err() {
        names.push(format!("*.{domain}"));
    }
    let own = addresses.iter().filter(|address| !address.is_unspecified());
    names.extend(own.map(ToString::to_string));
    names.sort();
    names.dedup();
    names
}

/// Returns the paths of a certificate with these names and of its key.
pub(super) fn find_or_make(
    folder: &Path,
    names: &[String],
    now_ms: i64,
) -> Result<(PathBuf, PathBuf), SelfSignedError> {
    let certificate = folder.join("certificate.pem");
    let key = folder.join("key.pem");
    let note = folder.join("made.json");
    if !is_good(&note, names, now_ms) || !certificate.exists() || !key.exists() {
        // The note goes first and comes last: what is not whole is made again.
        let _ = fs::remove_file(&note);
        let (certificate_pem, key_pem) =
            generate(names, now_ms).map_err(|source| SelfSignedError::Generate {
                names: names.to_vec(),
                source,
            })?;
        let made = Made {
            names: names.to_vec(),
            at_ms: now_ms,
        };
        let made = serde_json::to_string(&made).expect("strings and a number");
        for (path, text) in [
            (&key, key_pem),
            (&certificate, certificate_pem),
            (&note, made),
        ] {
            write_secret(path, text.as_bytes()).map_err(|source| SelfSignedError::Write {
                path: path.clone(),
                source,
            })?;
        }
    }
    Ok((certificate, key))
}

fn is_good(note: &Path, names: &[String], now_ms: i64) -> bool {
    let made: Option<Made> = fs::read(note)
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok());
    made.is_some_and(|made| made.names == names && now_ms - made.at_ms < RENEW_DAYS * DAY_MS)
}

fn generate(names: &[String], now_ms: i64) -> Result<(String, String), rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, "sandyard self-signed");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    // A day back: clocks of clients differ. A clock that no calendar has leaves the library's far dates.
    if let (Some((y, m, d)), Some((end_y, end_m, end_d))) =
        (date(now_ms - DAY_MS), date(now_ms + VALID_DAYS * DAY_MS))
    {
        params.not_before = rcgen::date_time_ymd(y, m, d);
        params.not_after = rcgen::date_time_ymd(end_y, end_m, end_d);
    }
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn date(at_ms: i64) -> Option<(i32, u8, u8)> {
    let date = jiff::Timestamp::from_millisecond(at_ms)
        .ok()?
        .to_zoned(jiff::tz::TimeZone::UTC)
        .date();
    let part = |part: i8| u8::try_from(part).ok();
    Some((
        i32::from(date.year()),
        part(date.month())?,
        part(date.day())?,
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const NOW_MS: i64 = 1_800_000_000_000;

    #[test]
    fn a_certificate_is_used_again_until_it_is_old_or_its_names_change() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("tls");
        let ours = names("boxes.example", &["192.0.2.7".parse().unwrap()]);
        let (certificate, key) = find_or_make(&folder, &ours, NOW_MS).unwrap();
        let first = fs::read(&certificate).unwrap();
        assert_eq!(
            fs::metadata(&key).unwrap().permissions().mode() & 0o777,
            0o600
        );
        find_or_make(&folder, &ours, NOW_MS + DAY_MS).unwrap();
        assert_eq!(fs::read(&certificate).unwrap(), first);
        find_or_make(&folder, &ours, NOW_MS + RENEW_DAYS * DAY_MS).unwrap();
        let second = fs::read(&certificate).unwrap();
        assert_ne!(second, first);
        find_or_make(
            &folder,
            &names("other.example", &[]),
            NOW_MS + RENEW_DAYS * DAY_MS,
        )
        .unwrap();
        assert_ne!(fs::read(&certificate).unwrap(), second);
    }

    #[test]
    fn names_have_the_wildcard_of_the_domain_and_no_address_of_all_interfaces() {
        let ours = names("boxes.example", &["0.0.0.0".parse().unwrap()]);
        assert!(ours.contains(&"*.boxes.example".to_owned()));
        assert!(!ours.contains(&"0.0.0.0".to_owned()));
        assert!(!names("192.0.2.7", &[]).contains(&"*.192.0.2.7".to_owned()));
    }
}
