//! A fresh database for one test.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sandyard_store::{Store, StoreError, StoreResult};
use tempfile::TempDir;

use crate::servers::Postgres;

/// Where one test's database is. Gone with it.
pub(crate) struct Home {
    pub(crate) url: String,
    _directory: Option<TempDir>,
    pub(crate) postgres: Option<Arc<Postgres>>,
}

impl Home {
    pub(crate) fn memory() -> Self {
        Self {
            url: "sqlite::memory:".to_owned(),
            _directory: None,
            postgres: None,
        }
    }

    pub(crate) fn file() -> Self {
        let directory = tempfile::tempdir().unwrap();
        // A name that has to be escaped, to see that it is.
        let path = directory.path().join("a b%20ü.db");
        Self {
            url: format!("sqlite://{}", path.display()).replace('%', "%25"),
            _directory: Some(directory),
            postgres: None,
        }
    }

    pub(crate) async fn postgres() -> Self {
        let server = Postgres::shared().await;
        Self {
            url: server.new_database().await,
            _directory: None,
            postgres: Some(server),
        }
    }

    /// Says whether two stores can share it.
    pub(crate) fn is_shared(&self) -> bool {
        self.url != "sqlite::memory:"
    }

    /// Opens it. A server of tests on a busy machine may not have a connection to give in the time that it has.
    pub(crate) async fn open(&self) -> Store {
        patiently(|| Store::open(&self.url)).await
    }

    /// Two stores on one database, as two servers have them; in memory, the same one twice.
    pub(crate) async fn open_two(&self) -> (Store, Store) {
        let one = self.open().await;
        let other = if self.is_shared() {
            self.open().await
        } else {
            one.clone()
        };
        (one, other)
    }
}

/// Does something until the database has a connection for it.
pub(crate) async fn patiently<T, F: Future<Output = StoreResult<T>>>(attempt: impl Fn() -> F) -> T {
    let give_up = Instant::now() + Duration::from_secs(60);
    loop {
        match attempt().await {
            Err(StoreError::Unavailable { .. }) if Instant::now() < give_up => {}
            done => return done.unwrap(),
        }
    }
}
