//! The handle: attached sandboxes and their grants.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use rustix::process::{Resource, Rlimit};
use sandyard_agent_client::Endpoint;
use sandyard_core::network::{Flow, NetworkGrant, OperatorRules};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::channel::{self, ChannelSignals};
use crate::dial::Dialer;
use crate::host_addresses::host_addresses;
use crate::http::Tls;
use crate::names::Names;
use crate::recorder::{self, Recorder};
use crate::sandbox::Sandbox;
use crate::settings::{GatewayError, GatewaySettings};

/// How long connections may take to end at shutdown.
const END_WITHIN: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 2 });

/// How often the host's addresses are read.
const ADDRESS_INTERVAL: Duration = Duration::from_secs(10);

/// The egress of all sandboxes of this server. Cheap to clone; ends with its last clone.
#[derive(Clone)]
pub struct Gateway {
    inner: Arc<Inner>,
    /// Sandboxes by the caller's key.
    attached: Arc<Mutex<HashMap<String, Attached>>>,
    threads: Arc<Threads>,
}

/// The gateway's own threads: a sandbox can delay a call on a socket that it shares, which must not delay the server's requests.
struct Threads {
    runtime: Option<Runtime>,
    end: CancellationToken,
}

/// The state that flows share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) settings: GatewaySettings,
    pub(crate) names: Names,
    pub(crate) dialer: Dialer,
    pub(crate) tls: Tls,
    pub(crate) recorder: Recorder,
    /// Open connections.
    pub(crate) flows: TaskTracker,
    pub(crate) connections: Arc<Semaphore>,
    pub(crate) max_connections: usize,
    /// Connection slots of each owner's sandboxes together, while there are any.
    owner_connections: Mutex<HashMap<String, Weak<Semaphore>>>,
    operator_rules: RwLock<Arc<OperatorRules>>,
}

struct Attached {
    sandbox: Arc<Sandbox>,
    endpoint: Endpoint,
    signals: Arc<ChannelSignals>,
    since: Instant,
}

impl Gateway {
    /// Starts the gateway on its own threads. The receiver gets the flow records.
    ///
    /// # Errors
    /// When the settings cannot be applied.
    pub fn start(settings: GatewaySettings) -> Result<(Self, mpsc::Receiver<Flow>), GatewayError> {
        let max_connections = settings.max_connections.min(descriptors() / 2);
        let (recorder, flows) = Recorder::new();
        let names = Names::new(&settings.nameservers)?;
        let environment = |name: &str| std::env::var(name).ok();
        let inner = Arc::new(Inner {
            dialer: Dialer::new(settings.proxy.as_deref(), environment, names.clone())?,
            names,
            tls: Tls::open(&settings)?,
            recorder,
            flows: TaskTracker::new(),
            connections: Arc::new(Semaphore::new(max_connections)),
            max_connections,
            owner_connections: Mutex::default(),
            operator_rules: RwLock::new(Arc::new(operator_rules(&settings))),
            settings,
        });
        let threads = Threads::start()?;
        threads.spawn({
            let (inner, end) = (inner.clone(), threads.end.clone());
            async move {
                end.run_until_cancelled(inner.run_periodic_tasks()).await;
            }
        });
        let gateway = Self {
            inner,
            attached: Arc::default(),
            threads: Arc::new(threads),
        };
        Ok((gateway, flows))
    }

    /// The certificates that sandboxes must trust, in PEM: that of the authority, with which the gateway changes requests, and those of the
    /// operator.
    pub fn sandbox_pem(&self) -> &str {
        self.inner.tls.sandbox_pem()
    }

