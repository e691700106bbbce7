//! Hashes and checks passwords with argon2id, a few at a time.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::available_parallelism;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{Error as HashError, PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::error::{AuthError, Result};

const MIN_LEN: usize = 8;
const MAX_LEN: usize = 1024;

/// Passes over the memory. OWASP recommends two with 19 MiB.
const PASSES: u32 = 2;

/// Hashes and checks passwords on at most half of the cores, so that logins cannot exhaust the server.
#[derive(Debug)]
pub(crate) struct Passwords {
    params: Params,
    slots: Arc<Semaphore>,
    /// Checked for an unknown user, so that the answer takes as long.
    dummy_hash: String,
    checks: AtomicU64,
}

impl Passwords {
    pub(crate) async fn open(memory_kib: u32) -> Result<Self> {
        let params =
            Params::new(memory_kib, PASSES, 1, None).map_err(|error| internal(Box::new(error)))?;
        let cores = available_parallelism().map_or(1, NonZero::get);
        let mut passwords = Self {
            params,
            slots: Arc::new(Semaphore::new((cores / 2).clamp(1, 4))),
            dummy_hash: String::new(),
            checks: AtomicU64::new(0),
        };
        passwords.dummy_hash = passwords.hash("nobody has this password").await?;
        Ok(passwords)
    }

    /// Hashes a new password, after checking its length.
    pub(crate) async fn hash(&self, password: &str) -> Result<String> {
        if !(MIN_LEN..=MAX_LEN).contains(&password.len()) {
            return Err(AuthError::Invalid {
                field: "password",
                detail: "must have 8 to 1024 bytes",
            });
        }
        let password = password.to_owned();
        let params = self.params.clone();
        self.work(move || {
            let hash: PasswordHash = argon2(params).hash_password(password.as_bytes())?;
            Ok(hash.to_string())
        })
        .await
    }

    /// Says whether a password matches a hash. Without a hash it does not, which takes as long.
    pub(crate) async fn is_correct(&self, hash: Option<&str>, password: &str) -> Result<bool> {
        self.checks.fetch_add(1, Ordering::Relaxed);
        let is_possible = hash.is_some() && password.len() <= MAX_LEN;
        let password = if is_possible { password } else { "" }.to_owned();
        let hash = hash.unwrap_or(&self.dummy_hash).to_owned();
        let params = self.params.clone();
        self.work(move || {
            let hash = PasswordHash::new(&hash)?;
            match argon2(params).verify_password(password.as_bytes(), &hash) {
                Ok(()) => Ok(is_possible),
                Err(HashError::PasswordInvalid) => Ok(false),
                Err(error) => Err(error.into()),
            }
        })
        .await
    }

    /// Number of passwords checked.
    pub(crate) fn checks(&self) -> u64 {
        self.checks.load(Ordering::Relaxed)
    }

    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
    ) -> Result<T> {
        let slot = Arc::clone(&self.slots)
            .acquire_owned()
            .await
            .map_err(|error| internal(Box::new(error)))?;
        // The slot moves into the thread: the work goes on if its caller is cancelled.
        spawn_blocking(move || {
            let done = work();
            drop(slot);
            done
        })
        .await
        .map_err(|error| internal(Box::new(error)))?
        .map_err(internal)
    }
}

fn argon2(params: Params) -> Argon2<'static> {
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

fn internal(source: Box<dyn std::error::Error + Send + Sync>) -> AuthError {
    AuthError::Internal {
        action: "hash a password",
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_right_password_is_correct() {
        let passwords = Passwords::open(64).await.unwrap();
        let hash = passwords.hash("correct horse").await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=64,t=2,p=1$"), "{hash}");
        assert!(
            passwords
                .is_correct(Some(&hash), "correct horse")
                .await
                .unwrap()
        );
        assert!(
            !passwords
                .is_correct(Some(&hash), "correct horsf")
                .await
                .unwrap()
        );
        assert!(!passwords.is_correct(Some(&hash), "").await.unwrap());
        assert_ne!(
            hash,
            passwords.hash("correct horse").await.unwrap(),
            "salted"
        );
    }

    #[tokio::test]
    async fn an_unknown_user_has_no_password_and_is_checked_anyway() {
        let passwords = Passwords::open(64).await.unwrap();
        for guess in ["nobody has this password", "", "x"] {
            assert!(!passwords.is_correct(None, guess).await.unwrap());
        }
        assert_eq!(passwords.checks(), 3);
    }

    #[tokio::test]
    async fn too_short_and_too_long_passwords_are_refused() {
        let passwords = Passwords::open(64).await.unwrap();
        assert!(passwords.hash("1234567").await.is_err());
        assert!(passwords.hash(&"a".repeat(1025)).await.is_err());
        let longest = "a".repeat(1024);
        let hash = passwords.hash(&longest).await.unwrap();
        assert!(passwords.is_correct(Some(&hash), &longest).await.unwrap());
        assert!(
            !passwords
                .is_correct(Some(&hash), &"a".repeat(1025))
                .await
                .unwrap()
        );
    }
}
