//! The handle: who has a way out, and by which grant.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use rustix::process::{Resource, Rlimit};
use sandyard_agent_client::Endpoint;
use sandyard_core::network::{Flow, Ground, NetworkGrant};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::channel;
use crate::dial::Dialer;
use crate::http::Tls;
use crate::names::Names;
use crate::own::own_addresses;
use crate::recorder::{self, Recorder};
use crate::sandbox::Sandbox;
use crate::settings::{GatewayError, GatewaySettings};

/// How often the host's own addresses are looked at.
const LOOK: Duration = Duration::from_secs(10);

/// The way out of all sandboxes of this server. Cheap to clone; ends with its last clone.
#[derive(Clone)]
pub struct Gateway {
    inner: Arc<Inner>,
    /// Sandboxes by the key their owner gave them.
    attached: Arc<Mutex<HashMap<String, Attached>>>,
    _end: Arc<DropGuard>,
}

/// What flows share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) settings: GatewaySettings,
    pub(crate) names: Names,
    pub(crate) dialer: Dialer,
    pub(crate) tls: Tls,
    pub(crate) recorder: Recorder,
    pub(crate) connections: Arc<Semaphore>,
    ground: RwLock<Arc<Ground>>,
}

struct Attached {
    sandbox: Arc<Sandbox>,
    endpoint: Endpoint,
    lead: Arc<Notify>,
}

impl Gateway {
    /// Starts the gateway within the current runtime. Records of flows come out of the receiver.
    ///
    /// # Errors
    /// When the settings cannot be followed.
    pub fn start(settings: GatewaySettings) -> Result<(Self, mpsc::Receiver<Flow>), GatewayError> {
        raise_open_files();
        let (recorder, flows) = Recorder::new();
        let names = Names::new(&settings.nameservers)?;
        let environment = |name: &str| std::env::var(name).ok();
        let inner = Arc::new(Inner {
            dialer: Dialer::new(settings.proxy.as_deref(), environment, names.clone())?,
            names,
            tls: Tls::open(&settings.folder, settings.trusted_ca.as_deref())?,
            recorder,
            connections: Arc::new(Semaphore::new(settings.max_connections)),
            ground: RwLock::new(Arc::new(ground(&settings))),
            settings,
        });
        let end = CancellationToken::new();
        tokio::spawn({
            let (inner, end) = (inner.clone(), end.clone());
            async move { end.run_until_cancelled(inner.look_after()).await }
        });
        let gateway = Self {
            inner,
            attached: Arc::default(),
            _end: Arc::new(end.drop_guard()),
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
        if let Some(known) = attached.get(key) {
            if known.endpoint == endpoint {
                let is_leading = grant.is_leading;
                known.sandbox.set_grant(grant);
                if is_leading {
                    known.lead.notify_one();
                }
                return;
            }
            known.sandbox.end.cancel();
        }
        let sandbox = Arc::new(Sandbox::new(grant, self.inner.settings.limits));
        let lead = Arc::new(Notify::new());
        tokio::spawn(channel::keep(
            self.inner.clone(),
            sandbox.clone(),
            endpoint.clone(),
            lead.clone(),
        ));
        let known = Attached {
            sandbox,
            endpoint,
            lead,
        };
        attached.insert(key.to_owned(), known);
    }

    /// Takes a sandbox's way out away; its flows end.
    pub fn detach(&self, key: &str) {
        if let Some(known) = self.attached().remove(key) {
            known.sandbox.end.cancel();
        }
    }

    /// How many sandboxes have a way out, and how many connections are open.
    pub fn counts(&self) -> (usize, usize) {
        let open = self.inner.settings.max_connections - self.inner.connections.available_permits();
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

/// Each connection takes two descriptors, and the usual limit is 1024.
fn raise_open_files() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = rustix::process::setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "The limit of open files stays as it is");
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}
