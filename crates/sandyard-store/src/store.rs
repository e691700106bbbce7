//! Opens and closes the store. Each table has a file of its own.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use crate::connect::connect;
use crate::db::{Db, Engine};
use crate::disk;
use crate::error::Result;
use crate::migrate::migrate;
use crate::sql::sql;

/// How often the time is repeated in the value of a test write, about 40 kB in all.
const WRITE_CHECK_REPEATS: usize = 2_000;

/// The database. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    pub(crate) db: Arc<Db>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("kind", &self.kind())
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the database at `url` and migrates its schema: `sqlite:///path/file.db`, `sqlite::memory:`,
    /// `postgres://…`, `postgresql+asyncpg://…`. A missing SQLite file is created with mode 0600.
    ///
    /// On SQLite a commit survives a kill of the process at any moment; a power failure may lose the last commits, but
    /// never leaves half of one.
    pub async fn open(url: &str) -> Result<Self> {
        let db = connect(url).await?;
        let migrated = migrate(&db).await;
        if migrated.is_err() {
            db.close().await;
        }
        migrated?;
        Ok(Self { db: Arc::new(db) })
    }

    /// `sqlite` or `postgres`.
    pub fn kind(&self) -> &'static str {
        match self.db.engine() {
            Engine::Sqlite => "sqlite",
            Engine::Postgres => "postgres",
        }
    }

    /// Checks that the database answers.
    pub async fn ping(&self) -> Result<()> {
        self.db
            .read("checking the connection", sql("SELECT 1"))
            .await?;
        Ok(())
    }

    /// Commits a small transaction, to check that the database accepts writes.
    pub async fn check_write(&self) -> Result<()> {
        let mut writer = self.db.writer("testing a write").await?;
        let mut tx = writer.begin().await?;
        // As many pages as a create changes, or it would succeed where a create fails. A new value each time, because SQLite does not write a page
        // that stays the same.
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos());
        let upsert = sql("INSERT INTO meta (name, value) VALUES ('write_check', $1) \
             ON CONFLICT (name) DO UPDATE SET value = excluded.value")
        .text(&now.to_string().repeat(WRITE_CHECK_REPEATS));
        tx.execute(upsert).await?;
        tx.commit().await
    }

    /// Reserves disk space for the log of a SQLite file again, after the disk was full.
    pub fn restore_reserve(&self) {
        if let Some(database) = self.db.file() {
            disk::reserve_log(database);
        }
    }

    /// Number of idle and of used connections.
    pub fn connections(&self) -> (usize, usize) {
        self.db.connections()
    }

    /// Closes its connections.
    pub async fn close(&self) {
        self.db.close().await;
    }
}
