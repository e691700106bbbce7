//! Settings of the authentication.

use std::fmt;
use std::time::Duration;

/// How long things last and how much is endured.
#[derive(Clone)]
pub struct AuthConfig {
    /// How long an access token is good.
    pub token_ttl: Duration,
    /// How long a session lives after its last refresh.
    pub refresh_ttl: Duration,
    /// So many wrong passwords in a row lock a user out.
    pub max_failures: u32,
    /// For how long.
    pub lock_for: Duration,
    /// Signs the access tokens. None: made once and kept in the store, so that all servers of it share it.
    pub jwt_secret: Option<String>,
    /// Memory that hashing one password takes, in KiB: what makes guessing from a stolen database dear.
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

/// A duration as the store counts.
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
