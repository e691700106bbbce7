//! A call of a tool: cancellation and progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::reply::{Answer, Problem};

/// What a tool's function gets besides its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Cancelled when the caller no longer wants the answer. Long work then ends itself and everything it started.
    pub(crate) cancelled: CancellationToken,
    /// Reports progress to the caller.
    pub(crate) progress: Progress,
}

impl Call {
    /// A call without progress that is never cancelled.
    pub(crate) fn quiet() -> Self {
        Self {
            cancelled: CancellationToken::new(),
            progress: Progress::default(),
        }
    }

    /// Does the work unless the call is cancelled first.
    pub(crate) async fn unless_cancelled(&self, work: impl Future<Output = Answer>) -> Answer {
        tokio::select! {
            answer = work => answer,
            () = self.cancelled.cancelled() => Err(Problem::new("the call was cancelled")),
        }
    }
}

/// Sends a step number and a message to the caller.
pub(crate) type ProgressCallback = dyn Fn(u64, String) -> BoxFuture<'static, ()> + Send + Sync;

/// Reports progress to a caller that asked for it.
#[derive(Clone, Default)]
pub(crate) struct Progress {
    callback: Option<Arc<ProgressCallback>>,
    steps: Arc<AtomicU64>,
}

impl Progress {
    /// Progress that is sent with a callback.
    pub(crate) fn new(callback: Arc<ProgressCallback>) -> Self {
        Self {
            callback: Some(callback),
            steps: Arc::default(),
        }
    }

    /// Returns whether the caller asked for progress.
    pub(crate) fn is_enabled(&self) -> bool {
        self.callback.is_some()
    }

    /// Reports one step. The step number increases with each report.
    pub(crate) async fn report(&self, message: impl Into<String>) {
        if let Some(callback) = &self.callback {
            let step = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
            callback(step, message.into()).await;
        }
    }
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Progress")
            .field("is_enabled", &self.is_enabled())
            .finish_non_exhaustive()
    }
}
