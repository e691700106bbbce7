//! Encrypts secret values for the store.
//!
//! XChaCha20-Poly1305 with a random nonce of 24 bytes, so that any number of values may be sealed with one key. The purpose of a value is
//! authenticated with it: a value that is copied to another row does not open.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use sandyard_core::ErrorKind;
use sandyard_core::network::SecretText;
use sha2::{Digest, Sha256};

use crate::error::{Result, ServiceError};
use crate::random;

/// The prefix of every sealed text; the number is the version of the format.
const BEGIN: &str = "sealed:1:";
const NONCE: usize = 24;

/// Seals and unseals values with the installation's key.
pub(crate) struct Sealer {
    /// Its own crate clears the key when it is dropped.
    cipher: Option<XChaCha20Poly1305>,
    /// The key of [`Sealer::mark`].
    marker: [u8; 32],
}

impl Sealer {
    /// Without a key, sealing and unsealing fail.
    pub(crate) fn new(key: Option<&[u8; 32]>) -> Self {
        let marker = Sha256::new()
            .chain_update(b"sandyard marks ")
            .chain_update(key.unwrap_or(&[0; 32]))
            .finalize();
        Self {
            cipher: key.map(|key| XChaCha20Poly1305::new(Key::from_slice(key))),
            marker: marker.into(),
        }
    }

    /// Seals a text for one purpose.
    pub(crate) fn seal(&self, purpose: &str, text: &str) -> Result<String> {
        let cipher = self.cipher()?;
        let nonce: [u8; NONCE] = random::bytes()?;
        let payload = Payload {
            msg: text.as_bytes(),
            aad: purpose.as_bytes(),
        };
        let sealed = cipher
            .encrypt(XNonce::from_slice(&nonce), payload)
            .map_err(|_| ServiceError::internal("failed to seal a value"))?;
        Ok(format!(
            "{BEGIN}{}",
            BASE64.encode([&nonce[..], &sealed].concat())
        ))
    }

    /// Unseals a text that was sealed for this purpose.
    pub(crate) fn unseal(&self, purpose: &str, sealed: &str) -> Result<SecretText> {
        let cipher = self.cipher()?;
        let bytes = sealed
            .strip_prefix(BEGIN)
            .and_then(|text| BASE64.decode(text).ok())
            .filter(|bytes| bytes.len() > NONCE)
            .ok_or_else(|| ServiceError::internal("a sealed value is damaged"))?;
        let (nonce, rest) = bytes.split_at(NONCE);
        let payload = Payload {
            msg: rest,
            aad: purpose.as_bytes(),
        };
        let opened = cipher
            .decrypt(XNonce::from_slice(nonce), payload)
            .map_err(|_| wrong_key())?;
        // The text reuses the memory, so that there is no second copy to clear.
        let text = String::from_utf8(opened).map_err(|_| wrong_key())?;
        Ok(SecretText::new(text))
    }

    /// A digest that is equal for equal values and purposes and reveals nothing without the key.
    pub(crate) fn mark(&self, purpose: &str, text: &str) -> String {
        let digest = Sha256::new()
            .chain_update(self.marker)
            .chain_update((purpose.len() as u64).to_be_bytes())
            .chain_update(purpose)
            .chain_update(text)
            .finalize();
        BASE64.encode(digest)
    }

    fn cipher(&self) -> Result<&XChaCha20Poly1305> {
        self.cipher.as_ref().ok_or_else(|| {
            ServiceError::new(
                ErrorKind::Unsupported,
                "this server cannot store secrets: it has no sealing key",
            )
            .hint("set `secrets.key`")
        })
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer")
            .field("has_key", &self.cipher.is_some())
            .finish_non_exhaustive()
    }
}

/// A value that was tampered with gives the same error, but that is far less likely.
fn wrong_key() -> ServiceError {
    ServiceError::internal(
        "a stored secret cannot be unsealed: `secrets.key` is not the key that it was sealed with; set it to that key",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_value_opens_only_for_its_purpose() {
        let sealer = Sealer::new(Some(&[7; 32]));
        let sealed = sealer.seal("secret:alice/token", "s3cret").unwrap();
        assert!(sealed.starts_with(BEGIN) && !sealed.contains("s3cret"));
        let opened = sealer.unseal("secret:alice/token", &sealed).unwrap();
        assert_eq!(opened.expose(), "s3cret");
        assert!(sealer.unseal("secret:bob/token", &sealed).is_err());
        let second = sealer.seal("secret:alice/token", "s3cret").unwrap();
        assert_ne!(sealed, second, "the same value does not look the same");
    }

    #[test]
    fn another_key_or_a_changed_byte_does_not_open_it() {
        let sealed = Sealer::new(Some(&[7; 32])).seal("p", "s3cret").unwrap();
        let error = Sealer::new(Some(&[8; 32])).unseal("p", &sealed);
        assert!(error.unwrap_err().message.contains("`secrets.key`"));
        let sealer = Sealer::new(Some(&[7; 32]));
        for damaged in ["", "s3cret", "sealed:1:", "sealed:1:AAAA", &sealed[..40]] {
            assert!(sealer.unseal("p", damaged).is_err(), "{damaged}");
        }
        let mut bytes = BASE64.decode(&sealed[BEGIN.len()..]).unwrap();
        for at in 0..bytes.len() {
            bytes[at] ^= 1;
            let damaged = format!("{BEGIN}{}", BASE64.encode(&bytes));
            assert!(sealer.unseal("p", &damaged).is_err(), "byte {at}");
            bytes[at] ^= 1;
        }
    }

    #[test]
    fn without_a_key_nothing_is_sealed() {
        let error = Sealer::new(None).seal("p", "s3cret").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported);
    }

    #[test]
    fn marks_tell_values_purposes_and_keys_apart() {
        let sealer = Sealer::new(Some(&[7; 32]));
        let mark = sealer.mark("p", "value");
        assert_eq!(mark, sealer.mark("p", "value"));
        assert_ne!(mark, sealer.mark("p", "other"));
        assert_ne!(mark, sealer.mark("pv", "alue"));
        assert_ne!(mark, Sealer::new(Some(&[8; 32])).mark("p", "value"));
    }
}
