//! One call of a tool, as its work sees it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

/// What a tool's work is given besides its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Cancelled when the caller does not want the answer any more. Long work ends itself then, with everything it started.
    pub(crate) cancelled: CancellationToken,
    /// Where progress is told.
    pub(crate) progress: Progress,
}

impl Call {
    /// A call nobody watches.
    pub(crate) fn quiet() -> Self {
        Self {
            cancelled: CancellationToken::new(),
            progress: Progress::default(),
        }
    }
}

/// Takes a step number and a message to the caller.
pub(crate) type Tell = dyn Fn(u64, String) -> BoxFuture<'static, ()> + Send + Sync;

/// Tells a caller who asked for it how far the work is.
#[derive(Clone, Default)]
pub(crate) struct Progress {
    tell: Option<Arc<Tell>>,
    steps: Arc<AtomicU64>,
}

impl Progress {
    /// Progress that goes somewhere.
    pub(crate) fn to(tell: Arc<Tell>) -> Self {
        Self {
            tell: Some(tell),
            steps: Arc::default(),
        }
    }

    /// Whether anybody asked for it.
    pub(crate) fn is_wanted(&self) -> bool {
        self.tell.is_some()
    }

    /// Tells one step; the number that goes with it grows by itself.
    pub(crate) async fn tell(&self, message: impl Into<String>) {
        if let Some(tell) = &self.tell {
            let step = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
            tell(step, message.into()).await;
        }
    }
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Progress")
            .field("is_wanted", &self.is_wanted())
            .finish_non_exhaustive()
    }
}
