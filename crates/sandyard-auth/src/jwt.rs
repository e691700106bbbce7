//! Access tokens: JSON Web Tokens signed with HS256.
//!
//! HS256 is a signature over two base64 parts, so it is implemented here. A general library also has RSA and elliptic curves, and with
//! them the risk that a token chooses its algorithm.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sandyard_core::Role;
use serde::{Deserialize, Serialize};

use crate::error::{AuthError, Rejection, Result};
use crate::secret::MacKey;

/// Longest token that is parsed, in bytes. Issued tokens have about 400.
const MAX_LEN: usize = 2048;

/// The content of a token. The server looks the session up; the role is only for clients to read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claims {
    /// Name of the user.
    pub(crate) sub: String,
    /// The user's role when the token was issued.
    pub(crate) role: Role,
    /// The id of its session.
    pub(crate) sid: String,
    /// When it was issued, in seconds since 1970.
    pub(crate) iat: i64,
    /// When it expires, in seconds since 1970.
    pub(crate) exp: i64,
    /// Makes two tokens of the same second differ.
    pub(crate) jti: String,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    /// Extensions that must be understood (RFC 7515, 4.1.11). None are supported.
    crit: Option<serde_json::Value>,
}

/// Signs a token.
pub(crate) fn sign(key: &MacKey, claims: &Claims) -> Result<String> {
    let claims = serde_json::to_vec(claims).map_err(|error| AuthError::Internal {
        action: "write a token",
        source: Box::new(error),
    })?;
    let header = URL_SAFE_NO_PAD.encode(br#"{"alg":"HS256","typ":"JWT"}"#);
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims));
    let signature = key.sign(signed.as_bytes());
    Ok(format!("{signed}.{signature}"))
}

/// Parses a token after checking its signature.
pub(crate) fn read(key: &MacKey, token: &str, now_ms: i64) -> Result<Claims, Rejection> {
    let claims = read_signed(key, token)?;
    let claims: Claims = serde_json::from_slice(&claims).map_err(|_| Rejection::Malformed)?;
    if claims.exp.saturating_mul(1000) <= now_ms {
        return Err(Rejection::Expired);
    }
    Ok(claims)
}

/// Says whether a text has the shape of a token.
pub(crate) fn is_like(text: &str) -> bool {
    text.len() <= MAX_LEN && text.split('.').count() == 3
}

/// Says whether this server signed a token, expired or not.
pub(crate) fn is_signed(key: &MacKey, token: &str) -> bool {
    read_signed(key, token).is_ok()
}

fn read_signed(key: &MacKey, token: &str) -> Result<Vec<u8>, Rejection> {
    if !is_like(token) {
        return Err(Rejection::Malformed);
    }
    let (signed, signature) = token.rsplit_once('.').ok_or(Rejection::Malformed)?;
    let (header, claims) = signed.split_once('.').ok_or(Rejection::Malformed)?;
    let decode = |part: &str| {
        URL_SAFE_NO_PAD
            .decode(part)
            .map_err(|_| Rejection::Malformed)
    };
    let header: Header =
        serde_json::from_slice(&decode(header)?).map_err(|_| Rejection::Malformed)?;
    if header.alg != "HS256"
        || header.crit.is_some()
        || !key.is_signed(signed.as_bytes(), signature)
    {
        return Err(Rejection::Forged);
    }
    decode(claims)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> MacKey {
        MacKey::new(b"a secret of this very test")
    }

    fn claims() -> Claims {
        Claims {
            sub: "alice".to_owned(),
            role: Role::User,
            sid: "s1".to_owned(),
            iat: 1000,
            exp: 2000,
            jti: "j1".to_owned(),
        }
    }

    fn with_header(header: &str, key: &MacKey) -> String {
        let claims = serde_json::to_vec(&claims()).unwrap();
        let signed = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(header),
            URL_SAFE_NO_PAD.encode(claims)
        );
        let signature = key.sign(signed.as_bytes());
        format!("{signed}.{signature}")
    }

    #[test]
    fn a_token_is_ours_also_when_its_time_is_over() {
        let token = sign(&key(), &claims()).unwrap();
        assert_eq!(read(&key(), &token, 3_000_000), Err(Rejection::Expired));
        assert!(is_signed(&key(), &token));
        assert!(!is_signed(&MacKey::new(b"somebody else's secret"), &token));
    }

    #[test]
    fn a_token_says_what_was_put_in() {
        let token = sign(&key(), &claims()).unwrap();
        assert_eq!(read(&key(), &token, 1_500_000), Ok(claims()));
    }

    #[test]
    fn the_standards_own_example_is_accepted() {
        // RFC 7515, appendix A.1. Its header has a line break in it, so it also shows that the bytes count, not the JSON.
        let secret = URL_SAFE_NO_PAD
            .decode("AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow")
            .unwrap();
        let token = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\
            eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.\
            dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let text = read_signed(&MacKey::new(&secret), token).unwrap();
        assert!(text.starts_with(br#"{"iss":"joe""#));
    }

    #[test]
    fn a_token_ends_at_its_time() {
        let token = sign(&key(), &claims()).unwrap();
        assert!(read(&key(), &token, 1_999_999).is_ok());
        assert_eq!(read(&key(), &token, 2_000_000), Err(Rejection::Expired));
    }

    #[test]
    fn another_secret_is_a_forgery_even_if_expired() {
        let token = sign(&MacKey::new(b"another secret of this test"), &claims()).unwrap();
        assert_eq!(read(&key(), &token, 3_000_000), Err(Rejection::Forged));
    }

    #[test]
    fn no_other_algorithm_is_taken_even_well_signed() {
        for header in [
            r#"{"alg":"none"}"#,
            r#"{"alg":"None"}"#,
            r#"{"alg":"HS512"}"#,
            r#"{"alg":"RS256"}"#,
            r#"{"alg":"HS256","crit":["b64"],"b64":false}"#,
        ] {
            let token = with_header(header, &key());
            assert_eq!(read(&key(), &token, 0), Err(Rejection::Forged), "{header}");
        }
        let token = with_header(r#"{"alg":"none"}"#, &key());
        let unsigned = format!("{}.", token.rsplit_once('.').unwrap().0);
        assert_eq!(read(&key(), &unsigned, 0), Err(Rejection::Forged));
    }

    #[test]
    fn a_changed_claim_is_a_forgery() {
        let token = sign(&key(), &claims()).unwrap();
        let parts: Vec<_> = token.split('.').collect();
        let admin = serde_json::to_vec(&Claims {
            role: Role::Admin,
            ..claims()
        })
        .unwrap();
        let forged = format!(
            "{}.{}.{}",
            parts[0],
            URL_SAFE_NO_PAD.encode(admin),
            parts[2]
        );
        assert_eq!(read(&key(), &forged, 0), Err(Rejection::Forged));
    }

    #[test]
    fn other_text_is_malformed() {
        let long = "a".repeat(MAX_LEN) + ".b.c";
        for text in [
            "",
            ".",
            "..",
            "a.b",
            "a.b.c.d",
            "é.é.é",
            "e30.e30.e30",
            &long,
        ] {
            assert_eq!(read(&key(), text, 0), Err(Rejection::Malformed), "{text:?}");
        }
    }
}
