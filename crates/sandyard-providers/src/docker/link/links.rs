//! All links, one for each container.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sandyard_agent_client::{AgentClient, BoxedStream, Dial, Dialling, Endpoint};
use tokio::runtime::Handle;
use tokio::sync::{
    OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, Semaphore, SemaphorePermit, watch,
};

use super::OpenLink;
use super::connection::Link;
use super::dial::LinkDialler;

/// How long a link may take: a container engine that is busy, and an agent that starts.
const OPENING: Duration = Duration::from_secs(60);
/// How long whoever wants a link waits for a container that is being frozen or copied.
const CALM: Duration = Duration::from_secs(60);
/// How long one that is asked for counts as one of those at once. Whoever takes longer goes on and keeps nobody else waiting: some
/// containers answer nobody, and are asked again and again.
pub(super) const COUNTS: Duration = Duration::from_secs(5);
/// How many are asked for at once: a server that starts wants one to every container there is.
pub(super) const AT_ONCE: usize = 16;

/// The links to all containers; clones share them.
#[derive(Clone)]
pub(crate) struct Links {
    inner: Arc<Inner>,
}

struct Inner {
    opener: Arc<dyn OpenLink>,
    /// Where links live. A gateway asks for them too, and has threads of its own, which end before ours.
    runtime: Handle,
    slots: Mutex<LinkSlots>,
    turns: Semaphore,
    /// Held by those who open a link to a container, and alone by whoever freezes it.
    calm: Mutex<HashMap<String, Weak<RwLock<()>>>>,
}

#[derive(Default)]
struct LinkSlots {
    /// Counts attempts, to tell one from another.
    attempts: u64,
    by_id: HashMap<String, LinkSlot>,
}

#[derive(Default)]
struct LinkSlot {
    link: Option<Arc<Link>>,
    opening: Option<Opening>,
}

/// An attempt that all who want a link wait for.
struct Opening {
    attempt: u64,
    outcome: watch::Receiver<Option<Outcome>>,
}

type Outcome = Result<Arc<Link>, (io::ErrorKind, String)>;

impl Links {
    /// None yet. They will live in the runtime that this is called in.
    pub(crate) fn new(opener: Arc<dyn OpenLink>) -> Self {
        Self {
            inner: Arc::new(Inner {
                opener,
                runtime: Handle::current(),
                slots: Mutex::default(),
                turns: Semaphore::new(AT_ONCE),
                calm: Mutex::default(),
            }),
        }
    }

    /// The way to the agent of a container. Nothing is opened before it is used.
    pub(crate) fn way(&self, id: &str) -> Arc<dyn Dial> {
        Arc::new(LinkDialler::new(self.clone(), id))
    }

    /// Closes the link to a container, if there is one, and all connections over it: it has stopped, or is gone.
    pub(crate) fn forget(&self, id: &str) {
        let slot = self.inner.slots().by_id.remove(id);
        if let Some(link) = slot.and_then(|slot| slot.link) {
            link.mux.close();
        }
    }

    /// Waits until no link to a container is being opened, and keeps it so until what this returns is dropped.
    ///
    /// A container must not be frozen in the middle of a `docker exec`: the program that is just being started is frozen half-way
    /// there, Docker waits for it with the container locked, and nothing can be done with that container any more.
    pub(crate) async fn calm(&self, id: &str) -> OwnedRwLockWriteGuard<()> {
        self.inner.calm(id).write_owned().await
    }

    /// Forgets those that have ended, of containers that others have removed.
    pub(crate) fn tidy(&self) {
        let is_used = |slot: &LinkSlot| {
            let link = slot.link.as_ref();
            slot.opening.is_some() || link.is_some_and(|link| !link.has_ended())
        };
        self.inner.slots().by_id.retain(|_, slot| is_used(slot));
    }

    /// How many containers are known.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.inner.slots().by_id.len()
    }

    /// Closes all of them.
    pub(crate) fn close_all(&self) {
        let all = std::mem::take(&mut self.inner.slots().by_id);
        for link in all.into_values().filter_map(|slot| slot.link) {
            link.mux.close();
        }
    }

    /// The link to a container, opened if there is none that is good.
    pub(super) async fn get(&self, id: &str) -> io::Result<Arc<Link>> {
        let mut outcome = match self.find_or_begin(id) {
            Ok(link) => return Ok(link),
            Err(outcome) => outcome,
        };
        // Of a task, which says something whatever becomes of it.
        let outcome = outcome.wait_for(Option::is_some).await;
        let outcome = outcome.ok().and_then(|outcome| outcome.clone());
        let failed = || (io::ErrorKind::ConnectionAborted, "given up".to_owned());
        let opened = outcome.unwrap_or_else(|| Err(failed()));
        opened.map_err(|(kind, message)| io::Error::new(kind, message))
    }

    fn find_or_begin(&self, id: &str) -> Result<Arc<Link>, watch::Receiver<Option<Outcome>>> {
        let mut slots = self.inner.slots();
        slots.attempts += 1;
        let attempt = slots.attempts;
        let slot = slots.by_id.entry(id.to_owned()).or_default();
        if let Some(opening) = &slot.opening {
            return Err(opening.outcome.clone());
        }
        let good = slot.link.as_ref();
        if let Some(link) = good.filter(|link| !link.has_ended() && !link.is_silent()) {
            return Ok(link.clone());
        }
        let (telling, outcome) = watch::channel(None);
        slot.opening = Some(Opening {
            attempt,
            outcome: outcome.clone(),
        });
        let (inner, id) = (self.inner.clone(), id.to_owned());
        self.inner.runtime.spawn(async move {
            // Also when this task ends for another reason.
            let attempt = Attempt {
                inner: &inner,
                id: &id,
                attempt,
            };
            let opened = inner.open_in_turn(&id).await;
            let opened = opened.map_err(|error| (error.kind(), error.to_string()));
            let opened = attempt.settle(opened);
            telling.send_replace(Some(opened));
        });
        Err(outcome)
    }
}

