//! Who did what: one entry for every request that may change something, written in batches beside the requests.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sandyard_store::Store;
use sandyard_store::model::NewAuditEntry;
use tokio::sync::Notify;

/// Entries waiting to be written; beyond that, entries are lost and counted.
const MAX_WAITING: usize = 20_000;
/// How long entries are gathered before they are written.
const GATHER: Duration = Duration::from_millis(100);
/// Tries for one batch.
const TRIES: u32 = 5;

tokio::task_local! {
    static TARGET: Mutex<Option<String>>;
}

/// Notes what the request at hand is about. Outside a request nothing happens.
pub(crate) fn note_target(target: &str) {
    let _ = TARGET.try_with(|cell| {
        let mut cell = cell.lock().unwrap_or_else(PoisonError::into_inner);
        cell.get_or_insert_with(|| target.to_owned());
    });
}

/// Runs a request and tells what it was about, as far as was noted.
pub(crate) async fn with_target<T>(work: impl Future<Output = T>) -> (T, Option<String>) {
    TARGET
        .scope(Mutex::new(None), async {
            let result = work.await;
            let target = TARGET
                .with(|cell| mem::take(&mut *cell.lock().unwrap_or_else(PoisonError::into_inner)));
            (result, target)
        })
        .await
}

/// The status of what nobody waited for: nginx's word for a client that hung up.
pub(crate) const HUNG_UP: u16 = 499;

/// An entry in the making. One that is dropped before its end keeps the status it began with.
pub(crate) struct Note {
    audit: Audit,
    entry: Option<NewAuditEntry>,
}

impl Note {
    /// Begins one.
    pub(crate) fn begin(audit: &Audit, entry: NewAuditEntry) -> Self {
        Self {
            audit: audit.clone(),
            entry: Some(entry),
        }
    }

    /// Notes how it ended, and what it was about.
    pub(crate) fn finish(&mut self, status: u16, target: Option<String>) {
        if let Some(entry) = &mut self.entry {
            entry.status = status.into();
            entry.target = target;
        }
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.audit.add(entry);
        }
    }
}

/// The audit's way into the store.
#[derive(Clone, Debug)]
pub(crate) struct Audit(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    queue: Mutex<Queue>,
    written: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<NewAuditEntry>,
    has_writer: bool,
}

impl Audit {
    pub(crate) fn new(store: Store) -> Self {
        Self(Arc::new(Inner {
            store,
            queue: Mutex::default(),
            written: Notify::new(),
        }))
    }

    /// Hands over an entry; returns at once.
    pub(crate) fn add(&self, entry: NewAuditEntry) {
        let mut queue = self.queue();
        if queue.waiting.len() >= MAX_WAITING {
            metrics::counter!("audit_entries_lost_total").increment(1);
            return;
        }
        queue.waiting.push(entry);
        if !mem::replace(&mut queue.has_writer, true) {
            let audit = self.clone();
            tokio::spawn(async move { audit.write().await });
        }
    }

    /// Waits until all that was handed over is written or given up.
    pub(crate) async fn flush(&self) {
        loop {
            let written = self.0.written.notified();
            tokio::pin!(written);
            written.as_mut().enable();
            if !self.queue().has_writer {
                return;
            }
            written.await;
        }
    }

    /// Writes until nothing waits: what comes during a write is the next batch.
    async fn write(&self) {
        loop {
            // Others' requests are on their way; one transaction serves them all, and none waits behind it.
            tokio::time::sleep(GATHER).await;
            let batch = {
                let mut queue = self.queue();
                if queue.waiting.is_empty() {
                    queue.has_writer = false;
                    break;
                }
                mem::take(&mut queue.waiting)
            };
            self.write_batch(&batch).await;
        }
        self.0.written.notify_waiters();
    }

    async fn write_batch(&self, batch: &[NewAuditEntry]) {
        let mut pause = Duration::from_millis(50);
        for attempt in 1..=TRIES {
            match self.0.store.add_audit(batch).await {
                Ok(()) => return,
                Err(error) if attempt == TRIES => {
                    tracing::error!(entries = batch.len(), error = %error, "Audit entries are lost");
                    metrics::counter!("audit_entries_lost_total").increment(batch.len() as u64);
                }
                Err(_) => {
                    tokio::time::sleep(pause).await;
                    pause *= 4;
                }
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
