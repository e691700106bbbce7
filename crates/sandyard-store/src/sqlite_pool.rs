//! A pool of connections to a SQLite file.
//!
//! `sqlx`'s pool pings a connection whenever it is returned, which costs as much as a query. This pool does not, and replaces connections
//! in an unknown state.
//!
//! A connection is replaced for two reasons. After an I/O error or on a full disk SQLite rolls the transaction back itself; the ROLLBACK
//! of `sqlx` then finds none, and `sqlx` counts an open transaction forever, so that every later BEGIN on that connection fails. And a
//! connection whose worker thread has ended does not answer.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use sqlx::{AnyConnection, Connection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::connect::Opener;
use crate::error::{StoreError, leaves_connection_in_doubt};

/// How long a rollback in progress may take before its connection is replaced.
const ROLLBACK_WITHIN: Duration = Duration::from_secs(15);

/// Interchangeable connections, lent in the order of the requests.
pub(crate) struct SqlitePool {
    idle: Mutex<Vec<AnyConnection>>,
    slots: Arc<Semaphore>,
    size: usize,
    /// Opens replacements; none for a database in memory, which is lost with its connection.
    opener: Option<Opener>,
}

impl SqlitePool {
    pub(crate) fn new(connections: Vec<AnyConnection>, opener: Option<Opener>) -> Arc<Self> {
        Arc::new(Self {
            slots: Arc::new(Semaphore::new(connections.len())),
            size: connections.len(),
            idle: Mutex::new(connections),
            opener,
        })
    }

    /// Borrows a connection, or opens one if the last one was discarded. If that fails, the next borrower tries again.
    pub(crate) async fn borrow(self: &Arc<Self>) -> sqlx::Result<PooledConnection> {
        let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await else {
            return Err(sqlx::Error::PoolClosed);
        };
        let connection = self.idle.lock().pop();
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
                    "Replacing a connection to the database: its transaction did not end"
                );
            }
            borrowed.connection = Some(opener.open().await?);
        }
        Ok(borrowed)
    }

    /// The database file; none for a database in memory.
    pub(crate) fn database(&self) -> Option<&Path> {
        self.opener.as_ref().map(|opener| &*opener.path)
    }

    /// Number of idle and of used connections.
    pub(crate) fn connections(&self) -> (usize, usize) {
        let idle = self.slots.available_permits();
        (idle, self.size.saturating_sub(idle))
    }

    /// Closes the idle connections, and lends no more.
    pub(crate) async fn close(&self) {
        self.slots.close();
        let idle = std::mem::take(&mut *self.idle.lock());
        for connection in idle {
            // Commits are in the file already.
            let _ = connection.close().await;
        }
    }
}

/// A borrowed connection. Dropping it returns it to its pool, or discards it after a failure that leaves it in an unknown state.
pub(crate) struct PooledConnection {
    connection: Option<AnyConnection>,
    faults: Faults,
    pool: Arc<SqlitePool>,
    // Declared last, so that the connection is returned before the next borrower wakes.
    _slot: OwnedSemaphorePermit,
}

impl PooledConnection {
    /// The connection, and where its failures are reported.
    pub(crate) fn split(&mut self) -> (&mut AnyConnection, &Faults) {
        let connection = self.connection.as_mut().expect("taken only by drop");
        (connection, &self.faults)
    }

    /// Says whether a transaction can begin. A rollback may still be in progress: a dropped transaction does not wait for it.
    async fn is_usable(&mut self) -> bool {
        let Some(connection) = &mut self.connection else {
            return false;
        };
        if !connection.is_in_transaction() {
            return true;
        }
        // The worker handles commands in order, so the ping is answered after the rollback.
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
            self.pool.idle.lock().push(connection);
        }
    }
}

/// Failures of a borrowed connection.
pub(crate) struct Faults {
    is_in_doubt: AtomicBool,
    database: Option<Arc<Path>>,
}

impl Faults {
    /// Records a failure and describes it.
    pub(crate) fn report(&self, action: &'static str, error: &sqlx::Error) -> StoreError {
        if leaves_connection_in_doubt(error) {
            self.set_in_doubt();
        }
        StoreError::of_file(action, error, self.database.as_deref())
    }

    /// Records that the result of the last statement is unknown.
    pub(crate) fn set_in_doubt(&self) {
        self.is_in_doubt.store(true, Ordering::Relaxed);
    }

    fn is_in_doubt(&self) -> bool {
        self.is_in_doubt.load(Ordering::Relaxed)
    }
}
