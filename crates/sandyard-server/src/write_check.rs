//! Whether the database takes writes, for `/health`.
//!
//! A test write runs at most once in two seconds, beside the requests that ask for it. While it fails it is repeated every
//! second, so that the log says when the database works again, also if nobody asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sandyard_service::ServiceError;
use sandyard_store::{Store, StoreError};
use tokio::sync::watch;

/// How long an outcome is used for further requests.
const FRESH: Duration = Duration::from_secs(2);
/// How long a request waits for a new outcome before it uses the last one.
const WAIT: Duration = Duration::from_millis(500);
/// A write that takes longer counts as failed.
const TOO_SLOW: Duration = Duration::from_secs(10);
/// Pause between tests while they fail.
const RETRY: Duration = Duration::from_secs(1);

/// Tests writes to a store. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct WriteCheck(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    is_running: AtomicBool,
    last: watch::Sender<Outcome>,
}

#[derive(Clone, Debug, Default)]
struct Outcome {
    at: Option<Instant>,
    failure: Option<String>,
}

impl WriteCheck {
    pub(crate) fn new(store: Store) -> Self {
        Self(Arc::new(Inner {
            store,
            is_running: AtomicBool::new(false),
            last: watch::Sender::new(Outcome::default()),
        }))
    }

    /// Why the database does not take writes; none if it does.
    pub(crate) async fn failure(&self) -> Option<String> {
        let mut last = self.0.last.subscribe();
        let age = last.borrow_and_update().at.map(|at| at.elapsed());
        if age.is_none_or(|age| age > FRESH) {
            self.start();
            let _ = tokio::time::timeout(WAIT, last.changed()).await;
        }
        last.borrow().failure.clone()
    }

    /// Starts a test unless one is under way.
    fn start(&self) {
        if !self.0.is_running.swap(true, Ordering::AcqRel) {
            let check = self.clone();
            tokio::spawn(async move { check.run().await });
        }
    }

    /// Tests until a write goes through.
    async fn run(&self) {
        let mut has_failed = false;
        while let Err(reason) = self.write().await {
            if !has_failed {
                tracing::error!(reason, "The database does not take writes");
                has_failed = true;
            }
            self.publish(Some(reason));
            tokio::time::sleep(RETRY).await;
        }
        if has_failed {
            self.0.store.restore_reserve();
            tracing::info!("The database takes writes again");
        }
        self.0.is_running.store(false, Ordering::Release);
        self.publish(None);
    }

    async fn write(&self) -> Result<(), String> {
        let written = tokio::time::timeout(TOO_SLOW, self.0.store.check_write()).await;
        match written {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error @ StoreError::Refused { .. })) => {
                tracing::debug!(error = ?error, "A test write was refused");
                Err("it refused a test".to_owned())
            }
            Ok(Err(error)) => Err(ServiceError::from(error).message),
            Err(_) => Err(format!("no answer for {} s", TOO_SLOW.as_secs())),
        }
    }

    fn publish(&self, failure: Option<String>) {
        let at = Some(Instant::now());
        self.0.last.send_replace(Outcome { at, failure });
    }
}
