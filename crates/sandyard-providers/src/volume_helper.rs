//! Volume helpers: small hidden sandboxes, one per volume, which give access to its files whether or not other sandboxes mount it.
//!
//! A volume helper has no egress and belongs to this process: it is deleted with it or soon after. The provider creates it: see
//! [`VolumeHelperBackend`]. It is created when a volume is opened, shared by all that open it, and deleted when its agent was idle
//! for a while. It is not an instance: it is not listed and no quota counts it. Therefore it is small, and their number is bounded:
//! see [`slots`].

mod activity;
mod dial;
mod slots;

use std::any::Any;
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::Mutex;
use sandyard_agent_client::{AgentClient, BoxedStream, Endpoint};
use sandyard_core::Limits;
use sandyard_provider::{ProviderError, ProviderErrorKind, Result, Verb};
use tokio::sync::OwnedSemaphorePermit;

pub(crate) use self::activity::{Activity, Silence, activity};
use self::dial::HelperDialler;
use self::slots::Slots;
use crate::CallTimeouts;

/// Limits of a volume helper: enough for one program that lists or removes files.
pub(crate) const LIMITS: Limits = Limits {
    memory_bytes: 128 << 20,
    cpu_millis: 250,
    pids: 64,
    disk_bytes: Limits::LEAST.disk_bytes,
};
/// How long its agent may take to report its activity.
pub(crate) const ACTIVITY_TIMEOUT: Duration = Duration::from_secs(5);

/// Creates and removes volume helpers.
#[async_trait]
pub(crate) trait VolumeHelperBackend: Debug + Send + Sync + 'static {
    /// Creates a helper for a volume. Its agent answers when this returns.
    async fn create(&self, volume: &str) -> Result<NewVolumeHelper>;

    /// Removes a helper; removing a missing one succeeds.
    async fn remove(&self, id: &str) -> Result<()>;

    /// Ids of all helpers of a volume, including those of other processes.
    async fn list(&self, volume: &str) -> Result<Vec<String>>;
}

/// A new volume helper.
pub(crate) struct NewVolumeHelper {
    /// The provider's id of it.
    pub(crate) id: String,
    /// Its agent.
    pub(crate) endpoint: Endpoint,
    /// Kept alive for as long as the helper is needed.
    pub(crate) lease: Box<dyn Any + Send + Sync>,
}

/// The volume helpers of this process. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct VolumeHelpers(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    backend: Arc<dyn VolumeHelperBackend>,
    timeouts: CallTimeouts,
    slots: Mutex<HashMap<String, Slot>>,
    capacity: Slots,
}

/// The helper of one volume. It is locked during creation, so that only one is created.
type Slot = Arc<tokio::sync::Mutex<Option<VolumeHelper>>>;

struct VolumeHelper {
    id: String,
    endpoint: Endpoint,
    opened_at: Instant,
    /// Since when it has not answered.
    silence: Option<Silence>,
    /// Its share of the capacity.
    permit: OwnedSemaphorePermit,
    /// Deletes the helper when dropped, if the provider ties it to this process.
    _lease: Box<dyn Any + Send + Sync>,
}

sandyard_core::debug_fields!(VolumeHelper: id);

impl VolumeHelpers {
    /// Starts without helpers.
    pub(crate) fn new(backend: impl VolumeHelperBackend, timeouts: CallTimeouts) -> Self {
        Self(Arc::new(Shared {
            backend: Arc::new(backend),
            timeouts,
            slots: Mutex::default(),
            capacity: Slots::default(),
        }))
    }

    /// A client of a volume's helper, which is created now and whenever it is missing.
    pub(crate) async fn open(&self, volume: &str) -> Result<AgentClient> {
        drop(self.0.connect_in_time(volume).await?);
        let dialler = HelperDialler {
            name: format!("volume {volume}"),
            volume: volume.to_owned(),
            helpers: self.clone(),
        };
        let client = AgentClient::patient(Endpoint::Custom(Arc::new(dialler)));
        Ok(client.as_user("root"))
    }

    /// Deletes a volume's helpers, including those of other processes.
    pub(crate) async fn delete(&self, volume: &str) -> Result<()> {
        if let Some(slot) = self.0.slot(volume) {
            self.0.remove(&mut *slot.lock().await).await?;
            self.0.forget(volume, &slot);
        }
        for id in self.0.backend.list(volume).await? {
            self.0.backend.remove(&id).await?;
        }
        Ok(())
    }

    /// Deletes all helpers of this process.
    pub(crate) async fn delete_all(&self) {
        let slots = std::mem::take(&mut *self.0.slots.lock());
        for slot in slots.into_values() {
            // A helper that cannot be deleted now is deleted when the connection to its provider ends.
            let _ = self.0.remove(&mut *slot.lock().await).await;
        }
    }
}

