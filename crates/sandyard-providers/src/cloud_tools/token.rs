//! The token of a tool server, and the proof that the tool server gives before it receives the token.

use std::fmt;

use hmac::{Hmac, Mac};
use http::HeaderValue;
use http::header::InvalidHeaderValue;
use sha2::{Digest, Sha256};

use crate::hex;

/// Separate the uses of the keys. The second is part of the tool server's protocol: `sandyard_tools::TokenHash`.
const TOKEN_LABEL: &[u8] = b"sandyard tools inside\0";
const PROOF_LABEL: &[u8] = b"sandyard tool server\0";

/// The token of one sandbox's tool server. It is useless anywhere else.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// The token of a sandbox, which is always the same. `None` without an access token to derive it from.
    pub(super) fn of(id: &str, access_token: &str) -> Option<Self> {
        let key = access_token.as_bytes();
        (!key.is_empty()).then(|| Self(hex::encode(&mac(key, TOKEN_LABEL, id.as_bytes()))))
    }

    /// The hash by which the tool server recognises the token.
    pub(super) fn hash(&self) -> String {
        hash(&self.0)
    }

    /// The proof that the tool server must give for a random number.
    pub(super) fn proof(&self, nonce: &str) -> String {
        let key = Sha256::digest(self.0.as_bytes());
        hex::encode(&mac(&key, PROOF_LABEL, nonce.as_bytes()))
    }

    /// The value of its header.
    pub(super) fn header(&self) -> Result<HeaderValue, InvalidHeaderValue> {
        let mut value = HeaderValue::try_from(&self.0)?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// SHA-256 of a token, in hexadecimal digits.
pub(super) fn hash(token: &str) -> String {
    hex::encode(&Sha256::digest(token.as_bytes()))
}

fn mac(key: &[u8], label: &[u8], text: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(label);
    mac.update(text);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sandbox_has_its_own_stable_token() {
        let of = |id, key| Token::of(id, key).expect("a token");
        let token = of("a", "secret");
        assert_eq!(token, of("a", "secret"));
        assert_ne!(token, of("b", "secret"));
        assert_ne!(token, of("a", "another"));
        assert_eq!(Token::of("a", ""), None);
        assert_eq!(token.hash().len(), 64);
        assert_ne!(token.proof("1"), token.proof("2"));
        let text = format!("{token:?} {:?}", token.header());
        assert!(!text.contains(&token.0), "{text}");
    }
}
