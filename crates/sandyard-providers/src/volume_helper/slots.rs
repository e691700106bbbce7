//! Bounds the number of volume helpers. At the limit, the one that was idle longest is deleted for a new one.

use std::sync::Arc;
use std::time::Duration;

use sandyard_provider::{ProviderError, ProviderErrorKind, Result};
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

use super::{Activity, Shared, Slot, VolumeHelper, activity};

/// Maximum number of volume helpers of one process.
const MAX_HELPERS: usize = 32;
/// A helper that was opened within this time is about to be used.
const JUST_OPENED: Duration = Duration::from_millis(500);
/// How long an agent may take to report its activity while another helper waits for the slot.
const ACTIVITY_TIMEOUT: Duration = Duration::from_secs(1);

/// The slots of volume helpers.
#[derive(Debug)]
pub(super) struct Slots(Arc<Semaphore>);

impl Default for Slots {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_HELPERS)))
    }
}

/// An idle helper, locked so that nothing starts to use it.
struct Idle {
    volume: String,
    slot: Slot,
    current: OwnedMutexGuard<Option<VolumeHelper>>,
    since: Duration,
}

impl Shared {
    /// A slot for a new helper: a free one, or that of the helper that was idle longest, which is deleted.
    pub(super) async fn acquire(&self) -> Result<OwnedSemaphorePermit> {
        if let Ok(permit) = self.capacity.0.clone().try_acquire_owned() {
            return Ok(permit);
        }
        let full = || {
            let message = format!("all {MAX_HELPERS} volume helpers are busy");
            ProviderError::new(ProviderErrorKind::NoCapacity, message)
        };
        let mut idlest = self.idlest().await.ok_or_else(full)?;
        if let Some(helper) = idlest.current.as_ref() {
            self.backend.remove(&helper.id).await?;
        }
        let helper = idlest.current.take().ok_or_else(full)?;
        drop(idlest.current);
        self.forget(&idlest.volume, &idlest.slot);
        Ok(helper.permit)
    }

    /// The helper that was idle longest; `None` when all are in use.
    async fn idlest(&self) -> Option<Idle> {
        let slots: Vec<(String, Slot)> = self.slots.lock().clone().into_iter().collect();
        let mut idlest: Option<Idle> = None;
        for (volume, slot) in slots {
            // A locked slot is being created or opened, perhaps by this caller.
            let Ok(current) = slot.clone().try_lock_owned() else {
                continue;
            };
            let Some(helper) = current.as_ref() else {
                continue;
            };
            // The task that watches a silent helper deletes it.
            let Activity::Idle(idle) = activity(&helper.endpoint, ACTIVITY_TIMEOUT).await else {
                continue;
            };
            let since = idle.min(helper.opened_at.elapsed());
            let min_idle = idlest
                .as_ref()
                .map_or(JUST_OPENED, |candidate| candidate.since);
            if since >= min_idle {
                idlest = Some(Idle {
                    volume,
                    slot,
                    current,
                    since,
                });
            }
        }
        idlest
    }
}
