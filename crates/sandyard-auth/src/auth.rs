//! The authentication, as the server holds it.

use std::fmt;
use std::sync::Arc;

use sandyard_core::Clock;
use sandyard_store::Store;
use tokio::sync::Mutex;

use crate::config::AuthConfig;
use crate::disabled_users::DisabledUsers;
use crate::error::Result;
use crate::key_cache::KeyCache;
use crate::lockout::Lockout;
use crate::password::Passwords;
use crate::random;
use crate::secret::Keys;

/// Knows who is asking. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Auth {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) config: AuthConfig,
    pub(crate) keys: Keys,
    pub(crate) passwords: Passwords,
    pub(crate) lockout: Lockout,
    pub(crate) key_cache: KeyCache,
    pub(crate) disabled_users: DisabledUsers,
    /// Held while the number of admins may shrink; see `last_admin`.
    pub(crate) admins: Mutex<()>,
    /// Names this server in leases that the servers of one store share.
    pub(crate) holder: String,
}

impl Auth {
    /// Opens the authentication over a store. The first server creates the installation's secret.
    pub async fn open(store: Store, clock: Clock, config: AuthConfig) -> Result<Self> {
        let keys = Keys::open(&store, config.jwt_secret.as_deref()).await?;
        let passwords = Passwords::open(config.password_memory_kib).await?;
        let inner = Inner {
            store,
            clock,
            config,
            keys,
            passwords,
            lockout: Lockout::new(),
            key_cache: KeyCache::default(),
            disabled_users: DisabledUsers::default(),
            admins: Mutex::default(),
            holder: random::hex_text::<10>()?,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Number of passwords checked since the start, for the metrics.
    pub fn password_checks(&self) -> u64 {
        self.inner.passwords.checks()
    }

    pub(crate) fn store(&self) -> &Store {
        &self.inner.store
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.inner.clock.now_ms()
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Auth")
            .field("config", &self.inner.config)
            .finish_non_exhaustive()
    }
}
