//! One interface to both database engines: reads, single writes, transactions.
//!
//! | | SQLite | PostgreSQL |
//! |---|---|---|
//! | connections | one writer, a few readers | a pool |
//! | a transaction | `BEGIN IMMEDIATE`: writers queue, none is refused | read committed, with locks where it matters |
//! | a broken connection | is replaced by a new one; what failed on it is not repeated | reads and repeatable writes are sent on another one; other writes fail as `Unavailable` |

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AnyPool, Connection, Transaction};
use tokio::time::timeout;

use crate::error::{Result, StoreError, is_collision, is_transient};
use crate::sql::Sql;
use crate::sqlite_pool::{Faults, PooledConnection, SqlitePool};

/// Longest time for one statement. A database that takes longer counts as unreachable.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(15);
/// How often a statement is repeated after a deadlock or serialization failure.
const COLLISIONS: usize = 8;
/// How often a repeatable statement is repeated after its disk failed: once per connection from before the failure.
const STALE: usize = 3;

/// The database engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

/// The connections to a database.
pub(crate) enum Db {
    /// For a database in memory both pools are the same one.
    Sqlite {
        writer: Arc<SqlitePool>,
        readers: Arc<SqlitePool>,
    },
    Postgres(AnyPool),
}

/// Whether a statement reads or writes, which decides the connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Read,
    Write,
}

impl Db {
    pub(crate) fn engine(&self) -> Engine {
        match self {
            Self::Sqlite { .. } => Engine::Sqlite,
            Self::Postgres(_) => Engine::Postgres,
        }
    }

    /// The file of a SQLite database; none for a database in memory.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite { writer, .. } => writer.database(),
            Self::Postgres(_) => None,
        }
    }

    /// Number of idle and of used connections.
    pub(crate) fn connections(&self) -> (usize, usize) {
        match self {
            // The same pool twice for a database in memory, of which one is enough.
            Self::Sqlite { writer, readers } if Arc::ptr_eq(writer, readers) => {
                writer.connections()
            }
            Self::Sqlite { writer, readers } => {
                let (writer, readers) = (writer.connections(), readers.connections());
                (writer.0 + readers.0, writer.1 + readers.1)
            }
            Self::Postgres(pool) => {
                let idle = pool.num_idle();
                (idle, (pool.size() as usize).saturating_sub(idle))
            }
        }
    }

    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite { writer, readers } => {
                readers.close().await;
                writer.close().await;
            }
            Self::Postgres(pool) => pool.close().await,
        }
    }

    /// Reads rows.
    pub(crate) async fn read(&self, action: &'static str, sql: Sql) -> Result<Vec<AnyRow>> {
        let sql = sql.repeatable();
        self.statement(action, Purpose::Read, &sql, fetch).await
    }

    /// Reads one row.
    pub(crate) async fn read_one(&self, action: &'static str, sql: Sql) -> Result<Option<AnyRow>> {
        let sql = sql.repeatable();
        self.statement(action, Purpose::Read, &sql, fetch_one).await
    }

    /// Writes with one statement. Returns its rows.
    pub(crate) async fn write(&self, action: &'static str, sql: Sql) -> Result<Vec<AnyRow>> {
        self.statement(action, Purpose::Write, &sql, fetch).await
    }

    /// Writes with one statement. Returns how many rows it changed.
    pub(crate) async fn execute(&self, action: &'static str, sql: Sql) -> Result<u64> {
        self.statement(action, Purpose::Write, &sql, execute).await
    }

    /// Borrows a connection for a transaction.
    pub(crate) async fn writer(&self, action: &'static str) -> Result<Writer> {
        let source = match self {
            Self::Sqlite { writer, .. } => WriterSource::SqlitePool(borrow(action, writer).await?),
            Self::Postgres(pool) => WriterSource::Pool(pool.clone()),
        };
        Ok(Writer { source, action })
    }

    async fn statement<T>(
        &self,
        action: &'static str,
        purpose: Purpose,
        sql: &Sql,
        run: impl AsyncFn(&mut AnyConnection, &Sql) -> sqlx::Result<T>,
    ) -> Result<T> {
        let mut collisions = 0;
        let mut repeats = match self {
            Self::Postgres(pool) if sql.is_repeatable() => pool.options().get_max_connections(),
            _ => 0,
        };
        let mut stale = if sql.is_repeatable() { STALE } else { 0 };
        loop {
            let error = match self.attempt(action, purpose, sql, &run).await {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(error)) => error,
                // That connection is discarded, and the file may work again.
                Err(StoreError::DiskFailed { .. }) if stale > 0 => {
                    stale -= 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            if is_collision(&error) && collisions < COLLISIONS {
                collisions += 1;
            } else if is_broken(&error) && repeats > 0 {
                repeats -= 1;
            } else {
                return Err(StoreError::of(action, &error));
            }
        }
    }

    async fn attempt<T>(
        &self,
        action: &'static str,
        purpose: Purpose,
        sql: &Sql,
        run: &impl AsyncFn(&mut AnyConnection, &Sql) -> sqlx::Result<T>,
    ) -> Result<sqlx::Result<T>> {
        match self {
            Self::Sqlite { writer, readers } => {
                let pool = if purpose == Purpose::Read {
                    readers
                } else {
                    writer
                };
                let mut borrowed = borrow(action, pool).await?;
                let (connection, faults) = borrowed.split();
                run(connection, sql)
                    .await
                    .map(Ok)
                    .map_err(|error| faults.report(action, &error))
            }
            Self::Postgres(pool) => {
                let mut connection = match pool.acquire().await {
                    Ok(connection) => connection,
                    Err(error) => return Ok(Err(error)),
                };
                if let Ok(result) = timeout(STATEMENT_TIMEOUT, run(&mut connection, sql)).await {
                    return Ok(result);
                }
                // Its answer may still arrive, and would be taken for the answer to the next statement.
                connection.close_on_drop();
                Err(StoreError::too_slow(action))
            }
        }
    }
}

