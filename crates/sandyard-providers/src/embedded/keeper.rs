//! Keepers: small hidden sandboxes, one a volume, through which its files are reached whether or not other sandboxes have it.
//!
//! A keeper has no way out, belongs to this process and goes with it. It is made when a volume is opened, shared by all who
//! open it, and deleted when its agent has had nothing to do for a while. It is no instance: whoever lists those does not
//! see it. No quota counts it, so each is small, and there are not many: see [`room`].

mod room;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sandyard_agent_client::{AgentClient, BoxedStream, Dial, Dialling, Endpoint};
use sandyard_core::{Limits, SandboxId};
use sandyard_engine::{
    DEFAULT_TEMPLATE, Engine, EngineError, ErrorKind, Lease, MountSpec, SandboxSpec,
};
use sandyard_provider::{Result, VOLUME_PATH, Verb};
use tokio::sync::OwnedSemaphorePermit;

use self::room::Room;
use super::error;
use crate::Times;

/// Label: the volume a keeper is for.
const KEEPER: &str = "sandyard.keeper";
/// The most a keeper has: enough for one program that lists or removes files.
const LIMITS: Limits = Limits {
    memory_bytes: 128 << 20,
    cpu_millis: 250,
    pids: 64,
    disk_bytes: Limits::LEAST.disk_bytes,
};
/// How long its agent may take to say whether it is busy.
const ASKED_WITHIN: Duration = Duration::from_secs(5);

/// The keepers of this process. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Keepers(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    engine: Engine,
    limits: Limits,
    times: Times,
    slots: Mutex<HashMap<String, Slot>>,
    room: Room,
}

/// The keeper of one volume; locked while one is made, so that nobody makes another.
type Slot = Arc<tokio::sync::Mutex<Option<Keeper>>>;

#[derive(Debug)]
struct Keeper {
    id: SandboxId,
    endpoint: Endpoint,
    opened: Instant,
    /// One of those there are.
    place: OwnedSemaphorePermit,
    /// With this it goes.
    _lease: Lease,
}

impl Keepers {
    /// None yet; each will have a small part of what sandboxes have by default.
    pub(super) fn new(engine: Engine, default: &Limits, times: Times) -> Self {
        Self(Arc::new(Shared {
            engine,
            limits: default.least_of(&LIMITS),
            times,
            slots: Mutex::default(),
            room: Room::default(),
        }))
    }

    /// The client of a volume's keeper, which is there when this returns, and again whenever it is needed.
    pub(super) async fn open(&self, volume: &str) -> Result<AgentClient> {
        drop(self.0.reach_in_time(volume).await?);
        let way = Way {
            name: format!("volume {volume}"),
            volume: volume.to_owned(),
            keepers: self.clone(),
        };
        let client = AgentClient::patient(Endpoint::Custom(Arc::new(way)));
        Ok(client.as_user("root"))
    }

    /// Deletes a volume's keepers, other processes' too.
    pub(super) async fn end(&self, volume: &str) -> Result<(), EngineError> {
        if let Some(slot) = self.0.known(volume) {
            self.0.remove(&mut *slot.lock().await).await?;
            self.0.forget(volume, &slot);
        }
        let all = self.0.engine.list().await?;
        let is_its = |label: Option<&String>| label.is_some_and(|of| of == volume);
        for keeper in all.iter().filter(|info| is_its(info.labels.get(KEEPER))) {
            self.0.engine.delete(&keeper.id).await?;
        }
        Ok(())
    }

    /// Deletes all keepers of this process.
    pub(super) async fn end_all(&self) {
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
        let most = self.times.of(verb);
        match tokio::time::timeout(most, self.reach(volume)).await {
            Ok(done) => done.map_err(|error| error::provider_error(verb, error)),
            Err(_) => Err(error::timed_out(verb, most)),
        }
    }

    /// A connection to the agent of a volume's keeper, which is made if there is none.
    async fn reach(self: &Arc<Self>, volume: &str) -> Result<BoxedStream, EngineError> {
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

    async fn make(&self, volume: &str) -> Result<(Keeper, BoxedStream), EngineError> {
        let spec = SandboxSpec {
            template: DEFAULT_TEMPLATE.to_owned(),
            limits: self.limits.clone(),
            hostname: Some("volume".to_owned()),
            labels: BTreeMap::from([(KEEPER.to_owned(), volume.to_owned())]),
            mounts: vec![MountSpec {
                volume: volume.to_owned(),
                path: VOLUME_PATH.to_owned(),
            }],
            ..SandboxSpec::default()
        };
        let place = self.place().await?;
        let made = match self.engine.create_ephemeral(&spec).await {
            // The launcher died. What it was making goes with the connection, so nothing is made twice.
            Err(error) if error.kind == ErrorKind::Unavailable => {
                self.engine.create_ephemeral(&spec).await
            }
            other => other,
        };
        let (info, lease) = made?;
        let endpoint = self.engine.agent(&info.id).endpoint().clone();
        let stream = endpoint.dial().await.map_err(|error| {
            let message = format!("reaching the agent of a volume: {error}");
            EngineError::new(ErrorKind::Unavailable, message)
        })?;
        let keeper = Keeper {
            id: info.id,
            endpoint,
            opened: Instant::now(),
            place,
            _lease: lease,
        };
        Ok((keeper, stream))
    }

    async fn remove(&self, kept: &mut Option<Keeper>) -> Result<(), EngineError> {
        if let Some(keeper) = kept {
            self.engine.delete(&keeper.id).await?;
        }
        *kept = None;
        Ok(())
    }

    /// Has a keeper deleted once it is not used any more.
    fn watch(self: &Arc<Self>, volume: &str, id: SandboxId) {
        let shared = Arc::downgrade(self);
        let volume = volume.to_owned();
        let every = self.times.keep / 4;
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
    async fn retire(&self, slot: &Slot, id: &SandboxId) -> bool {
        let mut kept = slot.lock().await;
        let Some(keeper) = kept.as_ref().filter(|keeper| keeper.id == *id) else {
            return true;
        };
        if keeper.opened.elapsed() < self.times.keep || self.is_busy(keeper).await {
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

    async fn is_busy(&self, keeper: &Keeper) -> bool {
        let idle = keeper.idle(ASKED_WITHIN).await;
        idle.is_none_or(|idle| idle < self.times.keep)
    }
}

impl Keeper {
    /// For how long nobody has been at it; none: somebody is.
    async fn idle(&self, asked_within: Duration) -> Option<Duration> {
        let agent = AgentClient::new(self.endpoint.clone());
        match tokio::time::timeout(asked_within, agent.activity()).await {
            Ok(Ok(now)) => (now.processes == 0 && now.streams == 0)
                .then(|| Duration::from_millis(now.idle_ms).min(self.opened.elapsed())),
            // One that does not answer is of no use to anybody.
            _ => Some(Duration::MAX),
        }
    }
}

/// The way to the agent of a volume, whichever keeper that is by now.
struct Way {
    name: String,
    volume: String,
    keepers: Keepers,
}

impl Dial for Way {
    fn name(&self) -> &str {
        &self.name
    }

    fn dial(&self) -> Dialling<'_> {
        Box::pin(async {
            let reached = self.keepers.0.reach_in_time(&self.volume).await;
            reached.map_err(|error| io::Error::new(io::ErrorKind::ConnectionRefused, error))
        })
    }
}
