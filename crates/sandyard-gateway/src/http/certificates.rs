//! Certificates for the names that programs ask for, made when they do.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rcgen::KeyPair;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::{CertifiedKey, SigningKey};
use sandyard_core::Clock;
use sandyard_tls::certificate::DAY_MS;
use sandyard_tls::{Authority, AuthorityError, ServerCertificateSpec};

use crate::settings::GatewayError;

/// How long a certificate is valid, in days. It is used for the first half of that.
const VALID_DAYS: i64 = 7;

/// Maximum number of certificates in the cache.
const MAX_CACHED: usize = 1024;

/// Makes certificates, and caches those that were used last.
pub(super) struct Certificates {
    authority: Authority,
    /// One key for all names. It is never written down: it lives as long as this process.
    key: KeyPair,
    signing_key: Arc<dyn SigningKey>,
    cache: Mutex<Cache>,
}

#[derive(Default)]
struct Cache {
    by_name: HashMap<String, CachedCertificate>,
    uses: u64,
}

struct CachedCertificate {
    certified: Arc<CertifiedKey>,
    made_ms: i64,
    last_use: u64,
}

impl Certificates {
    /// Makes the key of all certificates that the authority signs here.
    pub(super) fn new(authority: Authority) -> Result<Self, GatewayError> {
        let key = KeyPair::generate().map_err(AuthorityError::from)?;
        let der = PrivatePkcs8KeyDer::from(key.serialize_der());
        let signing_key = sandyard_tls::crypto_provider()
            .key_provider
            .load_private_key(PrivateKeyDer::Pkcs8(der))
            .map_err(GatewayError::Key)?;
        Ok(Self {
            authority,
            key,
            signing_key,
            cache: Mutex::default(),
        })
    }

    /// The certificate for a host name or an IP address.
    pub(super) fn of(&self, name: &str) -> Result<Arc<CertifiedKey>, AuthorityError> {
        let now_ms = Clock::System.now_ms();
        if let Some(cached) = self.cache.lock().get(name, now_ms) {
            return Ok(cached);
        }
        let names = [name.to_owned()];
        let spec = ServerCertificateSpec {
            common_name: name,
            names: &names,
            now_ms,
            valid_days: VALID_DAYS,
        };
        let certificate = self.authority.sign(spec, &self.key)?;
        let chain = vec![certificate.der().clone()];
        let certified = Arc::new(CertifiedKey::new(chain, self.signing_key.clone()));
        self.cache.lock().put(name, certified.clone(), now_ms);
        Ok(certified)
    }
}

sandyard_core::debug_fields!(Certificates);

impl Cache {
    fn get(&mut self, name: &str, now_ms: i64) -> Option<Arc<CertifiedKey>> {
        let cached = self.by_name.get_mut(name)?;
        // A certificate from the future means that the clock went back: it is made again.
        let age_ms = now_ms - cached.made_ms;
        if !(0..VALID_DAYS * DAY_MS / 2).contains(&age_ms) {
            return None;
        }
        self.uses += 1;
        cached.last_use = self.uses;
        Some(cached.certified.clone())
    }

    fn put(&mut self, name: &str, certified: Arc<CertifiedKey>, made_ms: i64) {
        if self.by_name.len() >= MAX_CACHED && !self.by_name.contains_key(name) {
            let oldest = self
                .by_name
                .iter()
                .min_by_key(|(_, cached)| cached.last_use);
            if let Some(name) = oldest.map(|(name, _)| name.clone()) {
                self.by_name.remove(&name);
            }
        }
        self.uses += 1;
        let cached = CachedCertificate {
            certified,
            made_ms,
            last_use: self.uses,
        };
        self.by_name.insert(name.to_owned(), cached);
    }
}

#[cfg(test)]
mod tests {
    use sandyard_tls::AuthoritySpec;

    use super::*;

    fn certificates() -> Certificates {
        let folder = tempfile::tempdir().unwrap();
        let now_ms = Clock::System.now_ms();
        let spec = AuthoritySpec {
            common_name: None,
            permitted_names: &[],
            made_ms: now_ms,
        };
        Certificates::new(Authority::open(folder.path(), spec, now_ms).unwrap()).unwrap()
    }

    #[test]
    fn a_certificate_is_made_again_when_half_its_validity_is_over() {
        let certificates = certificates();
        let first = certificates.of("a.example").unwrap();
        assert!(Arc::ptr_eq(&first, &certificates.of("a.example").unwrap()));
        let now_ms = Clock::System.now_ms();
        let later = now_ms + VALID_DAYS * DAY_MS / 2;
        assert!(certificates.cache.lock().get("a.example", later).is_none());
        let earlier = now_ms - DAY_MS;
        assert!(
            certificates
                .cache
                .lock()
                .get("a.example", earlier)
                .is_none()
        );
    }

    #[test]
    fn the_cache_is_bounded_and_drops_the_least_recently_used() {
        let certificates = certificates();
        let one = certificates.of("used.example").unwrap();
        let now_ms = Clock::System.now_ms();
        for number in 0..MAX_CACHED + 50 {
            let mut cache = certificates.cache.lock();
            assert!(cache.get("used.example", now_ms).is_some(), "{number}");
            cache.put(&format!("{number}.example"), one.clone(), now_ms);
        }
        let mut cache = certificates.cache.lock();
        assert_eq!(cache.by_name.len(), MAX_CACHED);
        assert!(cache.get("0.example", now_ms).is_none());
    }
}
