//! All links, one for each container.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use sandyard_agent_client::{AgentClient, BoxedStream, Dial, Dialling, Endpoint};
use tokio::runtime::Handle;
use tokio::sync::{
    OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, Semaphore, SemaphorePermit, watch,
};

use super::OpenLink;
use super::connection::Link;
use super::dial::LinkDialler;

/// Timeout of opening a link: a container engine may be busy, and an agent starts.
const OPEN_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a caller waits for a container that is being paused or copied.
const GUARD_TIMEOUT: Duration = Duration::from_secs(60);
/// How long opening a link occupies a slot. Slower ones continue without a slot and delay no others: some containers never answer,
/// and are tried again and again.
pub(super) const SLOT_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of slots: a server that starts opens a link to every container.
pub(super) const MAX_OPENING: usize = 16;

/// The links to all containers; clones share them.
#[derive(Clone)]
pub(crate) struct Links {
    inner: Arc<Inner>,
}

struct Inner {
    opener: Arc<dyn OpenLink>,
    /// The runtime of links. Gateways open links, too, from runtimes of their own that end earlier.
    runtime: Handle,
    slots: Mutex<LinkSlots>,
    open_slots: Semaphore,
    /// Locked shared while a link to a container is opened, and exclusively while the container is paused.
    guards: Mutex<HashMap<String, Weak<RwLock<()>>>>,
}

#[derive(Default)]
struct LinkSlots {
    /// Number of attempts, to identify each.
    attempts: u64,
    by_id: HashMap<String, LinkSlot>,
}

#[derive(Default)]
struct LinkSlot {
    link: Option<Arc<Link>>,
    opening: Option<Opening>,
}

/// An attempt in progress, shared by all callers that need the link.
struct Opening {
    attempt: u64,
    outcome: watch::Receiver<Option<Outcome>>,
}

type Outcome = Result<Arc<Link>, (io::ErrorKind, String)>;

impl Links {
    /// Starts without links. They run in the current runtime.
    pub(crate) fn new(opener: Arc<dyn OpenLink>) -> Self {
        Self {
            inner: Arc::new(Inner {
                opener,
                runtime: Handle::current(),
                slots: Mutex::default(),
                open_slots: Semaphore::new(MAX_OPENING),
                guards: Mutex::default(),
            }),
        }
    }

    /// A dialler for the agent of a container. Nothing is opened before it is used.
    pub(crate) fn dialler(&self, id: &str) -> Arc<dyn Dial> {
        Arc::new(LinkDialler::new(self.clone(), id))
    }

    /// Closes the link to a container that was stopped or removed, and all connections over it.
    pub(crate) fn forget(&self, id: &str) {
        let slot = self.inner.slots.lock().by_id.remove(id);
        if let Some(link) = slot.and_then(|slot| slot.link) {
            link.mux.close();
        }
    }

    /// Waits until no link to a container is being opened, and prevents new ones until the guard is dropped.
    ///
    /// A container must not be paused in the middle of a `docker exec`: the new process is paused half-way, Docker waits for it
    /// with the container locked, and the container becomes unusable.
    pub(crate) async fn block(&self, id: &str) -> OwnedRwLockWriteGuard<()> {
        self.inner.guard(id).write_owned().await
    }

    /// Removes links that have ended, of containers that were removed elsewhere.
    pub(crate) fn remove_ended(&self) {
        let is_used = |slot: &LinkSlot| {
            let link = slot.link.as_ref();
            slot.opening.is_some() || link.is_some_and(|link| !link.has_ended())
        };
        self.inner
            .slots
            .lock()
            .by_id
            .retain(|_, slot| is_used(slot));
    }

    /// Number of containers with a link.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.inner.slots.lock().by_id.len()
    }

    /// Closes all links.
    pub(crate) fn close_all(&self) {
        let all = std::mem::take(&mut self.inner.slots.lock().by_id);
        for link in all.into_values().filter_map(|slot| slot.link) {
            link.mux.close();
        }
    }

    /// The link to a container; opens one if there is none that works.
    pub(super) async fn get(&self, id: &str) -> io::Result<Arc<Link>> {
        let mut outcome = match self.find_or_start(id) {
            Ok(link) => return Ok(link),
            Err(outcome) => outcome,
        };
        // The task always sends an outcome.
        let outcome = outcome.wait_for(Option::is_some).await;
        let outcome = outcome.ok().and_then(|outcome| outcome.clone());
        let failed = || (io::ErrorKind::ConnectionAborted, "interrupted".to_owned());
        let link_result = outcome.unwrap_or_else(|| Err(failed()));
        link_result.map_err(|(kind, message)| io::Error::new(kind, message))
    }

    fn find_or_start(&self, id: &str) -> Result<Arc<Link>, watch::Receiver<Option<Outcome>>> {
        let mut slots = self.inner.slots.lock();
        slots.attempts += 1;
        let attempt = slots.attempts;
        let slot = slots.by_id.entry(id.to_owned()).or_default();
        if let Some(opening) = &slot.opening {
            return Err(opening.outcome.clone());
        }
        let current = slot.link.as_ref();
        if let Some(link) = current.filter(|link| !link.has_ended() && !link.is_silent()) {
            return Ok(link.clone());
        }
        let (sender, outcome) = watch::channel(None);
        slot.opening = Some(Opening {
            attempt,
            outcome: outcome.clone(),
        });
        let (inner, id) = (self.inner.clone(), id.to_owned());
        self.inner.runtime.spawn(async move {
            // Also runs when this task ends early.
            let attempt = Attempt {
                inner: &inner,
                id: &id,
                attempt,
            };
            let link_result = inner.open_with_slot(&id).await;
            let link_result = link_result.map_err(|error| (error.kind(), error.to_string()));
            let link_result = attempt.settle(link_result);
            sender.send_replace(Some(link_result));
        });
        Err(outcome)
    }
}