impl Shared {
    fn slot(&self, volume: &str) -> Option<Slot> {
        self.slots.lock().get(volume).cloned()
    }

    /// Forgets a slot that no other task uses.
    fn forget(&self, volume: &str, slot: &Slot) {
        let mut slots = self.slots.lock();
        let is_current = slots
            .get(volume)
            .is_some_and(|entry| Arc::ptr_eq(entry, slot));
        // One reference is the map's, one is the caller's.
        if is_current && Arc::strong_count(slot) == 2 {
            slots.remove(volume);
        }
    }

    async fn connect_in_time(self: &Arc<Self>, volume: &str) -> Result<BoxedStream> {
        let verb = Verb::OpenVolume;
        let timeout = self.timeouts.of(verb);
        match tokio::time::timeout(timeout, self.connect(volume)).await {
            Ok(done) => done,
            Err(_) => {
                let message = format!("opening a volume took longer than {timeout:?}");
                Err(ProviderError::new(ProviderErrorKind::TimedOut, message))
            }
        }
    }

    /// A connection to the agent of a volume's helper, which is created if there is none.
    async fn connect(self: &Arc<Self>, volume: &str) -> Result<BoxedStream> {
        let slot = self
            .slots
            .lock()
            .entry(volume.to_owned())
            .or_default()
            .clone();
        let mut current = slot.lock().await;
        if let Some(helper) = &mut *current {
            helper.opened_at = Instant::now();
            if let Ok(stream) = helper.endpoint.dial().await {
                return Ok(stream);
            }
            // The helper died or was removed.
            self.remove(&mut current).await?;
        }
        match self.create(volume).await {
            Ok((helper, stream)) => {
                self.watch(volume, helper.id.clone());
                *current = Some(helper);
                Ok(stream)
            }
            Err(error) => {
                drop(current);
                self.forget(volume, &slot);
                Err(error)
            }
        }
    }

    async fn create(&self, volume: &str) -> Result<(VolumeHelper, BoxedStream)> {
        let permit = self.acquire().await?;
        let created = self.backend.create(volume).await?;
        let stream = created.endpoint.dial().await.map_err(|error| {
            let message = "the agent of a volume cannot be reached";
            ProviderError::new(ProviderErrorKind::Unavailable, message).source(error)
        })?;
        let helper = VolumeHelper {
            id: created.id,
            endpoint: created.endpoint,
            opened_at: Instant::now(),
            silence: None,
            permit,
            _lease: created.lease,
        };
        Ok((helper, stream))
    }

    async fn remove(&self, current: &mut Option<VolumeHelper>) -> Result<()> {
        if let Some(helper) = current {
            self.backend.remove(&helper.id).await?;
        }
        *current = None;
        Ok(())
    }

    /// Deletes a helper when it is no longer used.
    fn watch(self: &Arc<Self>, volume: &str, id: String) {
        let shared = Arc::downgrade(self);
        let volume = volume.to_owned();
        let every = self.timeouts.keep / 4;
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(every).await;
                let Some(shared) = shared.upgrade() else {
                    return;
                };
                let Some(slot) = shared.slot(&volume) else {
                    return;
                };
                if shared.remove_if_idle(&slot, &id).await {
                    shared.forget(&volume, &slot);
                    return;
                }
            }
        });
    }

    /// Deletes a helper that is no longer used; returns whether watching can end.
    async fn remove_if_idle(&self, slot: &Slot, id: &str) -> bool {
        let mut current = slot.lock().await;
        let Some(helper) = current.as_mut().filter(|helper| helper.id == *id) else {
            return true;
        };
        if helper.opened_at.elapsed() < self.timeouts.keep
            || helper.is_used(self.timeouts.keep).await
        {
            return false;
        }
        let removed = self.remove(&mut current).await;
        if let Err(error) = &removed {
            tracing::warn!(
                error = error as &dyn std::error::Error,
                "Failed to delete a volume helper; trying again later"
            );
        }
        removed.is_ok()
    }
}

impl VolumeHelper {
    /// Whether it was used within `keep`, or may have been: a helper that is silent now may only be slow.
    async fn is_used(&mut self, keep: Duration) -> bool {
        let now = activity(&self.endpoint, ACTIVITY_TIMEOUT).await;
        if now != Activity::Silent {
            self.silence = None;
        }
        match now {
            Activity::Busy => true,
            Activity::Idle(idle) => idle.min(self.opened_at.elapsed()) < keep,
            Activity::Silent => !self.silence.get_or_insert_default().is_long(keep),
        }
    }
}
