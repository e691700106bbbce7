//! The tokens of all sandboxes, in memory.
//!
//! A sandbox never changes its token, so the index only misses sandboxes that were created since it was read. They come first in
//! the store's list, so one short page finds them. Once a minute the whole list is read again, which drops deleted sandboxes.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sandyard_core::SandboxId;
use sandyard_store::model::{Page, Sandbox, SandboxFilter};
use sandyard_store::{Store, StoreError};
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::{Instant, sleep_until};

/// Pause between two reads of the store.
const READ_EVERY: Duration = Duration::from_millis(250);

/// Pause between two reads of the whole list.
const READ_ALL_EVERY: Duration = Duration::from_secs(60);

/// Sandboxes on a page when only new ones are read.
const PAGE: usize = 50;

/// Largest number of sandboxes in the index; the newest stay.
const MAX_SANDBOXES: usize = 50_000;

/// A sandbox and its token.
#[derive(Clone)]
pub(super) struct SandboxToken {
    pub(super) id: SandboxId,
    pub(super) token: String,
}

impl fmt::Debug for SandboxToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SandboxToken({})", self.id)
    }
}

/// The tokens of all sandboxes.
#[derive(Debug, Default)]
pub(super) struct TokenIndex {
    cached: Mutex<Arc<Vec<SandboxToken>>>,
    reading: AsyncMutex<Reading>,
}

#[derive(Debug, Default)]
struct Reading {
    started_at: Option<Instant>,
    read_all: Option<Instant>,
    ids: HashSet<SandboxId>,
}

impl TokenIndex {
    /// The tokens in memory, oldest sandbox first.
    pub(super) fn cached(&self) -> Arc<Vec<SandboxToken>> {
        Arc::clone(&self.lock())
    }

    /// The tokens that `seen` does not have, read from the store no earlier than now. All requests that wait share one read, and
    /// reads are rare however many wait.
    pub(super) async fn added_since(
        &self,
        store: &Store,
        seen: &Arc<Vec<SandboxToken>>,
    ) -> Result<Vec<SandboxToken>, StoreError> {
        let requested_at = Instant::now();
        let mut reading = self.reading.lock().await;
        if reading
            .started_at
            .is_none_or(|started_at| started_at < requested_at)
        {
            if let Some(started_at) = reading.started_at {
                sleep_until(started_at + READ_EVERY).await;
            }
            self.read(store, &mut reading).await?;
        }
        let seen: HashSet<&SandboxId> = seen.iter().map(|sandbox| &sandbox.id).collect();
        let tokens = self.cached();
        let added = tokens.iter().filter(|it| !seen.contains(&it.id));
        Ok(added.cloned().collect())
    }

    async fn read(&self, store: &Store, reading: &mut Reading) -> Result<(), StoreError> {
        let now = Instant::now();
        let reads_all = reading
            .read_all
            .is_none_or(|read| read + READ_ALL_EVERY < now);
        if reads_all {
            reading.ids.clear();
        }
        let mut found = Vec::new();
        let mut cursor = None;
        loop {
            let Page { items, next } = store
                .list_sandboxes(&SandboxFilter {
                    cursor,
                    limit: if reads_all { 0 } else { PAGE },
                    ..SandboxFilter::default()
                })
                .await?;
            let count = items.len();
            let fresh = items.into_iter().filter(|row| is_new(reading, row));
            let fresh: Vec<_> = fresh.map(token_of).collect();
            let has_only_new = fresh.len() == count;
            found.extend(fresh);
            cursor = next;
            if cursor.is_none() || found.len() >= MAX_SANDBOXES || !(reads_all || has_only_new) {
                break;
            }
        }
        reading
            .ids
            .extend(found.iter().map(|sandbox| sandbox.id.clone()));
        found.reverse();
        let mut tokens = self.lock();
        if reads_all {
            *tokens = Arc::new(found);
            reading.read_all = Some(now);
        } else if !found.is_empty() {
            Arc::make_mut(&mut tokens).extend(found);
        }
        drop(tokens);
        reading.started_at = Some(now);
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Arc<Vec<SandboxToken>>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_new(reading: &Reading, row: &Sandbox) -> bool {
    !row.access_token.is_empty() && !reading.ids.contains(&row.id)
}

fn token_of(row: Sandbox) -> SandboxToken {
    SandboxToken {
        id: row.id,
        token: row.access_token,
    }
}
