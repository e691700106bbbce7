//! VolumeHelpers: small hidden sandboxes, one a volume, through which its files are reached whether or not other sandboxes have it.
//!
//! A keeper has no way out, belongs to this process and goes with it, or soon after. How it is made is the provider's: see
//! [`VolumeHelperBackend`]. It is made when a volume is opened, shared by all who
//! open it, and deleted when its agent has had nothing to do for a while. It is no instance: whoever lists those does not
//! see it. No quota counts it, so each is small, and there are not many: see [`room`].

mod activity;
mod dial;
mod slots;

use std::any::Any;
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use sandyard_agent_client::{AgentClient, BoxedStream, Endpoint};
use sandyard_core::Limits;
use sandyard_provider::{ProviderError, ProviderErrorKind, Result, Verb};
use tokio::sync::OwnedSemaphorePermit;

pub(crate) use self::activity::{Activity, Silence, activity};
use self::dial::HelperDialler;
use self::slots::Slots;
use crate::CallTimeouts;

/// The most a keeper has: enough for one program that lists or removes files.
pub(crate) const LIMITS: Limits = Limits {
    memory_bytes: 128 << 20,
    cpu_millis: 250,
    pids: 64,
    disk_bytes: Limits::LEAST.disk_bytes,
};
/// How long its agent may take to say whether it is busy.
pub(crate) const ASKED_WITHIN: Duration = Duration::from_secs(5);

/// Makes and removes keepers.
#[async_trait]
pub(crate) trait VolumeHelperBackend: Debug + Send + Sync + 'static {
    /// Makes a keeper of a volume; its agent answers.
    async fn make(&self, volume: &str) -> Result<NewVolumeHelper>;

    /// Removes one; a missing one is fine.
    async fn remove(&self, id: &str) -> Result<()>;

    /// All keepers of a volume, other processes' too.
    async fn all_of(&self, volume: &str) -> Result<Vec<String>>;
}

/// A keeper that was made.
pub(crate) struct NewVolumeHelper {
    /// The provider's name for it.
    pub(crate) id: String,
    /// Its agent.
    pub(crate) endpoint: Endpoint,
    /// What is held for as long as it is wanted.
    pub(crate) lease: Box<dyn Any + Send + Sync>,
}

/// The keepers of this process. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct VolumeHelpers(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    house: Arc<dyn VolumeHelperBackend>,
    timeouts: CallTimeouts,
    slots: Mutex<HashMap<String, Slot>>,
    room: Slots,
}

/// The keeper of one volume; locked while one is made, so that nobody makes another.
type Slot = Arc<tokio::sync::Mutex<Option<VolumeHelper>>>;

struct VolumeHelper {
    id: String,
    endpoint: Endpoint,
    opened: Instant,
    /// Since when it does not answer.
    silence: Option<Silence>,
    /// One of those there are.
    place: OwnedSemaphorePermit,
    /// With this it goes, where that is so.
    _lease: Box<dyn Any + Send + Sync>,
}

impl Debug for VolumeHelper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VolumeHelper")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl VolumeHelpers {
    /// None yet.
    pub(crate) fn new(house: impl VolumeHelperBackend, timeouts: CallTimeouts) -> Self {
        Self(Arc::new(Shared {
            house: Arc::new(house),
            timeouts,
            slots: Mutex::default(),
            room: Slots::default(),
        }))
    }

    /// The client of a volume's keeper, which is there when this returns, and again whenever it is needed.
    pub(crate) async fn open(&self, volume: &str) -> Result<AgentClient> {
        drop(self.0.reach_in_time(volume).await?);
        let way = HelperDialler {
            name: format!("volume {volume}"),
            volume: volume.to_owned(),
            keepers: self.clone(),
        };
        let client = AgentClient::patient(Endpoint::Custom(Arc::new(way)));
        Ok(client.as_user("root"))
    }

    /// Deletes a volume's keepers, other processes' too.
    pub(crate) async fn end(&self, volume: &str) -> Result<()> {
        if let Some(slot) = self.0.known(volume) {
            self.0.remove(&mut *slot.lock().await).await?;
            self.0.forget(volume, &slot);
        }
        for id in self.0.house.all_of(volume).await? {
            self.0.house.remove(&id).await?;
        }
        Ok(())
    }

    /// Deletes all keepers of this process.
    pub(crate) async fn end_all(&self) {
        let slots = std::mem::take(&mut *self.0.slots());
        for slot in slots.into_values() {
            // What cannot be deleted goes with our connection.
            let _ = self.0.remove(&mut *slot.lock().await).await;
        }
    }
}