async fn borrow(action: &'static str, pool: &Arc<SqlitePool>) -> Result<PooledConnection> {
    pool.borrow()
        .await
        .map_err(|error| StoreError::of_file(action, &error, pool.database()))
}

async fn fetch(connection: &mut AnyConnection, sql: &Sql) -> sqlx::Result<Vec<AnyRow>> {
    sql.query().fetch_all(connection).await
}

async fn fetch_one(connection: &mut AnyConnection, sql: &Sql) -> sqlx::Result<Option<AnyRow>> {
    sql.query().fetch_optional(connection).await
}

async fn execute(connection: &mut AnyConnection, sql: &Sql) -> sqlx::Result<u64> {
    Ok(sql.query().execute(connection).await?.rows_affected())
}

/// A connection, or a pool, for a transaction.
pub(crate) struct Writer {
    source: WriterSource,
    action: &'static str,
}

enum WriterSource {
    SqlitePool(PooledConnection),
    Pool(AnyPool),
}

impl Writer {
    /// Begins a transaction. Dropping it before the commit rolls it back.
    pub(crate) async fn begin(&mut self) -> Result<Tx<'_>> {
        let action = self.action;
        let (started, faults) = match &mut self.source {
            WriterSource::SqlitePool(borrowed) => {
                let (connection, faults) = borrowed.split();
                let started = connection.begin_with("BEGIN IMMEDIATE").await;
                (started, Some(faults))
            }
            // A connection whose server does not answer blocks BEGIN, too.
            WriterSource::Pool(pool) => match timeout(STATEMENT_TIMEOUT, begin_on(pool)).await {
                Ok(started) => (started, None),
                Err(_) => (Err(sqlx::Error::PoolTimedOut), None),
            },
        };
        let transaction = started.map_err(|error| failure(action, faults, &error))?;
        Ok(Tx {
            transaction,
            action,
            faults,
        })
    }
}

/// Describes a failure, and reports it for a pooled SQLite connection.
fn failure(action: &'static str, faults: Option<&Faults>, error: &sqlx::Error) -> StoreError {
    match faults {
        Some(faults) => faults.report(action, error),
        None => StoreError::of(action, error),
    }
}

/// The same for a time-out.
fn too_slow(action: &'static str, faults: Option<&Faults>) -> StoreError {
    if let Some(faults) = faults {
        faults.set_in_doubt();
    }
    StoreError::too_slow(action)
}

/// Says whether the connection is broken, so that another one may work. After a restart of the database, every connection of the pool is.
fn is_broken(error: &sqlx::Error) -> bool {
    is_transient(error) && !matches!(error, sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed)
}

/// Nothing was done yet, so a broken connection is replaced by another one.
async fn begin_on(pool: &AnyPool) -> sqlx::Result<Transaction<'static, sqlx::Any>> {
    let attempts = pool.options().get_max_connections() + 1;
    for _ in 1..attempts {
        match pool.begin().await {
            Err(error) if is_broken(&error) => {}
            started => return started,
        }
    }
    pool.begin().await
}

/// A transaction.
pub(crate) struct Tx<'c> {
    transaction: Transaction<'c, sqlx::Any>,
    action: &'static str,
    /// Where failures of a pooled SQLite connection are reported.
    faults: Option<&'c Faults>,
}

impl Tx<'_> {
    pub(crate) async fn rows(&mut self, sql: Sql) -> Result<Vec<AnyRow>> {
        let rows = timeout(
            STATEMENT_TIMEOUT,
            sql.query().fetch_all(&mut *self.transaction),
        )
        .await;
        self.result(rows)
    }

    pub(crate) async fn execute(&mut self, sql: Sql) -> Result<u64> {
        let done = timeout(
            STATEMENT_TIMEOUT,
            sql.query().execute(&mut *self.transaction),
        )
        .await;
        Ok(self.result(done)?.rows_affected())
    }

    /// Runs several statements without values.
    pub(crate) async fn script(&mut self, script: &'static str) -> Result<()> {
        let done = sqlx::raw_sql(script).execute(&mut *self.transaction).await;
        done.map(drop)
            .map_err(|error| failure(self.action, self.faults, &error))
    }

    pub(crate) async fn commit(self) -> Result<()> {
        let (action, faults) = (self.action, self.faults);
        match timeout(STATEMENT_TIMEOUT, self.transaction.commit()).await {
            Ok(done) => done.map_err(|error| failure(action, faults, &error)),
            Err(_) => Err(too_slow(action, faults)),
        }
    }

    fn result<T>(&self, result: Result<sqlx::Result<T>, tokio::time::error::Elapsed>) -> Result<T> {
        match result {
            Ok(done) => done.map_err(|error| failure(self.action, self.faults, &error)),
            Err(_) => Err(too_slow(self.action, self.faults)),
        }
    }
}
