//! Events that need not be written before the answer: commands, and what sandboxes tried to reach.
//!
//! Transitions are committed with their events. That a command ran is written down in batches, so that running one does
//! not wait for the database.

use std::sync::{Mutex, PoisonError};

use sandyard_store::Store;
use sandyard_store::model::NewEvent;

/// Most events kept while the database cannot be reached.
const MAX_WAITING: usize = 10_000;

/// Events on their way to the store.
#[derive(Debug)]
pub(crate) struct History {
    store: Store,
    waiting: Mutex<Vec<NewEvent>>,
    /// Held while a batch is on its way, so that whoever flushes finds written what was there before.
    flushing: tokio::sync::Mutex<()>,
}

impl History {
    pub(crate) fn new(store: Store) -> Self {
        Self {
            store,
            waiting: Mutex::default(),
            flushing: tokio::sync::Mutex::default(),
        }
    }

    /// Adds an event to the next batch.
    pub(crate) fn add(&self, event: NewEvent) {
        self.add_below(MAX_WAITING, event);
    }

    /// Adds an event that comes in numbers, and must leave room for the others.
    pub(crate) fn add_minor(&self, event: NewEvent) {
        self.add_below(MAX_WAITING / 2, event);
    }

    fn add_below(&self, most: usize, event: NewEvent) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < most {
            waiting.push(event);
        }
    }

    /// Writes down what waits.
    pub(crate) async fn flush(&self) {
        let _turn = self.flushing.lock().await;
        // They stay in line until they are written, so that a flush that is broken off loses none.
        let batch = {
            let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.clone()
        };
        if batch.is_empty() {
            return;
        }
        match self.store.add_events(&batch).await {
            Ok(_) => {
                let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                waiting.drain(..batch.len());
            }
            Err(error) => {
                tracing::warn!(%error, count = batch.len(), "Events could not be written yet");
            }
        }
    }
}
