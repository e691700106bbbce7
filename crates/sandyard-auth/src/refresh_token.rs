//! Refresh tokens: `sr_<session>_<secret>_<signature>`.
//!
//! The signature tells an old token from a forged one. The use of an old token means that it was copied, and ends the session. A forged
//! token must not end it.

use crate::error::{Rejection, Result};
use crate::random;
use crate::secret::MacKey;

/// Longest token that is parsed, in bytes. Issued tokens have 108.
const MAX_LEN: usize = 200;

/// Creates a token for a session.
pub(crate) fn make(key: &MacKey, session_id: &str) -> Result<String> {
    let signed = format!("sr_{session_id}_{}", random::hex_text::<20>()?);
    let signature = key.sign(signed.as_bytes());
    Ok(format!("{signed}_{signature}"))
}

/// The id of the session that a token belongs or belonged to.
pub(crate) fn session_of<'a>(key: &MacKey, token: &'a str) -> Result<&'a str, Rejection> {
    if token.len() > MAX_LEN {
        return Err(Rejection::Malformed);
    }
    // The signature may itself contain `_`, the parts before it may not.
    let mut parts = token.splitn(4, '_');
    let (Some("sr"), Some(session_id), Some(secret), Some(signature)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Rejection::Malformed);
    };
    let signed_len = "sr__".len() + session_id.len() + secret.len();
    if !key.is_signed(&token.as_bytes()[..signed_len], signature) {
        return Err(Rejection::Forged);
    }
    Ok(session_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_its_session() {
        let key = MacKey::new(b"a secret of this very test");
        // Often enough that some signature has an underscore.
        for _ in 0..64 {
            let token = make(&key, "0123abcd").unwrap();
            assert_eq!(session_of(&key, &token), Ok("0123abcd"));
        }
    }

    #[test]
    fn a_forged_token_is_detected() {
        let key = MacKey::new(b"a secret of this very test");
        let token = make(&key, "0123abcd").unwrap();
        let other = token.replacen("0123abcd", "0123abce", 1);
        assert_eq!(session_of(&key, &other), Err(Rejection::Forged));
        assert_eq!(session_of(&key, "sr_a_b_"), Err(Rejection::Forged));
        for text in ["", "sr_", "sr_a_b", "xx_a_b_c", &"a".repeat(300)] {
            assert_eq!(
                session_of(&key, text),
                Err(Rejection::Malformed),
                "{text:?}"
            );
        }
    }
}
