//! One provider around another: every call goes through a layer, everything else is the inner one's.

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use sandyard_agent_client::AgentClient;
use sandyard_core::network::{Flow, NetworkGrant};
use tokio::sync::mpsc;

use crate::instance::{Change, Instance, InstanceSpec, Ready, Usage, UsagePoint, VolumeSpec};
use crate::provider::{
    AgentAddress, ArchiveReader, Condition, Provider, ProviderInfo, TemplateInfo,
};
use crate::{ProviderError, ProviderErrorKind, Result, Verb};

/// An answer on its way.
pub(super) type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// Asks the inner provider, once for each time it is called.
pub(super) type Work<'a, T> = dyn Fn() -> Answer<'a, T> + Send + Sync + 'a;

/// What a layer knows of a call.
pub(super) struct Call<'a> {
    /// The provider's name.
    pub(super) provider: &'a str,
    /// Which call it is.
    pub(super) verb: Verb,
    /// The instance, template or sandbox it is about; empty when it is about none.
    pub(super) subject: &'a str,
    /// Asks whether the inner provider can be reached.
    pub(super) health: &'a Work<'a, ()>,
    /// Has the inner provider look at what it has: who answers that does more than say that it is there.
    pub(super) look: &'a Work<'a, ()>,
}

/// What lies around every call of a provider.
pub(super) trait Layer: Debug + Send + Sync + 'static {
    /// Does the work, or not, or more than once.
    fn around<T: Send>(
        &self,
        call: &Call<'_>,
        work: &Work<'_, T>,
    ) -> impl Future<Output = Result<T>> + Send;

    /// Adds what it knows to how the provider is.
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

    async fn call<'a, T: Send>(
        &'a self,
        verb: Verb,
        subject: &'a str,
        work: impl Fn() -> Answer<'a, T> + Send + Sync + 'a,
    ) -> Result<T> {
        let call = Call {
            provider: &self.inner.info().name,
            verb,
            subject,
            health: &|| self.inner.check_health(),
            look: &|| Box::pin(async { self.inner.list().await.map(drop) }),
        };
        self.layer.around(&call, &work).await
    }
}

#[async_trait]
impl<L: Layer> Provider for Layered<L> {
    /// The inner one's own, which may change once it is connected.
    fn info(&self) -> &ProviderInfo {
        self.inner.info()
    }

    fn condition(&self) -> Condition {
        self.layer.condition(self.inner.condition())
    }

    fn take_flows(&self) -> Option<mpsc::Receiver<Flow>> {
        self.inner.take_flows()
    }

    async fn close(&self) {
        self.inner.close().await;
    }

    async fn check_health(&self) -> Result<()> {
        self.call(Verb::CheckHealth, "", || self.inner.check_health())
            .await
    }

    async fn create(&self, spec: &InstanceSpec) -> Result<Instance> {
        self.call(Verb::Create, spec.sandbox_id.as_str(), || {
            self.inner.create(spec)
        })
        .await
    }

    async fn inspect(&self, id: &str) -> Result<Option<Instance>> {
        self.call(Verb::Inspect, id, || self.inner.inspect(id))
            .await
    }

    async fn list(&self) -> Result<Vec<Instance>> {
        self.call(Verb::List, "", || self.inner.list()).await
    }

    async fn pause(&self, id: &str) -> Result<Instance> {
        self.call(Verb::Pause, id, || self.inner.pause(id)).await
    }

    async fn resume(&self, id: &str) -> Result<Instance> {
        self.call(Verb::Resume, id, || self.inner.resume(id)).await
    }

    async fn stop(&self, id: &str) -> Result<Instance> {
        self.call(Verb::Stop, id, || self.inner.stop(id)).await
    }

    async fn start(&self, id: &str) -> Result<Instance> {
        self.call(Verb::Start, id, || self.inner.start(id)).await
    }

    async fn delete(&self, id: &str) -> Result<()> {
        self.call(Verb::Delete, id, || self.inner.delete(id)).await
    }

    async fn snapshot(&self, id: &str, name: &str) -> Result<TemplateInfo> {
        self.call(Verb::Snapshot, id, || self.inner.snapshot(id, name))
            .await
    }

    async fn fork(&self, id: &str, spec: &InstanceSpec) -> Result<Instance> {
        self.call(Verb::Fork, id, || self.inner.fork(id, spec))
            .await
    }

    async fn diff(&self, id: &str) -> Result<Vec<Change>> {
        self.call(Verb::Diff, id, || self.inner.diff(id)).await
    }

    async fn usage(&self, id: &str) -> Result<Usage> {
        self.call(Verb::Usage, id, || self.inner.usage(id)).await
    }

    async fn templates(&self) -> Result<Vec<TemplateInfo>> {
        self.call(Verb::Templates, "", || self.inner.templates())
            .await
    }

    async fn import_template(&self, name: &str, archive: ArchiveReader) -> Result<TemplateInfo> {
        let once = Mutex::new(Some(archive));
        self.call(Verb::ImportTemplate, name, || {
            let archive = once.lock().unwrap_or_else(PoisonError::into_inner).take();
            match archive {
                Some(archive) => self.inner.import_template(name, archive),
                None => Box::pin(async { Err(read_before()) }),
            }
        })
        .await
    }

    async fn remove_template(&self, name: &str) -> Result<()> {
        self.call(Verb::RemoveTemplate, name, || {
            self.inner.remove_template(name)
        })
        .await
    }

    async fn agent(&self, instance: &AgentAddress) -> Result<AgentClient> {
        self.call(Verb::Agent, &instance.id, || self.inner.agent(instance))
            .await
    }

    async fn set_network(&self, id: &str, grant: &NetworkGrant) -> Result<Vec<String>> {
        self.call(Verb::SetNetwork, id, || self.inner.set_network(id, grant))
            .await
    }

    async fn keep_ready(&self, wanted: &[Ready]) -> Result<()> {
        self.call(Verb::KeepReady, "", || self.inner.keep_ready(wanted))
            .await
    }

    async fn usage_history(&self, id: &str, from_ms: i64, to_ms: i64) -> Result<Vec<UsagePoint>> {
        self.call(Verb::UsageHistory, id, || {
            self.inner.usage_history(id, from_ms, to_ms)
        })
        .await
    }

    async fn create_volume(&self, volume: &VolumeSpec) -> Result<()> {
        self.call(Verb::CreateVolume, &volume.id, || {
            self.inner.create_volume(volume)
        })
        .await
    }

    async fn delete_volume(&self, id: &str) -> Result<()> {
        self.call(Verb::DeleteVolume, id, || self.inner.delete_volume(id))
            .await
    }

    async fn open_volume(&self, id: &str) -> Result<AgentClient> {
        self.call(Verb::OpenVolume, id, || self.inner.open_volume(id))
            .await
    }
}

/// An archive comes in once, so its import cannot be repeated.
fn read_before() -> ProviderError {
    let message = "the archive was read before; send it again";
    ProviderError::new(ProviderErrorKind::Failed, message)
}
