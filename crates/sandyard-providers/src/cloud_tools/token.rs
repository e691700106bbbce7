//! What is shown to a tool server, and what it proves before that.

use std::fmt;

use hmac::{Hmac, Mac};
use http::HeaderValue;
use http::header::InvalidHeaderValue;
use sha2::{Digest, Sha256};

/// Keeps what is worked out from being anything else. The second is the tool server's own word: `sandyard_tools::TokenHash`.
const TOKEN_LABEL: &[u8] = b"sandyard tools inside\0";
const PROOF_LABEL: &[u8] = b"sandyard tool server\0";

/// The token of one sandbox's tool server: of no use anywhere else.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// That of a sandbox: the same each time it is worked out. None where there is nothing to work it out from that others do
    /// not know.
    pub(super) fn of(id: &str, access_token: &str) -> Option<Self> {
        let key = access_token.as_bytes();
        (!key.is_empty()).then(|| Self(digits(&mac(key, TOKEN_LABEL, id.as_bytes()))))
    }

    /// What the tool server recognises it by.
    pub(super) fn hash(&self) -> String {
        hash(&self.0)
    }

    /// What the tool server has to say to a number.
    pub(super) fn proof(&self, number: &str) -> String {
        let key = Sha256::digest(self.0.as_bytes());
        digits(&mac(&key, PROOF_LABEL, number.as_bytes()))
    }

    /// As it is shown.
    pub(super) fn header(&self) -> Result<HeaderValue, InvalidHeaderValue> {
        let mut value = HeaderValue::try_from(&self.0)?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// SHA-256 of a token, in hexadecimal digits.
pub(super) fn hash(token: &str) -> String {
    digits(&Sha256::digest(token.as_bytes()))
}

fn mac(key: &[u8], label: &[u8], text: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(label);
    mac.update(text);
    mac.finalize().into_bytes().into()
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sandbox_has_its_own_and_the_same_again() {
        let of = |id, key| Token::of(id, key).expect("a token");
        let token = of("a", "secret");
        assert_eq!(token, of("a", "secret"));
        assert_ne!(token, of("b", "secret"));
        assert_ne!(token, of("a", "another"));
        assert_eq!(Token::of("a", ""), None);
        assert_eq!(token.hash().len(), 64);
        assert_ne!(token.proof("1"), token.proof("2"));
        let shown = format!("{token:?} {:?}", token.header());
        assert!(!shown.contains(&token.0), "{shown}");
    }
}
