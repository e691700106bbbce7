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
    let digest = url.unsigned().digest(token);
    format!("{PREFIX}{}", STANDARD_NO_PAD.encode(digest))
}

/// A URL on its way to be signed: what is the same for every token, for who has many to try.
#[derive(Debug, Clone)]
pub struct Unsigned {
    hash: Sha256,
    end: String,
}

impl SignedUrl<'_> {
    /// Does the part of the work that no token changes.
    pub fn unsigned(&self) -> Unsigned {
        let mut hash = Sha256::new();
        for part in [self.path, ":", self.operation.as_str(), ":", self.user, ":"] {
            hash.update(part);
        }
        Unsigned {
            hash,
            end: self
                .expiration
                .map_or(String::new(), |expiration| format!(":{expiration}")),
        }
    }
}

impl Unsigned {
    fn digest(&self, token: &str) -> [u8; 32] {
        let hash = self.hash.clone();
        hash.chain_update(token)
            .chain_update(&self.end)
            .finalize()
            .into()
    }

    /// Says whether a signature was made with this token, in a time that does not tell how near it is.
    pub fn is_signed_by(&self, token: &str, signature: &Signature) -> bool {
        is_same(&self.digest(token), &signature.0)
    }
}

/// A signature, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature([u8; 32]);

impl Signature {
    /// Reads a signature; none: it cannot be one, whatever it were made with.
    pub fn parse(text: &str) -> Option<Self> {
        let encoded = text.strip_prefix(PREFIX).filter(|text| text.len() == 43)?;
        let digest = STANDARD_NO_PAD.decode(encoded).ok()?;
        digest.try_into().ok().map(Self)
    }
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
    is_same(&presented.into(), &expected.into())
}

fn is_same(left: &[u8; 32], right: &[u8; 32]) -> bool {
    let difference = left.iter().zip(right).fold(0, |acc, (a, b)| acc | (a ^ b));
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
    fn one_of_many_tokens_is_found() {
        let signature = sign(&URL, "tok");
        let read = Signature::parse(&signature).unwrap();
        let unsigned = URL.unsigned();
        let found: Vec<_> = ["tik", "tok", "tok:1700000000", ""]
            .into_iter()
            .filter(|token| unsigned.is_signed_by(token, &read))
            .collect();
        assert_eq!(found, ["tok"]);
        for text in [
            "",
            "v1_",
            "tok",
            &signature[3..],
            &format!("{signature}A"),
            &signature[..40],
        ] {
            assert_eq!(Signature::parse(text), None, "{text}");
        }
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