impl Inner {
    fn guard(&self, id: &str) -> Arc<RwLock<()>> {
        let mut all = self.guards.lock();
        if let Some(existing) = all.get(id).and_then(Weak::upgrade) {
            return existing;
        }
        all.retain(|_, existing| existing.strong_count() > 0);
        let new = Arc::new(RwLock::new(()));
        all.insert(id.to_owned(), Arc::downgrade(&new));
        new
    }

    async fn open_with_slot(&self, id: &str) -> io::Result<Arc<Link>> {
        let (slot, _guard) = self.slot(id).await?;
        let link_result = tokio::time::timeout(OPEN_TIMEOUT, self.open(id, slot)).await;
        link_result.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// A slot, and the guard against pausing the container. Neither is held while waiting for the other: a copy of one container
    /// must not occupy slots, and a lack of slots must not delay a pause.
    async fn slot(&self, id: &str) -> io::Result<(SemaphorePermit<'_>, OwnedRwLockReadGuard<()>)> {
        let guard = self.guard(id);
        loop {
            let waited = tokio::time::timeout(GUARD_TIMEOUT, guard.clone().read_owned()).await;
            waited.map_err(|_| {
                let message = "the sandbox is being copied; try again later";
                io::Error::new(io::ErrorKind::TimedOut, message)
            })?;
            // The semaphore is never closed. Waiting for a slot does not count as the container's time.
            let slot = self.open_slots.acquire().await.map_err(io::Error::other)?;
            if let Ok(guard) = guard.clone().try_read_owned() {
                return Ok((slot, guard));
            }
        }
    }

    /// Opens a link and initialises the agent, which accepts no connections before that.
    async fn open(&self, id: &str, slot: SemaphorePermit<'_>) -> io::Result<Arc<Link>> {
        let ask = async {
            let request = self.opener.init_request(id).await?;
            let stream = self.opener.open(id).await?;
            Ok::<_, io::Error>((request, stream))
        };
        // The container may take any time, so it must not occupy a slot.
        let (request, stream) = with_slot(slot, ask).await?;
        let link = Link::start(stream);
        let only_link = SingleLinkDialler {
            link: link.clone(),
            name: format!("docker:{id}"),
        };
        let agent = AgentClient::new(Endpoint::Custom(Arc::new(only_link)));
        let initialised = agent.init(&request).await;
        initialised.map_err(|error| io::Error::new(io::ErrorKind::ConnectionRefused, error))?;
        Ok(link)
    }
}

/// Runs work with a slot, and releases the slot when the work takes long.
async fn with_slot<T>(slot: SemaphorePermit<'_>, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    let done = tokio::time::timeout(SLOT_TIMEOUT, &mut work).await;
    drop(slot);
    match done {
        Ok(done) => done,
        Err(_) => work.await,
    }
}

/// An attempt that has not ended.
struct Attempt<'a> {
    inner: &'a Inner,
    id: &'a str,
    attempt: u64,
}

impl Attempt<'_> {
    /// Stores the link in its slot. An earlier link is closed only when there is a better one: the container may be paused.
    fn settle(self, mut outcome: Outcome) -> Outcome {
        let mut slots = self.inner.slots.lock();
        let Some(slot) = self.slot(&mut slots) else {
            if let Ok(link) = &outcome {
                link.mux.close();
            }
            return Err((
                io::ErrorKind::ConnectionAborted,
                "the sandbox was stopped".to_owned(),
            ));
        };
        if let Ok(link) = &mut outcome
            && let Some(old) = slot.link.replace(link.clone())
        {
            old.mux.close();
        }
        outcome
    }

    /// The container's slot, unless it was forgotten meanwhile.
    fn slot<'a>(&self, slots: &'a mut LinkSlots) -> Option<&'a mut LinkSlot> {
        let slot = slots.by_id.get_mut(self.id);
        slot.filter(|slot| {
            let opening = slot.opening.as_ref();
            opening.is_some_and(|opening| opening.attempt == self.attempt)
        })
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let mut slots = self.inner.slots.lock();
        if let Some(slot) = self.slot(&mut slots) {
            slot.opening = None;
            let link = slot.link.as_ref();
            if link.is_none_or(|link| link.has_ended()) {
                slots.by_id.remove(self.id);
            }
        }
    }
}

/// Dials over one fixed link.
struct SingleLinkDialler {
    link: Arc<Link>,
    name: String,
}

impl Dial for SingleLinkDialler {
    fn name(&self) -> &str {
        &self.name
    }

    fn dial(&self) -> Dialling<'_> {
        Box::pin(async {
            let stream: BoxedStream = Box::new(self.link.dial().await?);
            Ok(stream)
        })
    }
}
