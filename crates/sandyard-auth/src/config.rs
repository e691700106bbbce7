//! Settings of the authentication.

use std::fmt;
use std::time::Duration;

/// How long credentials are valid, and when a user is locked out.
#[derive(Clone)]
pub struct AuthConfig {
    /// How long an access token is valid.
    pub token_ttl: Duration,
    /// How long a session is valid after its last refresh.
    pub refresh_ttl: Duration,
    /// Number of wrong passwords in a row that lock a user out.
    pub max_failures: u32,
    /// How long a user is locked out.
    pub lock_for: Duration,
    /// The key that signs access tokens. None for a key that is created once and stored, so that all servers of the store share it.
    pub jwt_secret: Option<String>,
    /// Memory for hashing one password, in KiB. It makes guessing from a stolen database expensive.
    pub password_memory_kib: u32,
}

impl Default for AuthConfig {
    fn default() -> Self {
        Self {
            token_ttl: Duration::from_secs(24 * 60 * 60),
            refresh_ttl: Duration::from_secs(30 * 24 * 60 * 60),
            max_failures: 5,
            lock_for: Duration::from_secs(300),
            jwt_secret: None,
            password_memory_kib: 19 * 1024,
        }
    }
}

impl fmt::Debug for AuthConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthConfig")
            .field("token_ttl", &self.token_ttl)
            .field("refresh_ttl", &self.refresh_ttl)
            .field("max_failures", &self.max_failures)
            .field("lock_for", &self.lock_for)
            .field("has_jwt_secret", &self.jwt_secret.is_some())
            .field("password_memory_kib", &self.password_memory_kib)
            .finish()
    }
}

/// A duration in milliseconds, bounded so that adding it to a time cannot overflow.
pub(crate) fn as_ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_does_not_show_the_secret() {
        let config = AuthConfig {
            jwt_secret: Some("correct horse".to_owned()),
            ..AuthConfig::default()
        };
        assert!(!format!("{config:?}").contains("horse"));
    }

    #[test]
    fn an_absurd_duration_can_still_be_added_to_a_time() {
        assert!(as_ms(Duration::MAX).checked_add(i64::MAX / 4).is_some());
    }
}
