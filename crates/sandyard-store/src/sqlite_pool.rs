//! The few connections to a SQLite file.
//!
//! `sqlx`'s pool pings a connection whenever it comes back, which costs as much as a query. A pool keeps its connections
//! without that, and replaces the ones that cannot be trusted any more.
//!
//! A connection is replaced for two reasons. After an I/O error or on a full disk SQLite rolls the transaction back on its
//! own; the ROLLBACK of `sqlx` then finds none, and `sqlx` counts one open transaction for ever: every later BEGIN on that
//! connection fails. And a worker thread that ended answers nothing.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::{AnyConnection, Connection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::connect::Opener;
use crate::error::{StoreError, leaves_connection_in_doubt};

/// How long a rollback that is under way may take before its connection is replaced.
const ROLLBACK_WITHIN: Duration = Duration::from_secs(15);

/// Connections that do the same work, lent in the order of the requests.
pub(crate) struct SqlitePool {
    idle: Mutex<Vec<AnyConnection>>,
    slots: Arc<Semaphore>,
    /// Opens replacements; none for a database in memory, which would be lost with its connection.
    opener: Option<Opener>,
}

impl SqlitePool {
    pub(crate) fn new(connections: Vec<AnyConnection>, opener: Option<Opener>) -> Arc<Self> {
        Arc::new(Self {
            slots: Arc::new(Semaphore::new(connections.len())),
            idle: Mutex::new(connections),
            opener,
        })
    }

    /// Borrows a connection, and opens it first if the last one was discarded. A slot without a connection stays a slot: the
    /// next borrower tries to open one again.
    pub(crate) async fn borrow(self: &Arc<Self>) -> sqlx::Result<PooledConnection> {
        let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await else {
            return Err(sqlx::Error::PoolClosed);
        };
        let connection = lock(&self.idle).pop();
        let mut borrowed = PooledConnection {
            connection,
            faults: Faults {
                is_in_doubt: AtomicBool::new(false),
                database: self.opener.as_ref().map(|opener| opener.path.clone()),
            },
            pool: Arc::clone(self),
            _slot: slot,
        };
        if let Some(opener) = &self.opener
            && !borrowed.is_usable().await
        {
            if borrowed.connection.take().is_some() {
                tracing::warn!(
                    "A connection to the database is replaced: its transaction never ended"
                );
            }
            borrowed.connection = Some(opener.open().await?);
        }
        Ok(borrowed)
    }

    /// The database file; none in memory.
    pub(crate) fn database(&self) -> Option<&Path> {
        self.opener.as_ref().map(|opener| &*opener.path)
    }

    /// Closes the idle connections, and lends no more.
    pub(crate) async fn close(&self) {
        self.slots.close();
        let idle = std::mem::take(&mut *lock(&self.idle));
        for connection in idle {
            // Nothing is lost: what was committed is in the file.
            let _ = connection.close().await;
        }
    }
}

/// A borrowed connection. Dropped, it goes back to its pool, or is discarded after a failure that leaves it in doubt.
pub(crate) struct PooledConnection {
    connection: Option<AnyConnection>,
    faults: Faults,
    pool: Arc<SqlitePool>,
    // Declared last, so that the connection is back before the next borrower wakes.
    _slot: OwnedSemaphorePermit,
}

impl PooledConnection {
    /// The connection, and where its failures are reported.
    pub(crate) fn split(&mut self) -> (&mut AnyConnection, &Faults) {
        let connection = self.connection.as_mut().expect("taken only by drop");
        (connection, &self.faults)
    }

    /// Says whether a transaction can begin on it. A rollback may still be under way: a dropped transaction does not wait for
    /// it.
    async fn is_usable(&mut self) -> bool {
        let Some(connection) = &mut self.connection else {
            return false;
        };
        if !connection.is_in_transaction() {
            return true;
        }
        // The worker handles commands in their order, so the ping is answered after the rollback.
        let pinged = timeout(ROLLBACK_WITHIN, connection.ping()).await;
        matches!(pinged, Ok(Ok(()))) && !connection.is_in_transaction()
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        let is_discarded = self.pool.opener.is_some() && self.faults.is_in_doubt();
        if let Some(connection) = self.connection.take()
            && !is_discarded
            && !self.pool.slots.is_closed()
        {
            lock(&self.pool.idle).push(connection);
        }
    }
}

/// Failures of a borrowed connection.
pub(crate) struct Faults {
    is_in_doubt: AtomicBool,
    database: Option<Arc<Path>>,
}

impl Faults {
    /// Notes a failure and describes it.
    pub(crate) fn report(&self, action: &'static str, error: &sqlx::Error) -> StoreError {
        if leaves_connection_in_doubt(error) {
            self.set_in_doubt();
        }
        StoreError::of_file(action, error, self.database.as_deref())
    }

    /// Notes that nobody knows how the last statement ended.
    pub(crate) fn set_in_doubt(&self) {
        self.is_in_doubt.store(true, Ordering::Relaxed);
    }

    fn is_in_doubt(&self) -> bool {
        self.is_in_doubt.load(Ordering::Relaxed)
    }
}

/// A panic elsewhere leaves the list as good as it was.
fn lock(idle: &Mutex<Vec<AnyConnection>>) -> std::sync::MutexGuard<'_, Vec<AnyConnection>> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}
