//! Calls that wait until a test lets them go on.

use std::sync::Arc;

use tokio::sync::watch;

/// Holds calls until it is released or dropped.
#[derive(Debug)]
pub struct Gate(Arc<Barrier>);

/// What the gate and the calls before it share.
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

    /// Returns when that many calls wait here.
    pub async fn reached_by(&self, count: usize) {
        let mut waiting = self.0.waiting.subscribe();
        // The sender is ours and lives as long as we do.
        let _ = waiting.wait_for(|now| *now >= count).await;
    }

    /// Lets all go on, also those that come later.
    pub fn release(self) {}
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.0.is_open.send_replace(true);
    }
}

impl Barrier {
    /// Waits until the gate is open.
    pub(super) async fn pass(&self) {
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

/// Counts a call out that went on or was dropped.
struct Leave<'a>(&'a Barrier);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.waiting.send_modify(|waiting| *waiting -= 1);
    }
}
