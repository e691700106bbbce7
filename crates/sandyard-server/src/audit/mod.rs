//! Who did what: one entry for every request that may change something, written in batches beside the requests.

mod verb;

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sandyard_store::Store;
use sandyard_store::model::NewAuditEntry;
use tokio::sync::Notify;

pub(crate) use verb::{agent_verb, verb};

/// Entries waiting to be written; beyond that, the oldest are lost and counted.
const MAX_WAITING: usize = 20_000;
/// Entries in one transaction: a small one may fit where a large one does not.
const MAX_BATCH: usize = 1_000;
/// How long entries are gathered before they are written.
const GATHER: Duration = Duration::from_millis(100);
/// Tries for a batch that the store refuses. A store that cannot be reached or has no room is tried for ever.
const MAX_ATTEMPTS: u32 = 5;
/// First and longest pause between tries.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// How long the end of the server waits for a store that takes no writes.
const FLUSH_WITHIN: Duration = Duration::from_secs(10);

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

/// Notes the sandbox that the request at hand is about, for the access log too.
pub(crate) fn note_sandbox(id: &str) {
    note_target(id);
    crate::noted_sandbox::note_sandbox(id);
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
    progress: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<NewAuditEntry>,
    /// How many entries have left the queue, written or lost: the number of the first one that waits.
    first: u64,
    /// How many entries were lost since this was last logged.
    lost: u64,
    has_writer: bool,
}

impl Queue {
    fn add(&mut self, entry: NewAuditEntry) {
        if self.waiting.len() >= MAX_WAITING {
            self.lose(self.first + 1);
        }
        self.waiting.push_back(entry);
    }

    /// The oldest entries and the number behind the last of them. They wait on until they are written.
    fn batch(&self) -> (Vec<NewAuditEntry>, u64) {
        let batch: Vec<_> = self.waiting.iter().take(MAX_BATCH).cloned().collect();
        let end = self.first + batch.len() as u64;
        (batch, end)
    }

    /// Takes out all entries before a number; returns how many there were.
    fn remove_until(&mut self, end: u64) -> u64 {
        let count = end.saturating_sub(self.first);
        self.waiting.drain(..count as usize);
        self.first += count;
        count
    }

    /// Gives up all entries before a number.
    fn lose(&mut self, end: u64) {
        let count = self.remove_until(end);
        self.lost += count;
        metrics::counter!("sandyard_audit_entries_lost_total").increment(count);
    }
}

impl Audit {
    pub(crate) fn new(store: Store) -> Self {
        Self(Arc::new(Inner {
            store,
            queue: Mutex::default(),
            progress: Notify::new(),
        }))
    }

    /// Hands over an entry; returns at once.
    pub(crate) fn add(&self, entry: NewAuditEntry) {
        let mut queue = self.queue();
        queue.add(entry);
        if !mem::replace(&mut queue.has_writer, true) {
            let audit = self.clone();
            tokio::spawn(async move { audit.write().await });
        }
    }

    /// Waits until all that was handed over is written or lost.
    pub(crate) async fn flush(&self) {
        loop {
            let progress = self.0.progress.notified();
            tokio::pin!(progress);
            progress.as_mut().enable();
            if !self.queue().has_writer {
                return;
            }
            progress.await;
        }
    }

    /// The same, with a limit: what a store that takes no writes has not taken by then is lost.
    pub(crate) async fn flush_before_exit(&self) {
        if tokio::time::timeout(FLUSH_WITHIN, self.flush())
            .await
            .is_err()
        {
            let entries = self.queue().waiting.len();
            tracing::error!(
                entries,
                "Audit entries are lost: the server ends before the store takes them"
            );
        }
    }

    /// Writes until nothing waits: what comes during a write is the next batch.
    async fn write(&self) {
        loop {
            // Others' requests are on their way; one transaction serves them all, and none waits behind it.
            tokio::time::sleep(GATHER).await;
            let (batch, end) = {
                let mut queue = self.queue();
                if queue.waiting.is_empty() {
                    queue.has_writer = false;
                    break;
                }
                queue.batch()
            };
            self.write_batch(&batch, end).await;
        }
        self.0.progress.notify_waiters();
    }

    /// Writes a batch, as soon as the store takes it.
    async fn write_batch(&self, batch: &[NewAuditEntry], end: u64) {
        let mut pause = PAUSES.0;
        let mut refusals = 0;
        while let Err(error) = self.0.store.add_audit(batch).await {
            if pause == PAUSES.0 {
                tracing::warn!(entries = batch.len(), %error, "Audit entries wait: the store does not take them");
            }
            refusals += u32::from(!error.is_transient());
            if refusals >= MAX_ATTEMPTS {
                tracing::error!(entries = batch.len(), %error, "Audit entries are lost: the store refuses them");
                self.queue().lose(end);
                return;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
        let lost = {
            let mut queue = self.queue();
            queue.remove_until(end);
            mem::take(&mut queue.lost)
        };
        if lost > 0 {
            tracing::error!(
                entries = lost,
                "Audit entries were lost: more came than can wait for the store"
            );
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(at_ms: i64) -> NewAuditEntry {
        NewAuditEntry {
            at_ms,
            actor: "alice".to_owned(),
            via: "key".to_owned(),
            action: "create".to_owned(),
            target: None,
            status: 200,
            request_id: String::new(),
            address: None,
        }
    }

    #[test]
    fn the_oldest_entries_are_lost_first_and_counted() {
        let mut queue = Queue::default();
        for at_ms in 0..MAX_WAITING as i64 {
            queue.add(entry(at_ms));
        }
        let (batch, end) = queue.batch();
        assert_eq!(batch[0].at_ms, 0);
        queue.add(entry(-1));
        assert_eq!((queue.waiting.len(), queue.lost), (MAX_WAITING, 1));
        // The batch was written meanwhile, with the entry that counts as lost.
        queue.remove_until(end);
        assert_eq!(queue.waiting[0].at_ms, MAX_BATCH as i64);
        assert_eq!(queue.waiting.back().map(|entry| entry.at_ms), Some(-1));
    }
}
