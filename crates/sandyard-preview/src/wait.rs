//! Waits for response headers for as long as something moves.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Interim responses (1xx) that are put up with before the final one.
const MAX_INTERIM: usize = 32;

/// What the request's body and the connection have seen so far.
#[derive(Debug)]
pub(crate) struct Progress {
    last: Mutex<Instant>,
    client_gone: AtomicBool,
    interim: AtomicUsize,
    flooded: Notify,
}

/// Why waiting ended without a response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum GaveUp {
    /// Nothing moved for too long.
    Quiet,
    /// Interim responses without end.
    Flooded,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self {
            last: Mutex::new(Instant::now()),
            client_gone: AtomicBool::new(false),
            interim: AtomicUsize::new(0),
            flooded: Notify::new(),
        }
    }

    /// Notes that bytes of the request were passed on.
    pub(crate) fn moved(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Notes that the client's body ended with an error.
    pub(crate) fn client_left(&self) {
        self.client_gone.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_client_gone(&self) -> bool {
        self.client_gone.load(Ordering::Relaxed)
    }

    /// Notes an interim response.
    pub(crate) fn interim(&self) {
        if self.interim.fetch_add(1, Ordering::Relaxed) >= MAX_INTERIM {
            self.flooded.notify_one();
        }
    }

    fn deadline(&self, limit: Duration) -> Instant {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) + limit
    }

    /// Waits for `work` until nothing has moved for `limit`.
    pub(crate) async fn wait<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = T>,
    ) -> Result<T, GaveUp> {
        let mut work = std::pin::pin!(work);
        loop {
            let deadline = self.deadline(limit);
            tokio::select! {
                biased;
                () = self.flooded.notified() => return Err(GaveUp::Flooded),
                done = &mut work => return Ok(done),
                () = sleep_until(deadline) => {
                    if self.deadline(limit) <= Instant::now() {
                        return Err(GaveUp::Quiet);
                    }
                }
            }
        }
    }
}
