//! The id of a sandbox.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Longest accepted id. An id is part of a host label (63 bytes at most), together with a port and a dash.
const MAX_LEN: usize = 40;

/// The id of a sandbox: `[a-z0-9]{1,40}`, so that it is a valid file name, cgroup name and DNS label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SandboxId(String);

/// Why a text is not a sandbox id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SandboxIdError {
    /// Empty, or too long for a host label.
    #[error("a sandbox id must have 1 to {MAX_LEN} characters")]
    Length,
    /// Something other than lower-case letters and digits.
    #[error("a sandbox id must have only lower-case letters and digits")]
    Character,
}

impl SandboxId {
    /// Creates an id of 20 characters from random bytes. It has about 100 random bits, so that it cannot be guessed.
    pub fn from_random(bytes: [u8; 20]) -> Self {
        const ALPHABET: &[u8; 32] = b"abcdefghijkmnopqrstuvwxyz0123456";
        Self(
            bytes
                .iter()
                .map(|byte| ALPHABET[usize::from(byte & 31)] as char)
                .collect(),
        )
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SandboxId {
    type Err = SandboxIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() || text.len() > MAX_LEN {
            return Err(SandboxIdError::Length);
        }
        if !text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        {
            return Err(SandboxIdError::Character);
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for SandboxId {
    type Error = SandboxIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<SandboxId> for String {
    fn from(id: SandboxId) -> Self {
        id.0
    }
}

impl fmt::Display for SandboxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_id_is_a_valid_id() {
        let id = SandboxId::from_random(std::array::from_fn(|index| index as u8 * 13));
        assert_eq!(id.as_str().parse(), Ok(id.clone()));
        assert_eq!(id.as_str().len(), 20);
    }

    #[test]
    fn texts_that_are_parts_of_paths_are_refused() {
        for text in ["", "..", "a/b", "A", "a-b", "a\0", "é", &"a".repeat(41)] {
            assert!(text.parse::<SandboxId>().is_err(), "{text:?}");
        }
    }
}
