//! Limits on the number of waiting connections and queries.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::channels::Channels;

/// A limited number of slots.
#[derive(Debug)]
pub(super) struct Slots(Arc<Semaphore>);

/// A taken slot; it is free again when dropped.
pub(super) type Slot = OwnedSemaphorePermit;

impl Slots {
    pub(super) fn new(count: usize) -> Self {
        Self(Arc::new(Semaphore::new(count)))
    }

    /// Takes a slot, if one is free.
    pub(super) fn try_take(&self) -> Option<Slot> {
        self.0.clone().try_acquire_owned().ok()
    }

    /// Takes a slot; `None` when all are taken and no gateway is attached that could free one.
    ///
    /// With a slow gateway it waits, and the caller accepts no more connections meanwhile.
    pub(super) async fn take(&self, channels: &Channels) -> Option<Slot> {
        if let Some(slot) = self.try_take() {
            return Some(slot);
        }
        tokio::select! {
            slot = self.0.clone().acquire_owned() => slot.ok(),
            () = channels.all_closed() => None,
        }
    }
}