impl Shared {
    fn slots(&self) -> MutexGuard<'_, HashMap<String, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, volume: &str) -> Option<Slot> {
        self.slots().get(volume).cloned()
    }

    /// Forgets a slot that nobody else is at.
    fn forget(&self, volume: &str, slot: &Slot) {
        let mut slots = self.slots();
        let is_ours = slots.get(volume).is_some_and(|one| Arc::ptr_eq(one, slot));
        // The map's and ours.
        if is_ours && Arc::strong_count(slot) == 2 {
            slots.remove(volume);
        }
    }

    async fn reach_in_time(self: &Arc<Self>, volume: &str) -> Result<BoxedStream> {
        let verb = Verb::OpenVolume;
        let most = self.timeouts.of(verb);
        match tokio::time::timeout(most, self.reach(volume)).await {
            Ok(done) => done,
            Err(_) => {
                let message = format!("it took longer than {most:?} to open a volume");
                Err(ProviderError::new(ProviderErrorKind::TimedOut, message))
            }
        }
    }

    /// A connection to the agent of a volume's keeper, which is made if there is none.
    async fn reach(self: &Arc<Self>, volume: &str) -> Result<BoxedStream> {
        let slot = self.slots().entry(volume.to_owned()).or_default().clone();
        let mut kept = slot.lock().await;
        if let Some(keeper) = &mut *kept {
            keeper.opened = Instant::now();
            if let Ok(stream) = keeper.endpoint.dial().await {
                return Ok(stream);
            }
            // It died, or somebody took it away.
            self.remove(&mut kept).await?;
        }
        match self.make(volume).await {
            Ok((keeper, stream)) => {
                self.watch(volume, keeper.id.clone());
                *kept = Some(keeper);
                Ok(stream)
            }
            Err(error) => {
                drop(kept);
                self.forget(volume, &slot);
                Err(error)
            }
        }
    }

    async fn make(&self, volume: &str) -> Result<(VolumeHelper, BoxedStream)> {
        let place = self.place().await?;
        let made = self.house.make(volume).await?;
        let stream = made.endpoint.dial().await.map_err(|error| {
            let message = "the agent of a volume cannot be reached";
            ProviderError::new(ProviderErrorKind::Unavailable, message).source(error)
        })?;
        let keeper = VolumeHelper {
            id: made.id,
            endpoint: made.endpoint,
            opened: Instant::now(),
            silence: None,
            place,
            _lease: made.lease,
        };
        Ok((keeper, stream))
    }

    async fn remove(&self, kept: &mut Option<VolumeHelper>) -> Result<()> {
        if let Some(keeper) = kept {
            self.house.remove(&keeper.id).await?;
        }
        *kept = None;
        Ok(())
    }

    /// Has a keeper deleted once it is not used any more.
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
                let Some(slot) = shared.known(&volume) else {
                    return;
                };
                if shared.retire(&slot, &id).await {
                    shared.forget(&volume, &slot);
                    return;
                }
            }
        });
    }

    /// Deletes a keeper that is not used any more; says whether there is nothing left to watch.
    async fn retire(&self, slot: &Slot, id: &str) -> bool {
        let mut kept = slot.lock().await;
        let Some(keeper) = kept.as_mut().filter(|keeper| keeper.id == *id) else {
            return true;
        };
        if keeper.opened.elapsed() < self.timeouts.keep || keeper.is_used(self.timeouts.keep).await
        {
            return false;
        }
        let removed = self.remove(&mut kept).await;
        if let Err(error) = &removed {
            tracing::warn!(
                error = error as &dyn std::error::Error,
                "Failed to delete the keeper of a volume; trying again later"
            );
        }
        removed.is_ok()
    }
}

impl VolumeHelper {
    /// Says whether somebody was at it of late, or may have been: one that is silent now may only be slow.
    async fn is_used(&mut self, keep: Duration) -> bool {
        let now = activity(&self.endpoint, ASKED_WITHIN).await;
        if now != Activity::Silent {
            self.silence = None;
        }
        match now {
            Activity::Busy => true,
            Activity::Idle(idle) => idle.min(self.opened.elapsed()) < keep,
            Activity::Silent => !self.silence.get_or_insert_default().is_long(keep),
        }
    }
}
