//! Signed file URLs: a link to one file that works without the access token.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use sha2::{Digest, Sha256};

const PREFIX: &str = "v1_";

/// What a signature allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// To fetch the file.
    Read,
    /// To replace it.
    Write,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// What a signature speaks for. The strings are as they stand in the URL, before any resolving.
#[derive(Debug, Clone, Copy)]
pub struct SignedUrl<'a> {
    /// The `path` parameter.
    pub path: &'a str,
    /// What is allowed.
    pub operation: Operation,
    /// The `username` parameter; empty when there is none.
    pub user: &'a str,
    /// The `signature_expiration` parameter: seconds since 1970.
    pub expiration: Option<i64>,
}

/// Why a signature is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// Made with another token, for another file, or made up.
    #[error("invalid signature")]
    Invalid,
    /// Was good once. COMPAT(e2b): the SDKs' tests look for these very words.
    #[error("signature is already expired")]
    Expired,
}

/// Signs a URL with a sandbox's access token.
pub fn sign(url: &SignedUrl<'_>, token: &str) -> String {
    let mut hash = Sha256::new();
    for part in [
        url.path,
        ":",
        url.operation.as_str(),
        ":",
        url.user,
        ":",
        token,
    ] {
        hash.update(part);
    }
    if let Some(expiration) = url.expiration {
        hash.update(format!(":{expiration}"));
    }
    format!("{PREFIX}{}", STANDARD_NO_PAD.encode(hash.finalize()))
}

/// Checks a signature; `now` is in seconds since 1970.
pub fn verify(
    url: &SignedUrl<'_>,
    token: &str,
    signature: &str,
    now: i64,
) -> Result<(), SignatureError> {
    if !secrets_match(signature, &sign(url, token)) {
        return Err(SignatureError::Invalid);
    }
    match url.expiration {
        Some(expiration) if expiration < now => Err(SignatureError::Expired),
        _ => Ok(()),
    }
}

/// Compares a presented secret with the true one in a time that tells nothing but the presented one's length.
pub fn secrets_match(presented: &str, expected: &str) -> bool {
    // Comparing digests makes the loop's length independent of both, and an early exit of an optimised compare would
    // tell only about bits of a hash that nobody can steer.
    let presented = Sha256::digest(presented);
    let expected = Sha256::digest(expected);
    let difference = presented
        .iter()
        .zip(&expected)
        .fold(0, |acc, (a, b)| acc | (a ^ b));
    std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: SignedUrl<'static> = SignedUrl {
        path: "/home/user/a.txt",
        operation: Operation::Read,
        user: "user",
        expiration: Some(1_700_000_000),
    };

    #[test]
    fn a_signature_equals_what_the_official_sdk_makes() {
        // From `e2b.sandbox.signature.get_signature` of e2b 2.63.0, its clock held at 0.
        assert_eq!(
            sign(&URL, "tok"),
            "v1_rjyaqcqTmWCotSjgdIM5sPngpduJ8ZZz/orD09SpFng"
        );
        let forever = SignedUrl {
            user: "",
            expiration: None,
            operation: Operation::Write,
            ..URL
        };
        assert_eq!(
            sign(&forever, "tok"),
            "v1_f04GAQy9t5LwqFJFzjWjjq5PMpXTu5C9c5tvdT+qpk4"
        );
    }

    #[test]
    fn a_signature_holds_until_its_last_second() {
        let signature = sign(&URL, "tok");
        assert_eq!(verify(&URL, "tok", &signature, 1_700_000_000), Ok(()));
        assert_eq!(
            verify(&URL, "tok", &signature, 1_700_000_001),
            Err(SignatureError::Expired)
        );
    }

    #[test]
    fn a_signature_is_good_for_nothing_but_what_it_was_made_for() {
        let signature = sign(&URL, "tok");
        for other in [
            SignedUrl {
                path: "/home/user/b.txt",
                ..URL
            },
            SignedUrl {
                operation: Operation::Write,
                ..URL
            },
            SignedUrl {
                user: "root",
                ..URL
            },
            SignedUrl {
                expiration: Some(1_800_000_000),
                ..URL
            },
            SignedUrl {
                expiration: None,
                ..URL
            },
        ] {
            assert_eq!(
                verify(&other, "tok", &signature, 0),
                Err(SignatureError::Invalid),
                "{other:?}"
            );
        }
        assert_eq!(
            verify(&URL, "other", &signature, 0),
            Err(SignatureError::Invalid)
        );
        assert_eq!(verify(&URL, "tok", "", 0), Err(SignatureError::Invalid));
    }
}
