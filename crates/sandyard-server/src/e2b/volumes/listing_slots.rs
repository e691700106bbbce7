//! Slots for listings of folders: one for each volume, and a few in all. Further listings wait for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use sandyard_core::ErrorKind;
use sandyard_service::{ServiceError, ServiceResult};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Listings at the same time.
const MAX_LISTINGS: usize = 4;
/// Longest wait for a slot.
const WAIT: Duration = Duration::from_secs(10);

/// Slots for listings.
#[derive(Debug)]
pub(super) struct ListingSlots {
    all: Arc<Semaphore>,
    volumes: Mutex<HashMap<String, Weak<Semaphore>>>,
    wait: Duration,
}

/// A slot; it is free again when this is dropped.
#[derive(Debug)]
pub(super) struct ListingSlot {
    _volume: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl Default for ListingSlots {
    fn default() -> Self {
        Self::new(WAIT)
    }
}

impl ListingSlots {
    fn new(wait: Duration) -> Self {
        Self {
            all: Arc::new(Semaphore::new(MAX_LISTINGS)),
            volumes: Mutex::default(),
            wait,
        }
    }

    /// Waits for a slot to list a folder of the volume with this id.
    pub(super) async fn take(&self, volume: &str) -> ServiceResult<ListingSlot> {
        let own = self.volume_semaphore(volume);
        let taken = tokio::time::timeout(self.wait, async {
            // The volume's slot first: a listing that waits for it must not block other volumes.
            let volume = own.acquire_owned().await.ok()?;
            let all = self.all.clone().acquire_owned().await.ok()?;
            Some(ListingSlot {
                _volume: volume,
                _all: all,
            })
        });
        taken.await.ok().flatten().ok_or_else(|| {
            ServiceError::new(
                ErrorKind::Unavailable,
                "too many folders of volumes are being listed",
            )
            .hint("try again in a moment")
        })
    }

    fn volume_semaphore(&self, volume: &str) -> Arc<Semaphore> {
        let mut volumes = self.volumes.lock().unwrap_or_else(PoisonError::into_inner);
        volumes.retain(|_, own| own.strong_count() > 0);
        if let Some(own) = volumes.get(volume).and_then(Weak::upgrade) {
            return own;
        }
        let own = Arc::new(Semaphore::new(1));
        volumes.insert(volume.to_owned(), Arc::downgrade(&own));
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_volume_has_one_slot_and_all_share_a_few() {
        let slots = ListingSlots::new(Duration::from_millis(20));
        let mut taken = Vec::new();
        for count in 0..MAX_LISTINGS {
            let volume = count.to_string();
            taken.push(slots.take(&volume).await.unwrap());
            let refused = slots.take(&volume).await.unwrap_err();
            assert_eq!(refused.kind, ErrorKind::Unavailable);
            assert!(refused.retry_after_s.is_some());
        }
        assert!(slots.take("another").await.is_err());
        taken.pop();
        let slot = slots.take("another").await.unwrap();
        drop((taken, slot));
        drop(slots.take("0").await.unwrap());
        assert!(slots.volumes.lock().unwrap().len() <= 1);
    }

    #[tokio::test]
    async fn a_waiting_listing_gets_the_next_slot() {
        let slots = Arc::new(ListingSlots::default());
        let first = slots.take("v").await.unwrap();
        let waiting = tokio::spawn({
            let slots = slots.clone();
            async move { slots.take("v").await.is_ok() }
        });
        tokio::task::yield_now().await;
        drop(first);
        assert!(waiting.await.unwrap());
    }
}
