//! A provider with a layer around it: every call goes through the layer.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use sandyard_core::network::Flow;
use tokio::sync::mpsc;

use crate::call::{Answer, Call, Verb};
use crate::forward::Forward;
use crate::provider::{Condition, Provider, ProviderInfo, Result};

/// A call on its way to the inner provider.
pub(super) struct Request<'a> {
    inner: &'a dyn Provider,
    call: &'a Call<'a>,
}

impl Request<'_> {
    /// Makes the call, once for each time this is called.
    pub(super) async fn send(&self) -> Result<Answer> {
        self.call.send_to(self.inner).await
    }

    pub(super) fn verb(&self) -> Verb {
        self.call.verb()
    }

    /// See [`Call::subject`].
    pub(super) fn subject(&self) -> &str {
        self.call.subject()
    }

    /// The provider's name.
    pub(super) fn provider(&self) -> &str {
        &self.inner.info().name
    }

    /// Asks the inner provider whether it can be reached.
    pub(super) async fn check_health(&self) -> Result<()> {
        self.inner.check_health().await
    }

    /// Has the inner provider list its instances: a provider that answers this does more than say that it is there.
    pub(super) async fn list(&self) -> Result<()> {
        self.inner.list().await.map(drop)
    }
}

/// Surrounds every call of a provider.
#[async_trait]
pub(super) trait Layer: Debug + Send + Sync + 'static {
    /// Sends the request, or not, or more than once.
    async fn handle(&self, request: &Request<'_>) -> Result<Answer>;

    /// Adds what this layer observed to the inner provider's condition.
    fn condition(&self, inner: Condition) -> Condition {
        inner
    }
}

/// A provider with a layer around it.
#[derive(Debug)]
pub(super) struct Layered<L> {
    inner: Arc<dyn Provider>,
    layer: L,
}

impl<L: Layer> Layered<L> {
    pub(super) fn around(inner: Arc<dyn Provider>, layer: L) -> Arc<dyn Provider> {
        Arc::new(Self { inner, layer })
    }
}

#[async_trait]
impl<L: Layer> Forward for Layered<L> {
    async fn forward(&self, call: &Call<'_>) -> Result<Answer> {
        let inner = &*self.inner;
        self.layer.handle(&Request { inner, call }).await
    }
}

#[async_trait]
impl<L: Layer> Provider for Layered<L> {
    /// The inner provider's, which may change once it is connected.
    fn info(&self) -> &ProviderInfo {
        self.inner.info()
    }

    fn condition(&self) -> Condition {
        self.layer.condition(self.inner.condition())
    }

    async fn check_health(&self) -> Result<()> {
        self.forward(&Call::CheckHealth).await?.try_into()
    }

    fn take_flows(&self) -> Option<mpsc::Receiver<Flow>> {
        self.inner.take_flows()
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
