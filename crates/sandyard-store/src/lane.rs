//! The few connections to a SQLite file.
//!
//! `sqlx`'s pool asks a connection for a sign of life whenever it comes back, which costs a file's connection as much as
//! a query. These cannot break, so they are simply kept.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use sqlx::{AnyConnection, Connection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Connections that do the same work. Whoever comes first is served first.
pub(crate) struct Lane {
    idle: Mutex<Vec<AnyConnection>>,
    places: Arc<Semaphore>,
}

impl Lane {
    pub(crate) fn new(connections: Vec<AnyConnection>) -> Arc<Self> {
        Arc::new(Self {
            places: Arc::new(Semaphore::new(connections.len())),
            idle: Mutex::new(connections),
        })
    }

    /// Borrows a connection; none: the lane was closed.
    pub(crate) async fn borrow(self: &Arc<Self>) -> Option<Borrowed> {
        let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
        let connection = lock(&self.idle).pop();
        Some(Borrowed {
            connection: Some(connection?),
            lane: Arc::clone(self),
            _place: place,
        })
    }

    /// Closes the idle connections, and lends no more.
    pub(crate) async fn close(&self) {
        self.places.close();
        let idle = std::mem::take(&mut *lock(&self.idle));
        for connection in idle {
            // Nothing is lost: what was committed is in the file.
            let _ = connection.close().await;
        }
    }
}

/// A borrowed connection. It goes back by itself; an unfinished transaction was rolled back before that.
pub(crate) struct Borrowed {
    connection: Option<AnyConnection>,
    lane: Arc<Lane>,
    // Declared last, so that the connection is back before the next in line is called.
    _place: OwnedSemaphorePermit,
}

impl Deref for Borrowed {
    type Target = AnyConnection;

    fn deref(&self) -> &AnyConnection {
        self.connection.as_ref().expect("taken only by drop")
    }
}

impl DerefMut for Borrowed {
    fn deref_mut(&mut self) -> &mut AnyConnection {
        self.connection.as_mut().expect("taken only by drop")
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take()
            && !self.lane.places.is_closed()
        {
            lock(&self.lane.idle).push(connection);
        }
    }
}

/// A panic elsewhere leaves the list as good as it was.
fn lock(idle: &Mutex<Vec<AnyConnection>>) -> std::sync::MutexGuard<'_, Vec<AnyConnection>> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}
