//! What the tool server is told before it starts.

use std::fmt;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

/// Keeps a proof from being anything else.
const PROOF_LABEL: &[u8] = b"sandyard tool server\0";

/// How the tool server is to work.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where relative paths begin and shells start.
    pub workspace: PathBuf,
    /// What else file tools may reach; nothing outside of these and the workspace.
    pub more_roots: Vec<PathBuf>,
    /// The user's home.
    pub home: PathBuf,
    /// What callers over TCP must show; none: nobody gets in that way.
    pub token: Option<TokenHash>,
    /// The port it is known by, told to programs that ask.
    pub port: u16,
}

/// Where callers come from.
#[derive(Debug)]
pub struct Doors {
    /// Bound and listening; callers need a token.
    pub listeners: Vec<TcpListener>,
    /// A socket whose messages each carry one connection whose caller somebody else has checked.
    pub connections: Option<OwnedFd>,
}

/// SHA-256 of an access token: enough to recognise it, useless to whoever reads our memory.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenHash {
    first: [u8; 32],
    /// Of others that are taken too.
    more: Vec<[u8; 32]>,
}

impl TokenHash {
    /// Of a token.
    #[must_use]
    pub fn of(token: &str) -> Self {
        Self::from_bytes(hash(token))
    }

    /// One that was made elsewhere.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self {
            first: bytes,
            more: Vec::new(),
        }
    }

    /// The same, with another token that is taken as well.
    #[must_use]
    pub fn or(mut self, bytes: [u8; 32]) -> Self {
        self.more.push(bytes);
        self
    }

    /// Whether this is a token. Comparing hashes tells nothing by its time about the token.
    #[must_use]
    pub fn matches(&self, shown: &str) -> bool {
        let shown = hash(shown);
        shown == self.first || self.more.contains(&shown)
    }

    /// What only somebody can say of a number who knows the hash of the first token: shown to whoever must not show that token
    /// to anybody else. It tells nothing about the token.
    pub(crate) fn prove(&self, number: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.first).expect("a key of any length");
        mac.update(PROOF_LABEL);
        mac.update(number);
        let proof = mac.finalize().into_bytes();
        proof.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_is_taken_and_the_first_one_is_proved() {
        let one = TokenHash::of("first");
        let both = one.clone().or(hash("second"));
        assert!(both.matches("first") && both.matches("second") && !both.matches("third"));
        assert!(!one.matches("second"));
        assert_eq!(one.prove(b"1"), both.prove(b"1"));
        assert_ne!(one.prove(b"1"), one.prove(b"2"));
        assert_ne!(one.prove(b"1"), TokenHash::of("second").prove(b"1"));
    }
}
