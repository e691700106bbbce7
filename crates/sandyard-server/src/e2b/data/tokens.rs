//! The tokens of all sandboxes, in memory.
//!
//! Sandboxes never change their token, so what is known stays true. News are the sandboxes made since: they come first in
//! the store's list, and one short page of it tells them. Now and then all is read again, to forget those that are gone.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sandyard_core::SandboxId;
use sandyard_store::model::{Page, Sandbox, SandboxFilter};
use sandyard_store::{Store, StoreError};
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::{Instant, sleep_until};

/// Between two looks into the store.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Between two times that all is read.
const READ_ALL_EVERY: Duration = Duration::from_secs(60);

/// Sandboxes on a page of news.
const PAGE: usize = 50;

/// Most sandboxes that are remembered, the newest.
const MOST: usize = 50_000;

/// The token of a sandbox.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) id: SandboxId,
    pub(super) token: String,
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Known({})", self.id)
    }
}

/// The tokens of all sandboxes.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    known: Mutex<Arc<Vec<Known>>>,
    reading: AsyncMutex<Reading>,
}

#[derive(Debug, Default)]
struct Reading {
    began: Option<Instant>,
    read_all: Option<Instant>,
    ids: HashSet<SandboxId>,
}

impl Tokens {
    /// Gives what is known, oldest first.
    pub(super) fn known(&self) -> Arc<Vec<Known>> {
        Arc::clone(&self.lock())
    }

    /// Gives the tokens that `seen` does not have, as the store knows them now or later than now: all who ask at once are
    /// told by the same look, and looks are rare however many ask.
    pub(super) async fn news(
        &self,
        store: &Store,
        seen: &Arc<Vec<Known>>,
    ) -> Result<Vec<Known>, StoreError> {
        let asked = Instant::now();
        let mut reading = self.reading.lock().await;
        if reading.began.is_none_or(|began| began < asked) {
            if let Some(began) = reading.began {
                sleep_until(began + LOOK_EVERY).await;
            }
            self.look(store, &mut reading).await?;
        }
        let seen: HashSet<&SandboxId> = seen.iter().map(|known| &known.id).collect();
        let known = self.known();
        let news = known.iter().filter(|known| !seen.contains(&known.id));
        Ok(news.cloned().collect())
    }

    async fn look(&self, store: &Store, reading: &mut Reading) -> Result<(), StoreError> {
        let now = Instant::now();
        let is_all = reading
            .read_all
            .is_none_or(|read| read + READ_ALL_EVERY < now);
        if is_all {
            reading.ids.clear();
        }
        let mut found = Vec::new();
        let mut cursor = None;
        loop {
            let Page { items, next } = store
                .list_sandboxes(&SandboxFilter {
                    cursor,
                    limit: if is_all { 0 } else { PAGE },
                    ..SandboxFilter::default()
                })
                .await?;
            let count = items.len();
            let fresh = items.into_iter().filter(|row| is_fresh(reading, row));
            let fresh: Vec<_> = fresh.map(known_of).collect();
            let has_only_news = fresh.len() == count;
            found.extend(fresh);
            cursor = next;
            if cursor.is_none() || found.len() >= MOST || !(is_all || has_only_news) {
                break;
            }
        }
        reading
            .ids
            .extend(found.iter().map(|known| known.id.clone()));
        found.reverse();
        let mut known = self.lock();
        if is_all {
            *known = Arc::new(found);
            reading.read_all = Some(now);
        } else if !found.is_empty() {
            Arc::make_mut(&mut known).extend(found);
        }
        drop(known);
        reading.began = Some(now);
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Arc<Vec<Known>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_fresh(reading: &Reading, row: &Sandbox) -> bool {
    !row.access_token.is_empty() && !reading.ids.contains(&row.id)
}

fn known_of(row: Sandbox) -> Known {
    Known {
        id: row.id,
        token: row.access_token,
    }
}
