//! Certificates for the names that programs ask for, made when they do.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rcgen::{
    Certificate, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer,
    KeyPair, KeyUsagePurpose, PublicKeyData, SanType, SerialNumber, date_time_ymd,
};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::{CertifiedKey, SigningKey};

use crate::settings::GatewayError;

/// A day.
pub(super) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a certificate lasts, of which it is used for the first half.
const VALIDITY: Duration = DAY.saturating_mul(7);

/// Most certificates kept for later.
const MAX_KEPT: usize = 1024;

/// Longest name that fits into a subject: X.520 says so.
const MAX_SUBJECT_BYTES: usize = 64;

/// Makes certificates, and keeps those that were used last.
pub(super) struct Certificates {
    provider: Arc<CryptoProvider>,
    issuer: Issuer<'static, KeyPair>,
    /// One key for all names: it lives as long as this process, and whoever has it has them all anyhow.
    key: KeyPair,
    signing: Arc<dyn SigningKey>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    by_name: HashMap<String, One>,
    uses: u64,
}

struct One {
    certified: Arc<CertifiedKey>,
    made_at: SystemTime,
    last_use: u64,
}

impl Certificates {
    /// Sets up what signs.
    pub(super) fn new(
        provider: Arc<CryptoProvider>,
        issuer: Issuer<'static, KeyPair>,
    ) -> Result<Self, GatewayError> {
        let key = KeyPair::generate().map_err(unable)?;
        let der = PrivatePkcs8KeyDer::from(key.serialize_der());
        let signing = provider
            .key_provider
            .load_private_key(PrivateKeyDer::Pkcs8(der));
        let signing = signing.map_err(|error| GatewayError::Authority(error.to_string()))?;
        Ok(Self {
            provider,
            issuer,
            key,
            signing,
            kept: Mutex::default(),
        })
    }

    /// The certificate for a name or an address.
    pub(super) fn of(&self, name: &str) -> Result<Arc<CertifiedKey>, GatewayError> {
        let now = SystemTime::now();
        if let Some(known) = self.kept().get(name, now) {
            return Ok(known);
        }
        let certificate = sign(&self.provider, &self.issuer, name, &self.key)?;
        let chain = vec![certificate.der().clone()];
        let certified = Arc::new(CertifiedKey::new(chain, self.signing.clone()));
        self.kept().put(name, certified.clone(), now);
        Ok(certified)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}

impl Kept {
    fn get(&mut self, name: &str, now: SystemTime) -> Option<Arc<CertifiedKey>> {
        let one = self.by_name.get_mut(name)?;
        // A clock that went back counts as too old: then it is made once more.
        let age = now.duration_since(one.made_at).unwrap_or(VALIDITY);
        if age >= VALIDITY / 2 {
            return None;
        }
        self.uses += 1;
        one.last_use = self.uses;
        Some(one.certified.clone())
    }

    fn put(&mut self, name: &str, certified: Arc<CertifiedKey>, made_at: SystemTime) {
        if self.by_name.len() >= MAX_KEPT && !self.by_name.contains_key(name) {
            let oldest = self.by_name.iter().min_by_key(|(_, one)| one.last_use);
            if let Some(name) = oldest.map(|(name, _)| name.clone()) {
                self.by_name.remove(&name);
            }
        }
        self.uses += 1;
        let one = One {
            certified,
            made_at,
            last_use: self.uses,
        };
        self.by_name.insert(name.to_owned(), one);
    }
}

/// Signs a server's certificate.
pub(super) fn sign(
    provider: &CryptoProvider,
    issuer: &Issuer<'static, KeyPair>,
    name: &str,
    key: &impl PublicKeyData,
) -> Result<Certificate, GatewayError> {
    let mut params = params(provider, VALIDITY)?;
    let alternative = match name.parse::<IpAddr>() {
        Ok(address) => SanType::IpAddress(address),
        Err(_) => SanType::DnsName(name.try_into().map_err(unable)?),
    };
    params.subject_alt_names = vec![alternative];
    params.distinguished_name = DistinguishedName::new();
    if name.len() <= MAX_SUBJECT_BYTES {
        params.distinguished_name.push(DnType::CommonName, name);
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    params.signed_by(key, issuer).map_err(unable)
}

/// A certificate's dates and number; the rest is for the caller to say. It is valid since yesterday: clocks differ.
pub(super) fn params(
    provider: &CryptoProvider,
    validity: Duration,
) -> Result<CertificateParams, GatewayError> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = date_time_ymd(1970, 1, 1) + now.unwrap_or_default();
    // The same number twice from one authority is an error to some programs. 127 bits: a number is never negative.
    let mut number = [0; 16];
    random(provider, &mut number)?;
    number[0] &= 0x7f;
    let mut params = CertificateParams::default();
    params.not_before = now - DAY;
    params.not_after = now + validity;
    params.serial_number = Some(SerialNumber::from_slice(&number));
    Ok(params)
}

/// Fills a buffer with random bytes.
pub(super) fn random(provider: &CryptoProvider, buffer: &mut [u8]) -> Result<(), GatewayError> {
    let filled = provider.secure_random.fill(buffer);
    filled.map_err(|_| GatewayError::Authority("no random numbers".to_owned()))
}

fn unable(error: rcgen::Error) -> GatewayError {
    GatewayError::Authority(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificates() -> Certificates {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let issuer = Issuer::new(CertificateParams::default(), KeyPair::generate().unwrap());
        Certificates::new(provider, issuer).unwrap()
    }

    #[test]
    fn a_certificate_is_made_once_and_again_when_half_its_time_is_over() {
        let certificates = certificates();
        let first = certificates.of("a.example").unwrap();
        assert!(Arc::ptr_eq(&first, &certificates.of("a.example").unwrap()));
        let later = SystemTime::now() + VALIDITY / 2;
        assert!(certificates.kept().get("a.example", later).is_none());
        let earlier = SystemTime::now() - DAY;
        assert!(certificates.kept().get("a.example", earlier).is_none());
    }

    #[test]
    fn no_more_than_so_many_are_kept_and_the_least_used_go() {
        let certificates = certificates();
        let one = certificates.of("used.example").unwrap();
        let now = SystemTime::now();
        for number in 0..MAX_KEPT + 50 {
            let mut kept = certificates.kept();
            assert!(kept.get("used.example", now).is_some(), "{number}");
            kept.put(&format!("{number}.example"), one.clone(), now);
        }
        let mut kept = certificates.kept();
        assert_eq!(kept.by_name.len(), MAX_KEPT);
        assert!(kept.get("0.example", now).is_none());
    }
}
