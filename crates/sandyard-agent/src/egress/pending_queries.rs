//! Queries that wait for their answers.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use bytes::Bytes;
use tokio::sync::oneshot;

/// The queries that were sent to a gateway, by id.
#[derive(Debug, Default)]
pub(super) struct PendingQueries {
    last: Cell<u32>,
    open: RefCell<HashMap<u32, oneshot::Sender<Bytes>>>,
}

/// A query that waits for its answer; it is forgotten when dropped.
#[derive(Debug)]
pub(super) struct PendingQuery<'a> {
    pub(super) id: u32,
    pending_queries: &'a PendingQueries,
    answer: oneshot::Receiver<Bytes>,
}

impl PendingQueries {
    /// Registers a query under an unused id.
    pub(super) fn open(&self) -> PendingQuery<'_> {
        let (sender, answer) = oneshot::channel();
        let mut open = self.open.borrow_mut();
        // There are far fewer queries than ids, so this ends.
        let mut id = self.last.get().wrapping_add(1);
        while open.contains_key(&id) {
            id = id.wrapping_add(1);
        }
        self.last.set(id);
        open.insert(id, sender);
        PendingQuery {
            id,
            pending_queries: self,
            answer,
        }
    }

    /// Delivers the answer of a query, if it still waits.
    pub(super) fn resolve(&self, id: u32, answer: Bytes) {
        let waiting = self.open.borrow_mut().remove(&id);
        if let Some(waiting) = waiting {
            // The query may have timed out in this moment.
            let _ = waiting.send(answer);
        }
    }
}

impl PendingQuery<'_> {
    /// Waits for the answer without a time limit.
    pub(super) async fn answer(&mut self) -> Option<Bytes> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for PendingQuery<'_> {
    fn drop(&mut self) {
        let mut open = self.pending_queries.open.borrow_mut();
        open.remove(&self.id);
        if open.is_empty() {
            // A burst of queries must not cost memory forever.
            open.shrink_to(16);
        }
    }
}
