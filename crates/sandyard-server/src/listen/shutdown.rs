//! How all parts learn that the server shuts down, and how the server waits for them.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// The signal that the server shuts down; an extension of every request, so that endless streams end.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    signal: CancellationToken,
    tasks: TaskTracker,
}

/// Delays the end of the server until it is dropped, within the grace time.
#[derive(Debug)]
pub struct ShutdownHold(#[expect(dead_code, reason = "its drop matters")] TaskTrackerToken);

impl Shutdown {
    /// Begins the shutdown.
    pub fn begin(&self) {
        self.signal.cancel();
        self.tasks.close();
    }

    /// Says whether the shutdown has begun.
    pub fn has_begun(&self) -> bool {
        self.signal.is_cancelled()
    }

    /// Waits until the shutdown begins.
    pub async fn wait(&self) {
        self.signal.cancelled().await;
    }

    /// Delays the end of the server for work that outlives its request, as an upgraded connection does.
    pub fn hold(&self) -> ShutdownHold {
        ShutdownHold(self.tasks.token())
    }

    /// Runs a task that the server waits for.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Waits for all tasks and holds.
    pub(super) async fn finished(&self) {
        self.tasks.wait().await;
    }

    /// Number of tasks and holds.
    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }
}

impl<S: Sync> FromRequestParts<S> for Shutdown {
    type Rejection = Infallible;

    /// A request without a socket, as in tests, has a shutdown that never begins.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_default())
    }
}
