//! Gates: calls wait until the test releases them.

use std::sync::Arc;

use tokio::sync::watch;

/// Holds calls until it is released or dropped.
#[derive(Debug)]
pub struct Gate(Arc<Barrier>);

/// State that a gate and its waiting calls share.
#[derive(Debug)]
pub(super) struct Barrier {
    is_open: watch::Sender<bool>,
    waiting: watch::Sender<usize>,
}

impl Gate {
    pub(super) fn new() -> (Self, Arc<Barrier>) {
        let barrier = Arc::new(Barrier {
            is_open: watch::Sender::new(false),
            waiting: watch::Sender::new(0),
        });
        (Self(barrier.clone()), barrier)
    }

    /// Returns when at least `count` calls wait at the gate.
    pub async fn reached_by(&self, count: usize) {
        let mut waiting = self.0.waiting.subscribe();
        // The sender lives as long as this gate.
        let _ = waiting.wait_for(|now| *now >= count).await;
    }

    /// Releases all calls, including later ones.
    pub fn release(self) {}
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.0.is_open.send_replace(true);
    }
}

impl Barrier {
    /// Waits until the gate is open.
    pub(super) async fn wait(&self) {
        if *self.is_open.borrow() {
            return;
        }
        self.waiting.send_modify(|waiting| *waiting += 1);
        let _leave = Leave(self);
        let mut is_open = self.is_open.subscribe();
        let _ = is_open.wait_for(|is_open| *is_open).await;
    }

    pub(super) fn is_open(&self) -> bool {
        *self.is_open.borrow()
    }
}

/// Decrements the count of waiting calls when a call continues or is dropped.
struct Leave<'a>(&'a Barrier);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.waiting.send_modify(|waiting| *waiting -= 1);
    }
}
