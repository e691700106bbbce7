//! Events that need not be written before the answer: commands, and what sandboxes tried to reach.
//!
//! Transitions are committed with their events. That a command ran is written down in batches, so that running one does
//! not wait for the database.

use std::sync::{Mutex, MutexGuard, PoisonError};

use sandyard_store::Store;
use sandyard_store::model::NewEvent;

/// Most events kept while the database cannot be reached.
const MAX_WAITING: usize = 10_000;
/// Most events kept of those that come in numbers. They have their own room, so that they never take that of the others.
const MAX_MINOR: usize = 5_000;

/// Events on their way to the store.
#[derive(Debug)]
pub(crate) struct History {
    store: Store,
    waiting: Mutex<Waiting>,
    /// Held while a batch is on its way, so that whoever flushes finds written what was there before.
    flushing: tokio::sync::Mutex<()>,
}

/// Events in line, in the order they came.
#[derive(Debug, Default)]
struct Waiting {
    line: Vec<(Weight, NewEvent)>,
    /// How many of them come in numbers.
    minor: usize,
    /// How many found no room since this was last told.
    dropped: usize,
}

/// What is dropped first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    /// Comes in numbers.
    Minor,
    Major,
}

impl Waiting {
    fn add(&mut self, weight: Weight, event: NewEvent) {
        let has_room = match weight {
            Weight::Minor => self.minor < MAX_MINOR,
            Weight::Major => self.line.len() - self.minor < MAX_WAITING,
        };
        if !has_room {
            self.dropped += 1;
            return;
        }
        self.minor += usize::from(weight == Weight::Minor);
        self.line.push((weight, event));
    }

    /// What waits; it stays in line.
    fn batch(&self) -> Vec<NewEvent> {
        self.line.iter().map(|(_, event)| event.clone()).collect()
    }

    /// Takes the first out of the line, which are written.
    fn remove_first(&mut self, count: usize) {
        let written = self.line.drain(..count);
        self.minor -= written
            .filter(|(weight, _)| *weight == Weight::Minor)
            .count();
    }
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
        self.waiting().add(Weight::Major, event);
    }

    /// Adds an event that comes in numbers, and must leave room for the others.
    pub(crate) fn add_minor(&self, event: NewEvent) {
        self.waiting().add(Weight::Minor, event);
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down what waits; true: all that waited is in the store.
    pub(crate) async fn flush(&self) -> bool {
        let _turn = self.flushing.lock().await;
        // They stay in line until they are written, so that a flush that is broken off loses none.
        let (batch, dropped) = {
            let mut waiting = self.waiting();
            (waiting.batch(), std::mem::take(&mut waiting.dropped))
        };
        if dropped > 0 {
            tracing::warn!(
                count = dropped,
                "Events are lost: more came than there is room for until the database takes them"
            );
        }
        if batch.is_empty() {
            return true;
        }
        match self.store.add_events(&batch).await {
            Ok(_) => {
                self.waiting().remove_first(batch.len());
                true
            }
            Err(error) => {
                tracing::warn!(%error, count = batch.len(), "Events could not be written yet");
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use sandyard_core::SandboxId;
    use serde_json::Value;

    use super::*;

    fn event(at_ms: i64) -> NewEvent {
        NewEvent {
            sandbox_id: SandboxId::from_random([1; 20]),
            owner: "alice".to_owned(),
            at_ms,
            kind: "command".to_owned(),
            actor: "alice".to_owned(),
            data: Value::Null,
        }
    }

    #[test]
    fn events_that_come_in_numbers_never_take_the_room_of_others() {
        let mut waiting = Waiting::default();
        for _ in 0..MAX_MINOR + 7 {
            waiting.add(Weight::Minor, event(1));
        }
        assert_eq!((waiting.line.len(), waiting.dropped), (MAX_MINOR, 7));
        for _ in 0..MAX_WAITING + 3 {
            waiting.add(Weight::Major, event(2));
        }
        assert_eq!(waiting.line.len(), MAX_MINOR + MAX_WAITING);
        assert_eq!(waiting.dropped, 10);
    }

    #[test]
    fn what_is_written_makes_room_and_the_rest_keeps_its_order() {
        let mut waiting = Waiting::default();
        for at_ms in 0..4 {
            let weight = [Weight::Minor, Weight::Major][usize::from(at_ms % 2 == 1)];
            waiting.add(weight, event(at_ms));
        }
        waiting.remove_first(3);
        assert_eq!(waiting.minor, 0);
        let left: Vec<i64> = waiting.batch().iter().map(|event| event.at_ms).collect();
        assert_eq!(left, [3]);
        for _ in 0..MAX_MINOR {
            waiting.add(Weight::Minor, event(9));
        }
        assert_eq!((waiting.minor, waiting.dropped), (MAX_MINOR, 0));
    }
}
