//! Opens connections to the database.

use std::fs::{OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sandyard_core::percent::encode_path;
use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::{AnyConnection, ConnectOptions, Connection};

use crate::address::{Address, without_secrets};
use crate::db::Db;
use crate::disk;
use crate::error::{Result, StoreError, is_busy};
use crate::sqlite_pool::SqlitePool;

const OPENING: &str = "opening the database";
/// Read connections to a SQLite file. More would share the same cores.
const READERS: usize = 3;
/// Most connections to PostgreSQL, which by default accepts a hundred of all its clients.
const POOL: u32 = 16;
/// How long a caller waits for a connection to PostgreSQL.
const POOL_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection that was idle for longer is pinged before it is used.
const STALE: Duration = Duration::from_secs(1);
/// Attempts to open a SQLite file while another process switches it to WAL.
const OPEN_ATTEMPTS: usize = 100;

/// WAL with `synchronous = NORMAL`: a commit survives a kill of the process at any moment, because the kernel has it. A power failure may
/// lose the last commits, but never leaves half of one.
///
/// The last statement makes SQLite create the log, so that blocks can be reserved for it.
const WRITER_SETTINGS: &str = "PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; \
     PRAGMA foreign_keys = ON; PRAGMA journal_size_limit = 67108864; PRAGMA temp_store = MEMORY; \
     PRAGMA cache_size = -16384; SELECT count(*) FROM sqlite_schema;";
const READER_SETTINGS: &str =
    "PRAGMA busy_timeout = 10000; PRAGMA query_only = ON; PRAGMA cache_size = -8192;";
/// A server that died must not keep its locks: its transactions time out.
const POSTGRES_SETTINGS: &str = "SET idle_in_transaction_session_timeout = '30s'; SET statement_timeout = '60s'; \
     SET client_min_messages = warning; SET default_transaction_isolation = 'read committed'";

/// Connects to the database at `url`.
pub(crate) async fn connect(url: &str) -> Result<Db> {
    sqlx::any::install_default_drivers();
    let bad = |detail: String| StoreError::BadUrl {
        url: without_secrets(url),
        detail,
    };
    match Address::parse(url)? {
        Address::Memory => {
            let options = options("sqlite::memory:").map_err(|error| bad(error.to_string()))?;
            let connection = open_file(&options, WRITER_SETTINGS)
                .await
                .map_err(|error| StoreError::of(OPENING, &error))?;
            let pool = SqlitePool::new(vec![connection], None);
            Ok(Db::Sqlite {
                writer: pool.clone(),
                readers: pool,
            })
        }
        Address::File(path) => {
            make_private(&path).map_err(|error| bad(error.to_string()))?;
            let options = path
                .to_str()
                .ok_or_else(|| bad("its path is not UTF-8".to_owned()))
                .and_then(|path| {
                    options(&format!("sqlite://{}", encode_path(path)))
                        .map_err(|error| bad(error.to_string()))
                })?;
            let opener = |settings| Opener {
                options: options.clone(),
                settings,
                path: Arc::from(path.as_path()),
            };
            Ok(Db::Sqlite {
                writer: open_pool(opener(WRITER_SETTINGS), 1).await?,
                readers: open_pool(opener(READER_SETTINGS), READERS).await?,
            })
        }
        Address::Postgres(address) => {
            let options = options(&address).map_err(|error| bad(error.to_string()))?;
            connect_postgres(options).await
        }
    }
}

/// Options for `sqlx`. Statements are not logged, because some contain secrets.
pub(crate) fn options(url: &str) -> sqlx::Result<AnyConnectOptions> {
    Ok(AnyConnectOptions::from_str(url)?.disable_statement_logging())
}

/// Creates the file if it is missing, with mode 0600. SQLite gives its journal the mode of the file.
fn make_private(path: &Path) -> std::io::Result<()> {
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)?;
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    disk::reserve_database(&file, path);
    Ok(())
}

/// Opens connections to a SQLite file.
pub(crate) struct Opener {
    options: AnyConnectOptions,
    settings: &'static str,
    /// The database file.
    pub(crate) path: Arc<Path>,
}

impl Opener {
    pub(crate) async fn open(&self) -> sqlx::Result<AnyConnection> {
        let connection = open_file(&self.options, self.settings).await?;
        if self.settings == WRITER_SETTINGS {
            disk::reserve_log(&self.path);
        }
        Ok(connection)
    }
}

async fn open_pool(opener: Opener, count: usize) -> Result<Arc<SqlitePool>> {
    let mut connections = Vec::with_capacity(count);
    for _ in 0..count {
        let connection = opener.open().await;
        connections.push(
            connection.map_err(|error| StoreError::of_file(OPENING, &error, Some(&opener.path)))?,
        );
    }
    Ok(SqlitePool::new(connections, Some(opener)))
}

/// Opens a SQLite file. Switching it to WAL needs exclusive access for a moment and does not wait for it, so it is tried again while another
/// process does the same.
async fn open_file(
    options: &AnyConnectOptions,
    settings: &'static str,
) -> sqlx::Result<AnyConnection> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        match open_file_once(options, settings).await {
            Err(error) if is_busy(&error) && attempts < OPEN_ATTEMPTS => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            opened => return opened,
        }
    }
}

async fn open_file_once(
    options: &AnyConnectOptions,
    settings: &'static str,
) -> sqlx::Result<AnyConnection> {
    let mut connection = AnyConnection::connect_with(options).await?;
    sqlx::raw_sql(settings).execute(&mut connection).await?;
    Ok(connection)
}

async fn connect_postgres(options: AnyConnectOptions) -> Result<Db> {
    let pool = AnyPoolOptions::new()
        .max_connections(POOL)
        .acquire_timeout(POOL_TIMEOUT)
        .idle_timeout(Duration::from_secs(600))
        .test_before_acquire(false)
        .before_acquire(|connection, about| {
            Box::pin(async move {
                if about.idle_for > STALE {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
        .after_connect(|connection, _| {
            Box::pin(async move {
                sqlx::raw_sql(POSTGRES_SETTINGS).execute(connection).await?;
                Ok(())
            })
        })
        .connect_with(options)
        .await
        .map_err(|error| StoreError::of(OPENING, &error))?;
    Ok(Db::Postgres(pool))
}
