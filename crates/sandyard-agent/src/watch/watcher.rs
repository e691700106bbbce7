//! One client's interest in a directory, and the changes it has not fetched yet.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::path::PathBuf;

use sandyard_wire::{Code, ConnectError, EventType, FilesystemEvent};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::filesystem::describe;
use crate::user::Accounts;

/// Maximum number of queued changes of a client that does not fetch them.
const MAX_QUEUED: usize = 8192;

/// What a client watches.
#[derive(Debug, Clone)]
pub(super) struct Interest {
    pub(super) root: PathBuf,
    pub(super) is_recursive: bool,
    pub(super) with_entry: bool,
}

/// A queue of changes.
#[derive(Debug)]
pub(super) struct Watcher {
    pub(super) id: u64,
    pub(super) interest: Interest,
    queue: RefCell<VecDeque<FilesystemEvent>>,
    has_lost: Cell<bool>,
    pub(super) changed: Notify,
    pub(super) last_fetch: Cell<Instant>,
}

impl Watcher {
    pub(super) fn new(id: u64, interest: Interest) -> Self {
        Self {
            id,
            interest,
            queue: RefCell::default(),
            has_lost: Cell::default(),
            changed: Notify::new(),
            last_fetch: Cell::new(Instant::now()),
        }
    }

    /// Queues a change of a path relative to the root.
    pub(super) fn push(&self, name: String, event: EventType) {
        let mut queue = self.queue.borrow_mut();
        if queue.len() >= MAX_QUEUED {
            drop(queue);
            self.lose();
            return;
        }
        let exists = !matches!(event, EventType::Remove | EventType::Rename);
        let entry = (self.interest.with_entry && exists)
            .then(|| describe(&self.interest.root.join(&name), &Accounts::load().names()).ok())
            .flatten();
        queue.push_back(FilesystemEvent {
            name,
            r#type: event,
            entry,
        });
        self.changed.notify_waiters();
    }

    /// Notes that changes were lost.
    pub(super) fn lose(&self) {
        self.has_lost.set(true);
        self.changed.notify_waiters();
    }

    /// The next change; an error, once, after changes were lost.
    pub(super) fn pop(&self) -> Result<Option<FilesystemEvent>, ConnectError> {
        let next = self.queue.borrow_mut().pop_front();
        if next.is_none() && self.has_lost.take() {
            return Err(ConnectError::new(
                Code::DataLoss,
                "there were more changes than the queue holds: some were lost",
            ));
        }
        Ok(next)
    }

    /// All changes so far. If some were lost, this call returns those before them and the next call the error.
    pub(super) fn take(&self) -> Result<Vec<FilesystemEvent>, ConnectError> {
        self.last_fetch.set(Instant::now());
        let mut events = Vec::new();
        loop {
            match self.pop() {
                Ok(Some(event)) => events.push(event),
                Ok(None) => return Ok(events),
                Err(error) if events.is_empty() => return Err(error),
                Err(_) => {
                    self.has_lost.set(true);
                    return Ok(events);
                }
            }
        }
    }
}
