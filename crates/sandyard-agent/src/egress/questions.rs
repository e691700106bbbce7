//! Look-ups that wait for their answers.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use bytes::Bytes;
use tokio::sync::oneshot;

/// The look-ups that were sent to a gateway, by number.
#[derive(Debug, Default)]
pub(super) struct Questions {
    last: Cell<u32>,
    open: RefCell<HashMap<u32, oneshot::Sender<Bytes>>>,
}

/// A look-up that waits; forgotten when dropped.
#[derive(Debug)]
pub(super) struct OpenQuestion<'a> {
    pub(super) id: u32,
    questions: &'a Questions,
    answer: oneshot::Receiver<Bytes>,
}

impl Questions {
    /// Begins to wait for an answer, under a number that no other has.
    pub(super) fn open(&self) -> OpenQuestion<'_> {
        let (sender, answer) = oneshot::channel();
        let mut open = self.open.borrow_mut();
        // Far fewer wait than there are numbers, so this ends.
        let mut id = self.last.get().wrapping_add(1);
        while open.contains_key(&id) {
            id = id.wrapping_add(1);
        }
        self.last.set(id);
        open.insert(id, sender);
        OpenQuestion {
            id,
            questions: self,
            answer,
        }
    }

    /// Brings the answer to whoever waits for it, if anybody still does.
    pub(super) fn settle(&self, id: u32, answer: Bytes) {
        let waiting = self.open.borrow_mut().remove(&id);
        if let Some(waiting) = waiting {
            // It may have given up this very moment.
            let _ = waiting.send(answer);
        }
    }
}

impl OpenQuestion<'_> {
    /// The answer, however long it takes.
    pub(super) async fn answer(&mut self) -> Option<Bytes> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        let mut open = self.questions.open.borrow_mut();
        open.remove(&self.id);
        if open.is_empty() {
            // A burst of look-ups must not cost memory for ever.
            open.shrink_to(16);
        }
    }
}
