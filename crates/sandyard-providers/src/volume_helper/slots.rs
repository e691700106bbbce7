//! How many keepers there are at once. When there are as many as may be, the one that was idle longest makes room.

use std::sync::Arc;
use std::time::Duration;

use sandyard_provider::{ProviderError, ProviderErrorKind, Result};
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

use super::{Activity, Shared, Slot, VolumeHelper, activity};

/// Most keepers of one process.
const MOST: usize = 32;
/// Who opened a volume within this time is about to ask something of it.
const JUST_OPENED: Duration = Duration::from_millis(500);
/// How long an agent may take to say whether it is busy, while somebody waits for its place.
const ASKED_WITHIN: Duration = Duration::from_secs(1);

/// The places of keepers.
#[derive(Debug)]
pub(super) struct Slots(Arc<Semaphore>);

impl Default for Slots {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MOST)))
    }
}

/// A keeper that can go, held so that nobody begins with it.
struct Idle {
    volume: String,
    slot: Slot,
    kept: OwnedMutexGuard<Option<VolumeHelper>>,
    since: Duration,
}

impl Shared {
    /// A place for a new keeper: a free one, or that of the idlest keeper, which is deleted.
    pub(super) async fn place(&self) -> Result<OwnedSemaphorePermit> {
        if let Ok(place) = self.room.0.clone().try_acquire_owned() {
            return Ok(place);
        }
        let full = || {
            let message = format!("all {MOST} keepers of volumes are busy");
            ProviderError::new(ProviderErrorKind::NoCapacity, message)
        };
        let mut idlest = self.idlest().await.ok_or_else(full)?;
        if let Some(keeper) = idlest.kept.as_ref() {
            self.house.remove(&keeper.id).await?;
        }
        let keeper = idlest.kept.take().ok_or_else(full)?;
        drop(idlest.kept);
        self.forget(&idlest.volume, &idlest.slot);
        Ok(keeper.place)
    }

    /// The keeper that nobody has been at for longest; none: somebody is at each.
    async fn idlest(&self) -> Option<Idle> {
        let slots: Vec<(String, Slot)> = self.slots().clone().into_iter().collect();
        let mut idlest: Option<Idle> = None;
        for (volume, slot) in slots {
            // One that is locked is being made or opened, perhaps by who asks.
            let Ok(kept) = slot.clone().try_lock_owned() else {
                continue;
            };
            let Some(keeper) = kept.as_ref() else {
                continue;
            };
            // One that is silent is looked after by whoever watches it.
            let Activity::Idle(idle) = activity(&keeper.endpoint, ASKED_WITHIN).await else {
                continue;
            };
            let since = idle.min(keeper.opened.elapsed());
            let least = idlest.as_ref().map_or(JUST_OPENED, |one| one.since);
            if since >= least {
                idlest = Some(Idle {
                    volume,
                    slot,
                    kept,
                    since,
                });
            }
        }
        idlest
    }
}
