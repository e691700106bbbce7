//! Every call connects first and is then the provider's own.

use async_trait::async_trait;
use sandyard_agent_client::AgentClient;
use sandyard_core::network::{Flow, NetworkGrant};
use tokio::sync::mpsc;

use super::Pending;
use crate::Result;
use crate::instance::{Change, Instance, InstanceSpec, Ready, Usage, UsagePoint, VolumeSpec};
use crate::provider::{
    AgentAddress, ArchiveReader, Condition, Provider, ProviderInfo, TemplateInfo,
};

#[async_trait]
impl Provider for Pending {
    fn info(&self) -> &ProviderInfo {
        self.0
            .connected
            .get()
            .map_or(&self.0.placeholder, |provider| provider.info())
    }

    fn condition(&self) -> Condition {
        if let Some(provider) = self.0.connected.get() {
            return provider.condition();
        }
        let state = self.0.state();
        Condition {
            is_reachable: false,
            since_ms: Some(state.since_ms),
            failures: state.failures,
            reason: state
                .last
                .as_ref()
                .map(|(_, failure)| failure.message.clone()),
            calls: 0,
        }
    }

    /// Handed out before it is known whether there are any: if not, it ends once the provider is connected.
    fn take_flows(&self) -> Option<mpsc::Receiver<Flow>> {
        self.0.state().flows_out.take()
    }

    async fn close(&self) {
        self.0.state().flows = None;
        if let Some(provider) = self.0.connected.get() {
            provider.close().await;
        }
    }

    /// What cannot be passed on yet is made up for once it is connected.
    async fn keep_ready(&self, wanted: &[Ready]) -> Result<()> {
        match self.provider().await {
            Ok(provider) => provider.keep_ready(wanted).await,
            Err(error) => {
                self.0.state().wanted = Some(wanted.to_vec());
                Err(error)
            }
        }
    }

    async fn check_health(&self) -> Result<()> {
        self.provider().await?.check_health().await
    }

    async fn create(&self, spec: &InstanceSpec) -> Result<Instance> {
        self.provider().await?.create(spec).await
    }

    async fn inspect(&self, id: &str) -> Result<Option<Instance>> {
        self.provider().await?.inspect(id).await
    }

    async fn list(&self) -> Result<Vec<Instance>> {
        self.provider().await?.list().await
    }

    async fn pause(&self, id: &str) -> Result<Instance> {
        self.provider().await?.pause(id).await
    }

    async fn resume(&self, id: &str) -> Result<Instance> {
        self.provider().await?.resume(id).await
    }

    async fn stop(&self, id: &str) -> Result<Instance> {
        self.provider().await?.stop(id).await
    }

    async fn start(&self, id: &str) -> Result<Instance> {
        self.provider().await?.start(id).await
    }

    async fn delete(&self, id: &str) -> Result<()> {
        self.provider().await?.delete(id).await
    }

    async fn snapshot(&self, id: &str, name: &str) -> Result<TemplateInfo> {
        self.provider().await?.snapshot(id, name).await
    }

    async fn fork(&self, id: &str, spec: &InstanceSpec) -> Result<Instance> {
        self.provider().await?.fork(id, spec).await
    }

    async fn diff(&self, id: &str) -> Result<Vec<Change>> {
        self.provider().await?.diff(id).await
    }

    async fn usage(&self, id: &str) -> Result<Usage> {
        self.provider().await?.usage(id).await
    }

    async fn templates(&self) -> Result<Vec<TemplateInfo>> {
        self.provider().await?.templates().await
    }

    async fn import_template(&self, name: &str, archive: ArchiveReader) -> Result<TemplateInfo> {
        self.provider().await?.import_template(name, archive).await
    }

    async fn remove_template(&self, name: &str) -> Result<()> {
        self.provider().await?.remove_template(name).await
    }

    async fn agent(&self, instance: &AgentAddress) -> Result<AgentClient> {
        self.provider().await?.agent(instance).await
    }

    async fn set_network(&self, id: &str, grant: &NetworkGrant) -> Result<Vec<String>> {
        self.provider().await?.set_network(id, grant).await
    }

    async fn usage_history(&self, id: &str, from_ms: i64, to_ms: i64) -> Result<Vec<UsagePoint>> {
        self.provider()
            .await?
            .usage_history(id, from_ms, to_ms)
            .await
    }

    async fn create_volume(&self, volume: &VolumeSpec) -> Result<()> {
        self.provider().await?.create_volume(volume).await
    }

    async fn delete_volume(&self, id: &str) -> Result<()> {
        self.provider().await?.delete_volume(id).await
    }

    async fn open_volume(&self, id: &str) -> Result<AgentClient> {
        self.provider().await?.open_volume(id).await
    }
}
