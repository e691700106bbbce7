//! The encrypted label: the variables and the token of a sandbox.
//!
//! Everything else about a sandbox is in plain labels. These are in a label, too, so that any server of the installation can
//! continue with the container; encrypted, so that neither `docker inspect` nor a copy of Docker's files reveals them.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use chacha20poly1305::aead::rand_core::RngCore;
use chacha20poly1305::aead::{Aead, KeyInit, OsRng, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

const NONCE: usize = 24;
/// Maximum length of a label.
const MAX_LABEL: usize = 4 << 20;

/// Encrypts and decrypts the label.
#[derive(Clone)]
pub(super) struct Seal(XChaCha20Poly1305);

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal")
    }
}

/// Secrets of a sandbox's agent.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Private {
    /// Variables of every command.
    pub(super) env: BTreeMap<String, String>,
    /// The token that clients must send.
    pub(super) access_token: String,
}

impl Seal {
    /// Derives the key of the label.
    pub(super) fn new(key: &[u8; 32]) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"sandyard docker labels\0");
        hash.update(key);
        Self(XChaCha20Poly1305::new(&hash.finalize()))
    }

    /// Encrypts the secrets for a sandbox of that name.
    pub(super) fn seal(&self, name: &str, private: &Private) -> Option<String> {
        let mut sealed = vec![0; NONCE];
        OsRng.fill_bytes(&mut sealed);
        let plain = serde_json::to_vec(private).ok()?;
        let payload = Payload {
            msg: &plain,
            aad: name.as_bytes(),
        };
        let encrypted = self.0.encrypt(XNonce::from_slice(&sealed), payload).ok()?;
        sealed.extend(encrypted);
        Some(STANDARD_NO_PAD.encode(sealed))
    }

    /// Decrypts a label; `None` if it was encrypted with another key or for another sandbox.
    pub(super) fn open(&self, name: &str, label: &str) -> Option<Private> {
        if label.len() > MAX_LABEL {
            return None;
        }
        let sealed = STANDARD_NO_PAD.decode(label).ok()?;
        let (nonce, encrypted) = sealed.split_at_checked(NONCE)?;
        let payload = Payload {
            msg: encrypted,
            aad: name.as_bytes(),
        };
        let plain = self.0.decrypt(XNonce::from_slice(nonce), payload).ok()?;
        serde_json::from_slice(&plain).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_key_and_sandbox_open_it() {
        let private = Private {
            env: BTreeMap::from([("KEY".to_owned(), "hidden".to_owned())]),
            access_token: "token".to_owned(),
        };
        let seal = Seal::new(&[1; 32]);
        let label = seal.seal("one", &private).expect("sealed");
        assert!(!label.contains("hidden"));
        assert!(seal.open("one", &label) == Some(private.clone()));
        assert!(seal.open("two", &label).is_none());
        assert!(Seal::new(&[2; 32]).open("one", &label).is_none());
        assert!(seal.open("one", &label[1..]).is_none());
        assert!(seal.open("one", "").is_none());
        assert_ne!(Some(label), seal.seal("one", &private));
    }
}
