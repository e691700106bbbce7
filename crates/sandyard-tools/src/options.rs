//! Options of the tool server.

use std::fmt;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use hmac::{Hmac, Mac};
use sandyard_core::random;
use sha2::{Digest, Sha256};

/// Label in every proof, so that a proof cannot be used for anything else.
const PROOF_LABEL: &[u8] = b"sandyard tool server\0";

/// Options of the tool server.
#[derive(Debug, Clone)]
pub struct Options {
    /// Directory that relative paths start from and that shells start in.
    pub workspace: PathBuf,
    /// Other directories that file tools may access, besides the workspace.
    pub more_roots: Vec<PathBuf>,
    /// The user's home directory.
    pub home: PathBuf,
    /// Token that TCP clients must send; without one, no TCP client is accepted.
    pub token: Option<TokenHash>,
    /// Port of the tool server in the sandbox.
    pub port: u16,
}

/// Sources of connections.
#[derive(Debug)]
pub struct Endpoints {
    /// TCP listeners; clients need a token.
    pub listeners: Vec<TcpListener>,
    /// Socket on which the agent sends connections as file descriptors. The server has authenticated their clients.
    pub connections: Option<OwnedFd>,
}

/// SHA-256 of an access token. It recognises the token without keeping it in memory.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenHash {
    first: [u8; 32],
    /// Hashes of other accepted tokens.
    more: Vec<[u8; 32]>,
}

impl TokenHash {
    /// The hash of a token.
    #[must_use]
    pub fn of(token: &str) -> Self {
        Self::from_bytes(hash(token))
    }

    /// A hash that was computed elsewhere.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self {
            first: bytes,
            more: Vec::new(),
        }
    }

    /// Also accepts the token with this hash.
    #[must_use]
    pub fn or(mut self, bytes: [u8; 32]) -> Self {
        self.more.push(bytes);
        self
    }

    /// Returns whether a token is accepted. The time of comparing hashes reveals nothing about the token.
    #[must_use]
    pub fn matches(&self, token: &str) -> bool {
        let hash = hash(token);
        hash == self.first || self.more.contains(&hash)
    }

    /// Proves knowledge of the first token's hash, for a client that must not send its token to another program. The proof reveals
    /// nothing about the token.
    pub(crate) fn prove(&self, challenge: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.first).expect("a key of any length");
        mac.update(PROOF_LABEL);
        mac.update(challenge);
        random::hex(&mac.finalize().into_bytes())
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
    fn every_token_is_accepted_and_the_first_is_proved() {
        let one = TokenHash::of("first");
        let both = one.clone().or(hash("second"));
        assert!(both.matches("first") && both.matches("second") && !both.matches("third"));
        assert!(!one.matches("second"));
        assert_eq!(one.prove(b"1"), both.prove(b"1"));
        assert_ne!(one.prove(b"1"), one.prove(b"2"));
        assert_ne!(one.prove(b"1"), TokenHash::of("second").prove(b"1"));
    }
}
