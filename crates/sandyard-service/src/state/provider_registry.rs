//! The providers that this server can use, its own and those of other nodes.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sandyard_core::Clock;
use sandyard_provider::{Provider, ProviderError};
use sandyard_store::Store;
use sandyard_store::model::Sandbox;

use crate::error::{Result, ServiceError};
use sandyard_core::clock::millis;

/// How long a node counts as alive after its last heartbeat.
pub(crate) const NODE_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection to another node's provider in progress.
pub type NodeConnectFuture =
    Pin<Box<dyn Future<Output = Result<Arc<dyn Provider>, ProviderError>> + Send>>;

/// Connects to the provider of a location at another node's URL.
pub type NodeConnectFn = dyn Fn(String, String) -> NodeConnectFuture + Send + Sync;

/// How to connect to the providers of other nodes.
#[derive(Clone)]
pub struct NodeConnector(pub Arc<NodeConnectFn>);

impl fmt::Debug for NodeConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeConnector")
    }
}

/// The location of a provider's sandboxes; none until it was reached for the first time.
pub(crate) fn location_of(provider: &Arc<dyn Provider>) -> Option<&str> {
    Some(provider.info().location.as_str()).filter(|location| !location.is_empty())
}

/// Providers by location.
#[derive(Debug)]
pub(crate) struct ProviderRegistry {
    store: Store,
    clock: Clock,
    local: Vec<Arc<dyn Provider>>,
    reach: Option<NodeConnector>,
    /// By URL and location, so that connections are reused.
    remote: Mutex<HashMap<(String, String), Arc<dyn Provider>>>,
}

impl ProviderRegistry {
    pub(crate) fn new(
        store: Store,
        clock: Clock,
        local: Vec<Arc<dyn Provider>>,
        reach: Option<NodeConnector>,
    ) -> Self {
        Self {
            store,
            clock,
            local,
            reach,
            remote: Mutex::default(),
        }
    }

    /// The default provider.
    pub(crate) fn default(&self) -> &Arc<dyn Provider> {
        &self.local[0]
    }

    /// The locations that this node reaches itself. A provider that could not be reached at the start gets its location later.
    pub(crate) fn local_locations(&self) -> Vec<String> {
        self.local
            .iter()
            .filter_map(|provider| location_of(provider))
            .map(str::to_owned)
            .collect()
    }

    /// This node's provider with a name.
    pub(crate) fn by_name(&self, name: &str) -> Option<&Arc<dyn Provider>> {
        self.local
            .iter()
            .find(|provider| provider.info().name == name)
    }

    /// The names of this node's providers, for error messages.
    pub(crate) fn names(&self) -> String {
        let names = self.local.iter();
        let names: Vec<_> = names
            .map(|provider| format!("`{}`", provider.info().name))
            .collect();
        names.join(", ")
    }

    /// The providers of this node.
    pub(crate) fn local(&self) -> &[Arc<dyn Provider>] {
        &self.local
    }

    /// This node's provider for a location.
    pub(crate) fn local_for(&self, location: &str) -> Option<&Arc<dyn Provider>> {
        self.local
            .iter()
            .find(|provider| provider.info().location == location)
    }

    /// The provider for a location: this node's own, or that of another node that is alive.
    pub(crate) async fn provider(&self, location: &str) -> Result<Arc<dyn Provider>> {
        if let Some(provider) = self.local_for(location) {
            return Ok(provider.clone());
        }
        let since_ms = self.clock.now_ms() - millis(NODE_TIMEOUT);
        let nodes = self.store.nodes(since_ms).await?;
        let url = nodes
            .into_iter()
            .filter(|node| node.locations.iter().any(|known| known == location))
            .find_map(|node| node.url);
        match (url, &self.reach) {
            (Some(url), Some(reach)) => self.connect(reach, url, location).await,
            _ => Err(
                ServiceError::unavailable("the node that runs this sandbox is unreachable")
                    .hint("the sandbox is not lost: it is available again when its node is"),
            ),
        }
    }

    /// The provider of a sandbox.
    pub(crate) async fn provider_of(&self, sandbox: &Sandbox) -> Result<Arc<dyn Provider>> {
        let is_foreign = self.by_name(&sandbox.provider).is_none();
        if is_foreign && self.is_unreachable_location(&sandbox.location).await? {
            let name = &sandbox.provider;
            let message = format!("provider `{name}` is not among this server's providers");
            return Err(ServiceError::unavailable(message).hint(format!(
                "add `{name}` to the setting `sandbox.providers` to use the sandbox again; until then it stays unchanged"
            )));
        }
        self.provider(&sandbox.location).await
    }

    /// Says whether no running server, this one included, has a provider for a location.
    pub(crate) async fn is_unreachable_location(&self, location: &str) -> Result<bool> {
        if self.local_for(location).is_some() {
            return Ok(false);
        }
        let since_ms = self.clock.now_ms() - millis(NODE_TIMEOUT);
        let nodes = self.store.nodes(since_ms).await?;
        let mut locations = nodes.iter().flat_map(|node| &node.locations);
        Ok(!locations.any(|known| known == location))
    }

    async fn connect(
        &self,
        reach: &NodeConnector,
        url: String,
        location: &str,
    ) -> Result<Arc<dyn Provider>> {
        let key = (url.clone(), location.to_owned());
        if let Some(provider) = self.remote.lock().get(&key) {
            return Ok(provider.clone());
        }
        let provider = (reach.0)(url, location.to_owned()).await?;
        self.remote.lock().insert(key, provider.clone());
        Ok(provider)
    }
}
