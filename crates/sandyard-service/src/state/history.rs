//! Events that are saved after the answer: commands and network flows.
//!
//! Transitions are committed together with their events. Commands and flows are saved in batches, so that running a command does not
//! wait for the database.

use parking_lot::Mutex;
use sandyard_store::Store;
use sandyard_store::model::NewEvent;

/// Most events queued while the database cannot be reached.
const MAX_MAJOR: usize = 10_000;
/// Most minor events queued. They have a bound of their own, so that they never displace major events.
const MAX_MINOR: usize = 5_000;

/// Events that are not in the store yet.
#[derive(Debug)]
pub(crate) struct History {
    store: Store,
    queue: Mutex<EventQueue>,
    /// Held while a batch is being saved, so that a flush returns only after all earlier events are saved.
    flushing: tokio::sync::Mutex<()>,
}

/// Queued events, oldest first.
#[derive(Debug, Default)]
struct EventQueue {
    events: Vec<(Priority, NewEvent)>,
    /// Number of minor events among them.
    minor: usize,
    /// Number of events dropped since the last flush.
    dropped: usize,
}

/// Which bound an event counts against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Priority {
    /// Frequent: network flows.
    Minor,
    Major,
}

impl EventQueue {
    fn add(&mut self, priority: Priority, event: NewEvent) {
        let has_room = match priority {
            Priority::Minor => self.minor < MAX_MINOR,
            Priority::Major => self.events.len() - self.minor < MAX_MAJOR,
        };
        if !has_room {
            self.dropped += 1;
            return;
        }
        self.minor += usize::from(priority == Priority::Minor);
        self.events.push((priority, event));
    }

    /// The queued events, which stay queued.
    fn batch(&self) -> Vec<NewEvent> {
        self.events.iter().map(|(_, event)| event.clone()).collect()
    }

    /// Removes the first events, which are saved.
    fn remove_first(&mut self, count: usize) {
        let written = self.events.drain(..count);
        self.minor -= written
            .filter(|(priority, _)| *priority == Priority::Minor)
            .count();
    }
}

impl History {
    pub(crate) fn new(store: Store) -> Self {
        Self {
            store,
            queue: Mutex::default(),
            flushing: tokio::sync::Mutex::default(),
        }
    }

    /// Adds an event to the next batch.
    pub(crate) fn add(&self, event: NewEvent) {
        self.queue.lock().add(Priority::Major, event);
    }

    /// Adds a frequent event, which never displaces the others.
    pub(crate) fn add_minor(&self, event: NewEvent) {
        self.queue.lock().add(Priority::Minor, event);
    }

    /// Saves the queued events. Returns true if all of them are in the store.
    pub(crate) async fn flush(&self) -> bool {
        let _flushing = self.flushing.lock().await;
        // Events stay queued until they are saved, so that a cancelled flush loses none.
        let (batch, dropped) = {
            let mut queue = self.queue.lock();
            (queue.batch(), std::mem::take(&mut queue.dropped))
        };
        if dropped > 0 {
            tracing::warn!(
                count = dropped,
                "Events were dropped: the queue is full until the database accepts them"
            );
        }
        if batch.is_empty() {
            return true;
        }
        match self.store.add_events(&batch).await {
            Ok(_) => {
                self.queue.lock().remove_first(batch.len());
                true
            }
            Err(error) => {
                tracing::warn!(%error, count = batch.len(), "Failed to save events; they stay queued");
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
    fn minor_events_never_displace_major_ones() {
        let mut queue = EventQueue::default();
        for _ in 0..MAX_MINOR + 7 {
            queue.add(Priority::Minor, event(1));
        }
        assert_eq!((queue.events.len(), queue.dropped), (MAX_MINOR, 7));
        for _ in 0..MAX_MAJOR + 3 {
            queue.add(Priority::Major, event(2));
        }
        assert_eq!(queue.events.len(), MAX_MINOR + MAX_MAJOR);
        assert_eq!(queue.dropped, 10);
    }

    #[test]
    fn saved_events_make_room_and_the_rest_keeps_its_order() {
        let mut queue = EventQueue::default();
        for at_ms in 0..4 {
            let priority = [Priority::Minor, Priority::Major][usize::from(at_ms % 2 == 1)];
            queue.add(priority, event(at_ms));
        }
        queue.remove_first(3);
        assert_eq!(queue.minor, 0);
        let remaining: Vec<i64> = queue.batch().iter().map(|event| event.at_ms).collect();
        assert_eq!(remaining, [3]);
        for _ in 0..MAX_MINOR {
            queue.add(Priority::Minor, event(9));
        }
        assert_eq!((queue.minor, queue.dropped), (MAX_MINOR, 0));
    }
}
