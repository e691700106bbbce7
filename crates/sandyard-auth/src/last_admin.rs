//! Makes sure that one enabled admin is left.
//!
//! Two admins that demote each other at the same moment would each see the other as an admin. So a change that may lower the number of
//! admins holds a mutex on this server and a lease among all servers.

use std::time::Duration;

use sandyard_core::Role;

use crate::auth::Auth;
use crate::error::{AuthError, Result};

const LEASE: &str = "auth.admins";
/// How long the check and the change take at most. A server that dies with the lease delays the others that long.
const LEASE_MS: i64 = 10_000;
const RETRY_EVERY: Duration = Duration::from_millis(50);
const MAX_ATTEMPTS: usize = 240;

impl Auth {
    /// Runs `change`, which may take the admin role from `name`, unless `name` is the last enabled admin.
    pub(crate) async fn unless_last_admin<T>(
        &self,
        name: &str,
        change: impl AsyncFnOnce() -> Result<T>,
    ) -> Result<T> {
        let _mutex = self.inner.admins.lock().await;
        self.take_admins_lease().await?;
        let done = match self.check_not_last_admin(name).await {
            Ok(()) => change().await,
            Err(error) => Err(error),
        };
        // If this fails, the lease expires.
        let _ = self.set_admins_lease(0).await;
        done
    }

    async fn check_not_last_admin(&self, name: &str) -> Result<()> {
        let users = self.store().users().await?;
        let mut admins = users
            .iter()
            .filter(|user| user.role == Role::Admin && !user.is_disabled);
        match (admins.next(), admins.next()) {
            (Some(only), None) if only.name == name => Err(AuthError::LastAdmin(name.to_owned())),
            _ => Ok(()),
        }
    }

    async fn take_admins_lease(&self) -> Result<()> {
        for _ in 0..MAX_ATTEMPTS {
            if self.set_admins_lease(self.now_ms() + LEASE_MS).await? {
                return Ok(());
            }
            tokio::time::sleep(RETRY_EVERY).await;
        }
        Err(AuthError::Busy)
    }

    async fn set_admins_lease(&self, until_ms: i64) -> Result<bool> {
        let holder = &self.inner.holder;
        Ok(self
            .store()
            .take_lease(LEASE, holder, self.now_ms(), until_ms)
            .await?)
    }
}
