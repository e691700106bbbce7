//! Signed links to one port of one sandbox: `<expiry in ms>.<signature>`.

use sandyard_core::SandboxId;

use crate::auth::Auth;
use crate::error::{Rejection, Result};
use crate::secret::MacKey;

/// Longest token that is parsed, in bytes. Issued tokens have 57.
const MAX_LEN: usize = 100;

impl Auth {
    /// Signs access to one port of one sandbox until a time. The token can be used in a URL or a cookie.
    pub fn sign_preview(&self, sandbox_id: &SandboxId, port: u16, expires_ms: i64) -> String {
        let subject = format!("{sandbox_id}:{port}");
        sign(&self.inner.keys.preview, &subject, expires_ms)
    }

    /// Checks that a token is for this port of this sandbox and has not expired.
    pub fn check_preview(&self, token: &str, sandbox_id: &SandboxId, port: u16) -> Result<()> {
        let subject = format!("{sandbox_id}:{port}");
        let expires_ms = read(&self.inner.keys.preview, &subject, token)?;
        if expires_ms <= self.now_ms() {
            return Err(Rejection::Expired.into());
        }
        Ok(())
    }
}

/// Signs a subject and its expiry.
pub(crate) fn sign(key: &MacKey, subject: &str, expires_ms: i64) -> String {
    let signature = key.sign(message(subject, expires_ms).as_bytes());
    format!("{expires_ms}.{signature}")
}

/// Checks that a token is signed for a subject. Returns its expiry, which the caller checks.
pub(crate) fn read(key: &MacKey, subject: &str, token: &str) -> Result<i64, Rejection> {
    if token.len() > MAX_LEN {
        return Err(Rejection::Malformed);
    }
    let (expires_ms, signature) = token.split_once('.').ok_or(Rejection::Malformed)?;
    let expires_ms = expires_ms.parse().map_err(|_| Rejection::Malformed)?;
    if !key.is_signed(message(subject, expires_ms).as_bytes(), signature) {
        return Err(Rejection::Forged);
    }
    Ok(expires_ms)
}

fn message(subject: &str, expires_ms: i64) -> String {
    format!("{subject}\n{expires_ms}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> MacKey {
        MacKey::new(b"a secret of this very test")
    }

    #[test]
    fn a_token_is_for_its_subject_only() {
        let token = sign(&key(), "abc:80", 5000);
        assert_eq!(read(&key(), "abc:80", &token), Ok(5000));
        for other in ["abc:8", "abc:800", "abd:80", "", "abc:80\n5000"] {
            assert_eq!(
                read(&key(), other, &token),
                Err(Rejection::Forged),
                "{other}"
            );
        }
    }

    #[test]
    fn the_end_cannot_be_moved() {
        let token = sign(&key(), "abc:80", 5000);
        let later = token.replacen("5000", "9000", 1);
        assert_eq!(read(&key(), "abc:80", &later), Err(Rejection::Forged));
    }

    #[test]
    fn it_fits_into_a_url() {
        let token = sign(&key(), "abc:80", i64::MAX);
        assert!(token.len() <= MAX_LEN);
        assert!(
            token
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        );
    }

    #[test]
    fn other_text_is_malformed() {
        for text in [
            "",
            ".",
            "5000",
            "x.y",
            "99999999999999999999.y",
            &"1".repeat(200),
        ] {
            assert_eq!(
                read(&key(), "abc:80", text),
                Err(Rejection::Malformed),
                "{text}"
            );
        }
    }
}
