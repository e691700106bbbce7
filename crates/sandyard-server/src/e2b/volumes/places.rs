//! Who may list a folder now: one at a time of each volume, and a few in all. Others wait for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use sandyard_core::ErrorKind;
use sandyard_service::ServiceError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most listings at once.
const MOST: usize = 4;
/// How long somebody waits for a place.
const PATIENCE: Duration = Duration::from_secs(10);

/// The places for listings.
#[derive(Debug)]
pub(crate) struct Places {
    all: Arc<Semaphore>,
    volumes: Mutex<HashMap<String, Weak<Semaphore>>>,
    patience: Duration,
}

/// A place; free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    _volume: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl Default for Places {
    fn default() -> Self {
        Self::new(PATIENCE)
    }
}

impl Places {
    fn new(patience: Duration) -> Self {
        Self {
            all: Arc::new(Semaphore::new(MOST)),
            volumes: Mutex::default(),
            patience,
        }
    }

    /// Waits for a place to list a folder of the volume with that id.
    pub(super) async fn take(&self, volume: &str) -> Result<Place, ServiceError> {
        let own = self.own(volume);
        let taken = tokio::time::timeout(self.patience, async {
            // The volume's first: who waits for that must not be in the way of other volumes.
            let volume = own.acquire_owned().await.ok()?;
            let all = self.all.clone().acquire_owned().await.ok()?;
            Some(Place {
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

    fn own(&self, volume: &str) -> Arc<Semaphore> {
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
    async fn each_volume_has_one_place_and_all_have_a_few() {
        let places = Places::new(Duration::from_millis(20));
        let mut taken = Vec::new();
        for count in 0..MOST {
            let volume = count.to_string();
            taken.push(places.take(&volume).await.unwrap());
            let refused = places.take(&volume).await.unwrap_err();
            assert_eq!(refused.kind, ErrorKind::Unavailable);
            assert!(refused.retry_after_s.is_some());
        }
        assert!(places.take("another").await.is_err());
        taken.pop();
        let place = places.take("another").await.unwrap();
        drop((taken, place));
        drop(places.take("0").await.unwrap());
        assert!(places.volumes.lock().unwrap().len() <= 1);
    }

    #[tokio::test]
    async fn who_waits_gets_the_next_place() {
        let places = Arc::new(Places::default());
        let first = places.take("v").await.unwrap();
        let waiting = tokio::spawn({
            let places = places.clone();
            async move { places.take("v").await.is_ok() }
        });
        tokio::task::yield_now().await;
        drop(first);
        assert!(waiting.await.unwrap());
    }
}
