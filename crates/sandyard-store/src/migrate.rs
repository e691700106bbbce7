//! Migrates the schema.
//!
//! Each version is one file in `migrations/` that runs once. All missing versions run in one transaction under a lock, so two servers that
//! start at once do not collide, and a kill in between leaves the old version.

use std::time::SystemTime;

use crate::db::{Db, Engine};
use crate::error::{Result, StoreError};
use crate::sql::{Record, sql};

/// All versions, oldest first. A released version never changes.
const MIGRATIONS: [&str; 2] = [
    include_str!("../migrations/0001_tables.sql"),
    include_str!("../migrations/0002_public_snapshots.sql"),
];
/// The number of the advisory lock in PostgreSQL.
const LOCK: i64 = 0x5a4e_4459_4152_4401;

/// Runs the missing migrations. Fails for a database of a newer version.
pub(crate) async fn migrate(db: &Db) -> Result<()> {
    let mut writer = db.writer("migrating the schema").await?;
    let mut tx = writer.begin().await?;
    if db.engine() == Engine::Postgres {
        tx.rows(sql("SELECT pg_advisory_xact_lock($1)").int(LOCK))
            .await?;
    }
    tx.script(
        "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL PRIMARY KEY, applied_ms BIGINT NOT NULL)",
    )
    .await?;
    let rows = tx
        .rows(sql("SELECT MAX(version) FROM schema_version"))
        .await?;
    let version = match rows.first() {
        Some(row) => Record::first_int("schema_version", row)?.unwrap_or(0),
        None => 0,
    };
    let supported = MIGRATIONS.len() as i64;
    if version > supported {
        return Err(StoreError::TooNew { version, supported });
    }
    for (migration, number) in MIGRATIONS.into_iter().zip(1..) {
        if number > version {
            tx.script(migration).await?;
            let applied = sql("INSERT INTO schema_version (version, applied_ms) VALUES ($1, $2)")
                .int(number)
                .int(now_ms());
            tx.execute(applied).await?;
        }
    }
    tx.commit().await
}

/// The time, only for information.
fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as i64)
}
