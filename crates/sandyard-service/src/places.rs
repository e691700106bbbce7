//! Which provider reaches which sandbox, on this node or another.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sandyard_core::{Clock, ErrorKind};
use sandyard_provider::{Provider, ProviderError};
use sandyard_store::Store;
use sandyard_store::model::Sandbox;

use crate::claim::millis;
use crate::error::{ServiceError, ServiceResult};

/// For how long a node counts as there after it last said so.
pub(crate) const NODE_LIVES: Duration = Duration::from_secs(10);

/// A provider on its way: the other node is asked what it is.
pub type Reaching = Pin<Box<dyn Future<Output = Result<Arc<dyn Provider>, ProviderError>> + Send>>;

/// Makes a provider out of another node's URL and a place it reaches.
pub type ReachFn = dyn Fn(String, String) -> Reaching + Send + Sync;

/// How to reach the providers of other nodes.
#[derive(Clone)]
pub struct Reach(pub Arc<ReachFn>);

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reach")
    }
}

/// Where a provider's sandboxes are; none: it was never reached so far and does not know.
pub(crate) fn location_of(provider: &Arc<dyn Provider>) -> Option<&str> {
    Some(provider.info().location.as_str()).filter(|location| !location.is_empty())
}

/// Providers by place.
#[derive(Debug)]
pub(crate) struct Places {
    store: Store,
    clock: Clock,
    local: Vec<Arc<dyn Provider>>,
    reach: Option<Reach>,
    /// By URL and place, so that connections are used again.
    others: Mutex<HashMap<(String, String), Arc<dyn Provider>>>,
}

impl Places {
    pub(crate) fn new(
        store: Store,
        clock: Clock,
        local: Vec<Arc<dyn Provider>>,
        reach: Option<Reach>,
    ) -> Self {
        Self {
            store,
            clock,
            local,
            reach,
            others: Mutex::default(),
        }
    }

    /// The provider new sandboxes go to.
    pub(crate) fn default(&self) -> &Arc<dyn Provider> {
        &self.local[0]
    }

    /// Names of the places this node reaches itself. Asked for anew each time: a provider that could not be reached at the
    /// beginning learns its place later.
    pub(crate) fn local_locations(&self) -> Vec<String> {
        self.local
            .iter()
            .filter_map(|provider| location_of(provider))
            .map(str::to_owned)
            .collect()
    }

    /// This node's provider of a name.
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<dyn Provider>> {
        self.local
            .iter()
            .find(|provider| provider.info().name == name)
    }

    /// The names of this node's providers, for people.
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

    /// This node's provider for a place.
    pub(crate) fn local_for(&self, location: &str) -> Option<&Arc<dyn Provider>> {
        self.local
            .iter()
            .find(|provider| provider.info().location == location)
    }

    /// The provider for a place: this node's own, or another node's that is there.
    pub(crate) async fn provider(&self, location: &str) -> ServiceResult<Arc<dyn Provider>> {
        if let Some(provider) = self.local_for(location) {
            return Ok(provider.clone());
        }
        let since_ms = self.clock.now_ms() - millis(NODE_LIVES);
        let nodes = self.store.nodes(since_ms).await?;
        let url = nodes
            .into_iter()
            .filter(|node| node.locations.iter().any(|place| place == location))
            .find_map(|node| node.url);
        match (url, &self.reach) {
            (Some(url), Some(reach)) => self.reached(reach, url, location).await,
            _ => Err(ServiceError::new(
                ErrorKind::Unavailable,
                "the node this sandbox runs on cannot be reached",
            )
            .hint("the sandbox is not lost: it is there again when its node is")),
        }
    }

    /// The provider of a sandbox, or why there is none, in words that help.
    pub(crate) async fn provider_of(&self, sandbox: &Sandbox) -> ServiceResult<Arc<dyn Provider>> {
        let is_foreign = self.named(&sandbox.provider).is_none();
        if is_foreign && self.is_reached_by_nobody(&sandbox.location).await? {
            let name = &sandbox.provider;
            let message = format!("provider `{name}` is not among this server's providers");
            return Err(ServiceError::new(ErrorKind::Unavailable, message).hint(format!(
                "add `{name}` to `sandbox.providers` to reach the sandbox again; until then it stays as it is"
            )));
        }
        self.provider(&sandbox.location).await
    }

    /// Whether no server that is there, this one among them, has a provider for a place.
    pub(crate) async fn is_reached_by_nobody(&self, location: &str) -> ServiceResult<bool> {
        if self.local_for(location).is_some() {
            return Ok(false);
        }
        let since_ms = self.clock.now_ms() - millis(NODE_LIVES);
        let nodes = self.store.nodes(since_ms).await?;
        let mut places = nodes.iter().flat_map(|node| &node.locations);
        Ok(!places.any(|place| place == location))
    }

    async fn reached(
        &self,
        reach: &Reach,
        url: String,
        location: &str,
    ) -> ServiceResult<Arc<dyn Provider>> {
        let key = (url.clone(), location.to_owned());
        if let Some(provider) = self.others().get(&key) {
            return Ok(provider.clone());
        }
        let provider = (reach.0)(url, location.to_owned()).await?;
        self.others().insert(key, provider.clone());
        Ok(provider)
    }

    fn others(&self) -> MutexGuard<'_, HashMap<(String, String), Arc<dyn Provider>>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
