//! The format of keys: `e2b_` and 40 hexadecimal digits, which the E2B SDKs require.

use sandyard_core::Scope;
use sandyard_store::model::{ApiKey, NewApiKey};

use crate::error::Result;
use crate::keys::NewKey;
use crate::random;
use crate::secret::sha256_hex;

const PREFIX: &str = "e2b_";
const DIGITS: usize = 40;

/// Says whether a text has the format of a key.
pub(crate) fn is_like(text: &str) -> bool {
    text.strip_prefix(PREFIX).is_some_and(|digits| {
        digits.len() == DIGITS
            && digits
                .bytes()
                .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    })
}

/// Creates a key, and the row for it.
pub(crate) fn make(
    id: String,
    owner: String,
    name: &str,
    scopes: Vec<Scope>,
    created_ms: i64,
    expires_ms: Option<i64>,
) -> Result<(NewKey, NewApiKey)> {
    let secret = format!("{PREFIX}{}", random::hex_text::<{ DIGITS / 2 }>()?);
    let key = ApiKey {
        id,
        owner,
        name: name.to_owned(),
        mask: mask(&secret),
        scopes,
        created_ms,
        expires_ms,
        last_used_ms: None,
        revoked_ms: None,
    };
    let stored = NewApiKey {
        key: key.clone(),
        hash: sha256_hex(&secret),
    };
    Ok((NewKey { key, secret }, stored))
}

/// The first and last characters of a key: 32 of its 160 bits.
fn mask(secret: &str) -> String {
    let tail = secret.len() - 4;
    format!("{}…{}", &secret[..PREFIX.len() + 4], &secret[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_shows_only_its_ends() {
        let (new, stored) =
            make("k1".to_owned(), "alice".to_owned(), "n", vec![], 0, None).unwrap();
        assert!(is_like(&new.secret));
        let middle = &new.secret[8..40];
        assert!(!format!("{new:?}").contains(middle));
        assert!(!new.key.mask.contains(middle));
        assert_eq!(stored.hash, sha256_hex(&new.secret));
    }

    #[test]
    fn only_keys_look_like_keys() {
        for text in [
            "e2b_".to_owned(),
            format!("e2b_{}", "a".repeat(39)),
            format!("e2b_{}", "A".repeat(40)),
            format!("e2b_{}", "g".repeat(40)),
            "a".repeat(44),
        ] {
            assert!(!is_like(&text), "{text}");
        }
    }
}
