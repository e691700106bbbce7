//! How everything learns that the server ends, and how the server learns that everything has ended.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// The word that the server ends; an extension of every request, so that streams which would never end do.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    word: CancellationToken,
    tasks: TaskTracker,
}

/// Holds the server's end up, within its grace time.
#[derive(Debug)]
pub struct Hold(#[expect(dead_code, reason = "it is its drop that counts")] TaskTrackerToken);

impl Shutdown {
    /// Says it to everybody who holds a clone.
    pub fn begin(&self) {
        self.word.cancel();
        self.tasks.close();
    }

    /// Says whether it was said.
    pub fn has_begun(&self) -> bool {
        self.word.is_cancelled()
    }

    /// Waits for it.
    pub async fn wait(&self) {
        self.word.cancelled().await;
    }

    /// For work that outlives its request, as an upgraded connection does: the server waits for it.
    pub fn hold(&self) -> Hold {
        Hold(self.tasks.token())
    }

    /// Runs a task that the server waits for.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Waits until nothing is held up any more.
    pub(super) async fn finished(&self) {
        self.tasks.wait().await;
    }

    /// How much is under way.
    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }
}

impl<S: Sync> FromRequestParts<S> for Shutdown {
    type Rejection = Infallible;

    /// A request that came by no socket, as tests make them, has one that never begins.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_default())
    }
}
