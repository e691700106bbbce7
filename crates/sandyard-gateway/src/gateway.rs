//! The handle: who has a way out, and by which grant.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit};
use sandyard_agent_client::Endpoint;
use sandyard_core::network::{Flow, Ground, NetworkGrant};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::channel::{self, Calls};
use crate::dial::Dialer;
use crate::http::Tls;
use crate::names::Names;
use crate::own::own_addresses;
use crate::recorder::{self, Recorder};
use crate::sandbox::Sandbox;
use crate::settings::{GatewayError, GatewaySettings};

/// How long connections may take to end.
const END_WITHIN: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 2 });

/// How often the host's own addresses are looked at.
const LOOK: Duration = Duration::from_secs(10);

/// The way out of all sandboxes of this server. Cheap to clone; ends with its last clone.
#[derive(Clone)]
pub struct Gateway {
    inner: Arc<Inner>,
    /// Sandboxes by the key their owner gave them.
    attached: Arc<Mutex<HashMap<String, Attached>>>,
    threads: Arc<Threads>,
}

/// Threads of the gateway's own: a sandbox can make a call on the socket it shares take long, which must not hold requests up.
struct Threads {
    runtime: Option<Runtime>,
    end: CancellationToken,
}

/// What flows share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) settings: GatewaySettings,
    pub(crate) names: Names,
    pub(crate) dialer: Dialer,
    pub(crate) tls: Tls,
    pub(crate) recorder: Recorder,
    /// Connections under way.
    pub(crate) flows: TaskTracker,
    pub(crate) connections: Arc<Semaphore>,
    pub(crate) max_connections: usize,
    /// Slots for connections of one owner's sandboxes together, while there are any.
    owner_connections: Mutex<HashMap<String, Weak<Semaphore>>>,
    ground: RwLock<Arc<Ground>>,
}

struct Attached {
    sandbox: Arc<Sandbox>,
    endpoint: Endpoint,
    calls: Arc<Calls>,
    since: Instant,
}

impl Gateway {
    /// Starts the gateway on threads of its own. Records of flows come out of the receiver.
    ///
    /// # Errors
    /// When the settings cannot be followed.
    pub fn start(settings: GatewaySettings) -> Result<(Self, mpsc::Receiver<Flow>), GatewayError> {
        let max_connections = settings.max_connections.min(descriptors() / 2);
        let (recorder, flows) = Recorder::new();
        let names = Names::new(&settings.nameservers)?;
        let environment = |name: &str| std::env::var(name).ok();
        let inner = Arc::new(Inner {
            dialer: Dialer::new(settings.proxy.as_deref(), environment, names.clone())?,
            names,
            tls: Tls::open(&settings.folder, settings.trusted_ca.as_deref())?,
            recorder,
            flows: TaskTracker::new(),
            connections: Arc::new(Semaphore::new(max_connections)),
            max_connections,
            owner_connections: Mutex::default(),
            ground: RwLock::new(Arc::new(ground(&settings))),
            settings,
        });
        let threads = Threads::start()?;
        threads.spawn({
            let (inner, end) = (inner.clone(), threads.end.clone());
            async move {
                end.run_until_cancelled(inner.look_after()).await;
            }
        });
        let gateway = Self {
            inner,
            attached: Arc::default(),
            threads: Arc::new(threads),
        };
        Ok((gateway, flows))
    }

    /// The certificate, in PEM, that sandboxes have to trust for requests to be changed on the way.
    pub fn authority_pem(&self) -> &str {
        self.inner.tls.authority_pem()
    }

    /// Gives a sandbox a way out, or changes what it may reach: flows that are no longer allowed end.
    ///
    /// `key` is the caller's name for it, `endpoint` its agent. Returns at once; the agent is reached in the background, again
    /// and again until [`Gateway::detach`].
    pub fn attach(&self, key: &str, endpoint: Endpoint, grant: NetworkGrant) {
        let mut attached = self.attached();
        if let Some(known) = attached.get(key)
            && known.endpoint == endpoint
        {
            let is_leading = grant.is_leading;
            known.sandbox.set_grant(grant);
            if is_leading {
                known.calls.lead.notify_one();
            }
            known.calls.wake.notify_one();
            return;
        }
        let owner_connections = self.inner.owner_connections(&grant.owner);
        let limits = self.inner.settings.limits;
        let sandbox = Arc::new(Sandbox::new(grant, limits, owner_connections));
        let calls = Arc::new(Calls::default());
        self.threads.spawn(channel::keep(
            self.inner.clone(),
            sandbox.clone(),
            endpoint.clone(),
            calls.clone(),
        ));
        let known = Attached {
            sandbox,
            endpoint,
            calls,
            since: Instant::now(),
        };
        attached.insert(key.to_owned(), known);
    }