    /// Attaches a sandbox, or changes its grant: flows that are no longer allowed end.
    ///
    /// `key` is the caller's key of the sandbox, `endpoint` its agent. Returns immediately; the gateway connects to the agent in
    /// the background, and reconnects until [`Gateway::detach`].
    pub fn attach(&self, key: &str, endpoint: Endpoint, grant: NetworkGrant) {
        let mut attached = self.attached.lock();
        if let Some(current) = attached.get(key)
            && current.endpoint == endpoint
        {
            let is_leading = grant.is_leading;
            current.sandbox.set_grant(grant);
            if is_leading {
                current.signals.lead.notify_one();
            }
            current.signals.wake.notify_one();
            return;
        }
        let owner_connections = self.inner.owner_connections(&grant.owner);
        let limits = self.inner.settings.limits;
        let sandbox = Arc::new(Sandbox::new(grant, limits, owner_connections));
        let signals = Arc::new(ChannelSignals::default());
        self.threads.spawn(channel::maintain(
            self.inner.clone(),
            sandbox.clone(),
            endpoint.clone(),
            signals.clone(),
        ));
        let new = Attached {
            sandbox,
            endpoint,
            signals,
            since: Instant::now(),
        };
        attached.insert(key.to_owned(), new);
    }

    /// Detaches a sandbox; its flows end.
    pub fn detach(&self, key: &str) {
        self.attached.lock().remove(key);
    }

    /// Detaches all sandboxes that were attached before `since` and are not among `keys`: others may have removed them.
    pub fn retain<'a>(&self, since: Instant, keys: impl IntoIterator<Item = &'a str>) {
        let keys: HashSet<&str> = keys.into_iter().collect();
        self.attached
            .lock()
            .retain(|key, known| known.since >= since || keys.contains(key.as_str()));
    }

    /// Ends all flows and waits a moment for their records.
    pub async fn shut_down(&self) {
        self.attached.lock().clear();
        self.inner.flows.close();
        if tokio::time::timeout(END_WITHIN, self.inner.flows.wait())
            .await
            .is_err()
        {
            tracing::warn!("Some connections of sandboxes did not end in time");
        }
        self.inner.recorder.flush();
    }

    /// The number of attached sandboxes, and of open connections.
    pub fn counts(&self) -> (usize, usize) {
        let open = self.inner.max_connections - self.inner.connections.available_permits();
        (self.attached.lock().len(), open)
    }

    #[cfg(test)]
    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
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
        // In the background: the last clone may be dropped where blocking is not allowed. Descriptors are closed with the tasks.
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
    pub(crate) fn operator_rules(&self) -> Arc<OperatorRules> {
        let operator_rules = self.operator_rules.read();
        operator_rules.clone()
    }

    /// Maximum number of connections of one owner's sandboxes: half of all, so that one owner cannot take them all.
    pub(crate) fn max_owner_connections(&self) -> usize {
        self.max_connections.div_ceil(2)
    }

    /// The connection slots of an owner.
    fn owner_connections(&self, owner: &str) -> Arc<Semaphore> {
        let mut slots = self.owner_connections.lock();
        if let Some(existing) = slots.get(owner).and_then(Weak::upgrade) {
            return existing;
        }
        slots.retain(|_, known| known.strong_count() > 0);
        let new = Arc::new(Semaphore::new(self.max_owner_connections()));
        slots.insert(owner.to_owned(), Arc::downgrade(&new));
        new
    }

    /// Runs the periodic tasks.
    async fn run_periodic_tasks(&self) {
        let mut flush = tokio::time::interval(recorder::FLUSH_INTERVAL);
        let mut addresses = tokio::time::interval(ADDRESS_INTERVAL);
        loop {
            tokio::select! {
                _ = flush.tick() => self.recorder.flush(),
                _ = addresses.tick() => {
                    let operator_rules = Arc::new(operator_rules(&self.settings));
                    *self.operator_rules.write() = operator_rules;
                }
            }
        }
    }
}

fn operator_rules(settings: &GatewaySettings) -> OperatorRules {
    OperatorRules {
        reachable: settings.reachable.clone(),
        denied: settings.denied.clone(),
        host_addresses: host_addresses(),
    }
}

/// Descriptors reserved for the rest of this process: requests, agents, the store.
const RESERVED: u64 = 2048;

/// How many descriptors connections may take; each takes two. Raises the process's limit as far as allowed.
fn descriptors() -> usize {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = rustix::process::setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "Cannot raise the limit of open files");
    }
    let limit = rustix::process::getrlimit(Resource::Nofile).current;
    let available = limit.map_or(u64::MAX, |limit| {
        limit.saturating_sub(RESERVED.min(limit / 2))
    });
    usize::try_from(available).unwrap_or(usize::MAX)
}

sandyard_core::debug_fields!(Gateway);
