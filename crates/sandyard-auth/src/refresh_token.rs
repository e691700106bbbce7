//! Refresh tokens: `sr_<session>_<secret>_<signature>`.
//!
//! The signature tells an old token, which was ours once and whose use means that somebody copied it, from a made-up one,
//! which must not end the session of its victim.

use crate::error::{AuthError, Why};
use crate::random;
use crate::secret::MacKey;

/// Longest token that is looked at; ours have 108 bytes.
const MAX_LEN: usize = 200;

/// Makes a token for a session.
pub(crate) fn make(key: &MacKey, session_id: &str) -> Result<String, AuthError> {
    let signed = format!("sr_{session_id}_{}", random::hex_text::<20>()?);
    let signature = key.sign(signed.as_bytes());
    Ok(format!("{signed}_{signature}"))
}

/// Finds the session a token belongs or belonged to.
pub(crate) fn session_of<'a>(key: &MacKey, token: &'a str) -> Result<&'a str, Why> {
    if token.len() > MAX_LEN {
        return Err(Why::Malformed);
    }
    // The signature may itself contain `_`, the parts before it may not.
    let mut parts = token.splitn(4, '_');
    let (Some("sr"), Some(session_id), Some(secret), Some(signature)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Why::Malformed);
    };
    let signed_len = "sr__".len() + session_id.len() + secret.len();
    if !key.is_signed(&token.as_bytes()[..signed_len], signature) {
        return Err(Why::Forged);
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
    fn a_made_up_token_is_a_forgery() {
        let key = MacKey::new(b"a secret of this very test");
        let token = make(&key, "0123abcd").unwrap();
        let other = token.replacen("0123abcd", "0123abce", 1);
        assert_eq!(session_of(&key, &other), Err(Why::Forged));
        assert_eq!(session_of(&key, "sr_a_b_"), Err(Why::Forged));
        for text in ["", "sr_", "sr_a_b", "xx_a_b_c", &"a".repeat(300)] {
            assert_eq!(session_of(&key, text), Err(Why::Malformed), "{text:?}");
        }
    }
}