    /// Takes a sandbox's way out away; its flows end.
    pub fn detach(&self, key: &str) {
        self.attached().remove(key);
    }

    /// Takes the way out of all away that were attached before `since` and are not among these: others may have removed them.
    pub fn retain<'a>(&self, since: Instant, keys: impl IntoIterator<Item = &'a str>) {
        let keys: HashSet<&str> = keys.into_iter().collect();
        self.attached()
            .retain(|key, known| known.since >= since || keys.contains(key.as_str()));
    }

    /// Ends all flows and waits until their records are out, for a moment at most.
    pub async fn shut_down(&self) {
        self.attached().clear();
        self.inner.flows.close();
        if tokio::time::timeout(END_WITHIN, self.inner.flows.wait())
            .await
            .is_err()
        {
            tracing::warn!("Some connections of sandboxes did not end in time");
        }
        self.inner.recorder.flush();
    }

    /// How many sandboxes have a way out, and how many connections are open.
    pub fn counts(&self) -> (usize, usize) {
        let open = self.inner.max_connections - self.inner.connections.available_permits();
        (self.attached().len(), open)
    }

    #[cfg(test)]
    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    fn attached(&self) -> std::sync::MutexGuard<'_, HashMap<String, Attached>> {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Threads {
    fn start() -> Result<Self, GatewayError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("gateway")
            .enable_all()
            .build();
        Ok(Self {
            runtime: Some(runtime.map_err(GatewayError::Threads)?),
            end: CancellationToken::new(),
        })
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(work);
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.end.cancel();
        // Not waited for: the last clone may be dropped where nobody may wait. Descriptors are closed with the tasks.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.sandbox.end.cancel();
    }
}

impl Inner {
    /// The operator's rules at this moment.
    pub(crate) fn ground(&self) -> Arc<Ground> {
        let ground = self.ground.read().unwrap_or_else(PoisonError::into_inner);
        ground.clone()
    }

    /// Connections of one owner's sandboxes together: half of all, so that nobody takes every one.
    pub(crate) fn max_owner_connections(&self) -> usize {
        self.max_connections.div_ceil(2)
    }

    /// The slots of an owner, who is nothing but a text here.
    fn owner_connections(&self, owner: &str) -> Arc<Semaphore> {
        let mut slots = self
            .owner_connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = slots.get(owner).and_then(Weak::upgrade) {
            return known;
        }
        slots.retain(|_, known| known.strong_count() > 0);
        let new = Arc::new(Semaphore::new(self.max_owner_connections()));
        slots.insert(owner.to_owned(), Arc::downgrade(&new));
        new
    }

    /// What goes on in the background.
    async fn look_after(&self) {
        let mut flush = tokio::time::interval(recorder::TOGETHER);
        let mut look = tokio::time::interval(LOOK);
        loop {
            tokio::select! {
                _ = flush.tick() => self.recorder.flush(),
                _ = look.tick() => {
                    let ground = Arc::new(ground(&self.settings));
                    *self.ground.write().unwrap_or_else(PoisonError::into_inner) = ground;
                }
            }
        }
    }
}

fn ground(settings: &GatewaySettings) -> Ground {
    Ground {
        reachable: settings.reachable.clone(),
        denied: settings.denied.clone(),
        own: own_addresses(),
    }
}

/// Descriptors left to everything else in this process: requests, agents, the store.
const RESERVED: u64 = 2048;

/// How many descriptors connections may take. Each takes two, and the usual limit of 1024 is raised as far as it goes.
fn descriptors() -> usize {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = rustix::process::setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "The limit of open files stays as it is");
    }
    let most = rustix::process::getrlimit(Resource::Nofile).current;
    let left = most.map_or(u64::MAX, |most| most.saturating_sub(RESERVED.min(most / 2)));
    usize::try_from(left).unwrap_or(usize::MAX)
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}
