//! How many keepers there are at once. When there are as many as may be, the one that was idle longest makes room.

use std::sync::Arc;
use std::time::Duration;

use sandyard_engine::{EngineError, ErrorKind};
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

use super::{Keeper, Shared, Slot};

/// Most keepers of one process.
const MOST: usize = 32;
/// Who opened a volume within this time is about to ask something of it.
const JUST_OPENED: Duration = Duration::from_millis(500);
/// How long an agent may take to say whether it is busy, while somebody waits for its place.
const ASKED_WITHIN: Duration = Duration::from_secs(1);

/// The places of keepers.
#[derive(Debug)]
pub(super) struct Room(Arc<Semaphore>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MOST)))
    }
}

/// A keeper that can go, held so that nobody begins with it.
struct Idle {
    volume: String,
    slot: Slot,
    kept: OwnedMutexGuard<Option<Keeper>>,
    since: Duration,
}

impl Shared {
    /// A place for a new keeper: a free one, or that of the idlest keeper, which is deleted.
    pub(super) async fn place(&self) -> Result<OwnedSemaphorePermit, EngineError> {
        if let Ok(place) = self.room.0.clone().try_acquire_owned() {
            return Ok(place);
        }
        let full = || {
            let message = format!("all {MOST} keepers of volumes are busy");
            EngineError::new(ErrorKind::NoCapacity, message)
        };
        let mut idlest = self.idlest().await.ok_or_else(full)?;
        if let Some(keeper) = idlest.kept.as_ref() {
            self.engine.delete(&keeper.id).await?;
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
            let Some(since) = keeper.idle(ASKED_WITHIN).await else {
                continue;
            };
            let least = idlest.as_ref().map_or(JUST_OPENED, |one| one.since);
            if since >= least {
                idlest = Some(Idle {
                    volume,
                    slot,
                    kept,
                    since,
                });
            }
            if since == Duration::MAX {
                break;
            }
        }
        idlest
    }
}
