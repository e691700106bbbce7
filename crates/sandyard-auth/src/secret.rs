//! One secret per installation, one key per purpose.
//!
//! The secret is created once and stored, so that all servers of one store share it. Each purpose has a key of its own, derived from the
//! secret and the purpose's name, so that a signature for one purpose is never valid for another.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use sandyard_store::Store;
use sha2::{Digest, Sha256};

use crate::error::{AuthError, Result};
use crate::random;

/// The name of the secret in the store.
const META_NAME: &str = "auth.secret";

/// Shortest accepted secret, in bytes.
const MIN_LEN: usize = 16;

/// The keys of all purposes.
pub(crate) struct Keys {
    /// Access tokens.
    pub(crate) token: MacKey,
    /// Refresh tokens.
    pub(crate) refresh: MacKey,
    /// Preview links.
    pub(crate) preview: MacKey,
    /// Calls between servers.
    pub(crate) node: MacKey,
    /// Tokens for all ports of a sandbox.
    pub(crate) traffic: MacKey,
}

impl Keys {
    /// Reads the installation's secret, or creates it. `jwt_secret`, if given, signs the access tokens instead.
    pub(crate) async fn open(store: &Store, jwt_secret: Option<&str>) -> Result<Self> {
        let stored = store
            .meta_or_insert(META_NAME, &random::hex_text::<32>()?)
            .await?;
        Self::from_secrets(&stored, jwt_secret)
    }

    /// Derives the keys from the installation's secret.
    pub(crate) fn from_secrets(stored: &str, jwt_secret: Option<&str>) -> Result<Self> {
        if stored.len() < MIN_LEN {
            return Err(AuthError::BadSecret {
                name: META_NAME,
                detail: "the stored secret is too short",
            });
        }
        let root = MacKey::new(stored.as_bytes());
        let token = match jwt_secret {
            Some(secret) if secret.len() < MIN_LEN => {
                return Err(AuthError::BadSecret {
                    name: "jwt_secret",
                    detail: "it is too short",
                });
            }
            Some(secret) => MacKey::new(secret.as_bytes()),
            None => root.derive("token"),
        };
        Ok(Self {
            token,
            refresh: root.derive("refresh"),
            preview: root.derive("preview"),
            node: root.derive("node"),
            traffic: root.derive("traffic"),
        })
    }
}

/// Signs with HMAC-SHA256, for one purpose.
#[derive(Clone)]
pub(crate) struct MacKey(Hmac<Sha256>);

impl MacKey {
    pub(crate) fn new(secret: &[u8]) -> Self {
        Self(Hmac::new_from_slice(secret).expect("HMAC takes a key of any length"))
    }

    fn derive(&self, purpose: &str) -> Self {
        Self::new(&self.tag(format!("sandyard/{purpose}/1").as_bytes()))
    }

    fn tag(&self, message: &[u8]) -> [u8; 32] {
        self.0
            .clone()
            .chain_update(message)
            .finalize()
            .into_bytes()
            .into()
    }

    /// Signs a message. The signature has 43 characters that are safe in a URL.
    pub(crate) fn sign(&self, message: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(self.tag(message))
    }

    /// Checks a signature in constant time.
    pub(crate) fn is_signed(&self, message: &[u8], signature: &str) -> bool {
        URL_SAFE_NO_PAD.decode(signature).is_ok_and(|tag| {
            self.0
                .clone()
                .chain_update(message)
                .verify_slice(&tag)
                .is_ok()
        })
    }
}

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MacKey")
    }
}

/// SHA-256 in hexadecimal: how keys and refresh tokens are stored.
pub(crate) fn sha256_hex(text: &str) -> String {
    random::hex(&Sha256::digest(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn no_purpose_accepts_what_another_signed() {
        let keys = Keys::from_secrets(SECRET, None).unwrap();
        let all = [
            &keys.token,
            &keys.refresh,
            &keys.preview,
            &keys.node,
            &keys.traffic,
        ];
        for (signer_index, signer) in all.iter().enumerate() {
            let signature = signer.sign(b"message");
            for (reader_index, reader) in all.iter().enumerate() {
                assert_eq!(
                    reader.is_signed(b"message", &signature),
                    signer_index == reader_index
                );
            }
        }
    }

    #[test]
    fn a_changed_or_shortened_signature_is_refused() {
        let key = MacKey::new(SECRET.as_bytes());
        let signature = key.sign(b"message");
        assert!(!key.is_signed(b"massage", &signature));
        assert!(!key.is_signed(b"message", &signature[..40]));
        assert!(!key.is_signed(b"message", ""));
        assert!(!key.is_signed(b"message", &format!("{signature}=")));
    }

    #[test]
    fn short_secrets_are_refused() {
        assert!(Keys::from_secrets(SECRET, Some("short")).is_err());
        assert!(Keys::from_secrets("", None).is_err());
        assert!(Keys::from_secrets(SECRET, Some("long enough to be used")).is_ok());
    }

    #[test]
    fn the_hash_is_the_standard_one() {
        // FIPS 180-4, the one-block example.
        assert_eq!(
            sha256_hex("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