impl Inner {
    fn slots(&self) -> MutexGuard<'_, LinkSlots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn calm(&self, id: &str) -> Arc<RwLock<()>> {
        let mut all = self.calm.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(id).and_then(Weak::upgrade) {
            return known;
        }
        all.retain(|_, one| one.strong_count() > 0);
        let new = Arc::new(RwLock::new(()));
        all.insert(id.to_owned(), Arc::downgrade(&new));
        new
    }

    async fn open_in_turn(&self, id: &str) -> io::Result<Arc<Link>> {
        let (turn, _calm) = self.turn(id).await?;
        let opened = tokio::time::timeout(OPENING, self.open(id, turn)).await;
        opened.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// A turn, and the word that the container is not frozen meanwhile. Neither is kept while the other is waited for: a copy of one
    /// container must not cost the others their turns, nor want of turns keep a container from being frozen.
    async fn turn(&self, id: &str) -> io::Result<(SemaphorePermit<'_>, OwnedRwLockReadGuard<()>)> {
        let calm = self.calm(id);
        loop {
            let waited = tokio::time::timeout(CALM, calm.clone().read_owned()).await;
            waited.map_err(|_| {
                let message = "the sandbox is being copied; try again when that is done";
                io::Error::new(io::ErrorKind::TimedOut, message)
            })?;
            // Nobody closes it. Waiting for it is none of the container's time.
            let turn = self.turns.acquire().await.map_err(io::Error::other)?;
            if let Ok(calm) = calm.clone().try_read_owned() {
                return Ok((turn, calm));
            }
        }
    }

    /// Opens a link and tells the agent what it is to know: without that it lets nobody in by its other door.
    async fn open(&self, id: &str, turn: SemaphorePermit<'_>) -> io::Result<Arc<Link>> {
        let ask = async {
            let request = self.opener.init_request(id).await?;
            let stream = self.opener.open(id).await?;
            Ok::<_, io::Error>((request, stream))
        };
        // What is inside takes as long as it likes, which is nothing to the others.
        let (request, stream) = in_turn(turn, ask).await?;
        let link = Link::start(stream);
        let over = Over {
            link: link.clone(),
            name: format!("docker:{id}"),
        };
        let agent = AgentClient::new(Endpoint::Custom(Arc::new(over)));
        let told = agent.init(&request).await;
        told.map_err(|error| io::Error::new(io::ErrorKind::ConnectionRefused, error))?;
        Ok(link)
    }
}

/// Does what is to be done in turn, and goes on without the turn when that takes long.
async fn in_turn<T>(turn: SemaphorePermit<'_>, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    let done = tokio::time::timeout(COUNTS, &mut work).await;
    drop(turn);
    match done {
        Ok(done) => done,
        Err(_) => work.await,
    }
}

/// An attempt that has not come to its end.
struct Attempt<'a> {
    inner: &'a Inner,
    id: &'a str,
    attempt: u64,
}

impl Attempt<'_> {
    /// Puts the link in its slot. One that was there before is closed only if there is a better one: the container may be paused.
    fn settle(self, mut outcome: Outcome) -> Outcome {
        let mut slots = self.inner.slots();
        let Some(slot) = self.slot(&mut slots) else {
            if let Ok(link) = &outcome {
                link.mux.close();
            }
            return Err((
                io::ErrorKind::ConnectionAborted,
                "the sandbox has been stopped".to_owned(),
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
        let mut slots = self.inner.slots();
        if let Some(slot) = self.slot(&mut slots) {
            slot.opening = None;
            let link = slot.link.as_ref();
            if link.is_none_or(|link| link.has_ended()) {
                slots.by_id.remove(self.id);
            }
        }
    }
}

/// The way over one link and no other.
struct Over {
    link: Arc<Link>,
    name: String,
}

impl Dial for Over {
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
