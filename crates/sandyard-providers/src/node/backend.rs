//! The calls, each a request to the other server.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use http::header::CONTENT_TYPE;
use sandyard_agent_client::{AgentClient, Endpoint};
use sandyard_core::network::NetworkGrant;
use sandyard_provider::{
    AgentAddress, ArchiveReader, Change, Instance, InstanceSpec, Provider, ProviderInfo, Ready,
    Result, TemplateInfo, Usage, UsagePoint, Verb, VolumeSpec,
};
use tokio_util::io::ReaderStream;

use super::convert::{
    ById, ByName, ForkRequest, KeepReadyRequest, Nothing, SetNetworkRequest, SnapshotRequest,
    UsageHistoryRequest,
};
use super::tunnel::Tunnel;
use super::{NodeProvider, PROVIDER_PATH, read};
use crate::tokens;

#[async_trait]
impl Provider for NodeProvider {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    async fn check_health(&self) -> Result<()> {
        self.call(Verb::CheckHealth, &Nothing {}).await
    }

    async fn create(&self, spec: &InstanceSpec) -> Result<Instance> {
        self.call(Verb::Create, spec).await
    }

    async fn inspect(&self, id: &str) -> Result<Option<Instance>> {
        self.call(Verb::Inspect, &by(id)).await
    }

    async fn list(&self) -> Result<Vec<Instance>> {
        self.call(Verb::List, &Nothing {}).await
    }

    async fn pause(&self, id: &str) -> Result<Instance> {
        self.call(Verb::Pause, &by(id)).await
    }

    async fn resume(&self, id: &str) -> Result<Instance> {
        self.call(Verb::Resume, &by(id)).await
    }

    async fn stop(&self, id: &str) -> Result<Instance> {
        self.call(Verb::Stop, &by(id)).await
    }

    async fn start(&self, id: &str) -> Result<Instance> {
        self.call(Verb::Start, &by(id)).await
    }

    async fn delete(&self, id: &str) -> Result<()> {
        self.call(Verb::Delete, &by(id)).await
    }

    async fn snapshot(&self, id: &str, name: &str) -> Result<TemplateInfo> {
        let request = SnapshotRequest {
            id: id.into(),
            name: name.into(),
        };
        self.call(Verb::Snapshot, &request).await
    }

    async fn fork(&self, id: &str, spec: &InstanceSpec) -> Result<Instance> {
        let request = ForkRequest {
            id: id.into(),
            spec: Cow::Borrowed(spec),
        };
        self.call(Verb::Fork, &request).await
    }

    async fn diff(&self, id: &str) -> Result<Vec<Change>> {
        self.call(Verb::Diff, &by(id)).await
    }

    async fn usage(&self, id: &str) -> Result<Usage> {
        self.call(Verb::Usage, &by(id)).await
    }

    async fn usage_history(&self, id: &str, from_ms: i64, to_ms: i64) -> Result<Vec<UsagePoint>> {
        let request = UsageHistoryRequest {
            id: id.into(),
            from_ms,
            to_ms,
        };
        self.call(Verb::UsageHistory, &request).await
    }

    async fn templates(&self) -> Result<Vec<TemplateInfo>> {
        self.call(Verb::Templates, &Nothing {}).await
    }

    async fn import_template(&self, name: &str, archive: ArchiveReader) -> Result<TemplateInfo> {
        let verb = Verb::ImportTemplate;
        let path = [PROVIDER_PATH, verb.as_str()];
        let asked = self.node.post(&path, self.node.times.of(verb))?;
        let body = reqwest::Body::wrap_stream(ReaderStream::new(archive));
        let asked = asked
            .query(&[("name", name)])
            .header(CONTENT_TYPE, "application/octet-stream")
            .body(body);
        let answer = self.node.ask(verb.as_str(), asked).await?;
        read(verb.as_str(), &answer)
    }

    async fn remove_template(&self, name: &str) -> Result<()> {
        let request = ByName { name: name.into() };
        self.call(Verb::RemoveTemplate, &request).await
    }

    async fn agent(&self, instance: &AgentAddress) -> Result<AgentClient> {
        let tunnel = Tunnel::new(self.node.clone(), &instance.id);
        tokens::patient(Endpoint::Custom(Arc::new(tunnel)), &instance.access_token)
    }

    /// Secrets do not travel between servers: the other one finds the grant in the store that both share.
    async fn set_network(&self, id: &str, grant: &NetworkGrant) -> Result<Vec<String>> {
        let request = SetNetworkRequest {
            id: id.into(),
            sandbox_id: grant.sandbox_id.clone(),
        };
        self.call(Verb::SetNetwork, &request).await
    }

    async fn create_volume(&self, volume: &VolumeSpec) -> Result<()> {
        self.call(Verb::CreateVolume, volume).await
    }

    async fn delete_volume(&self, id: &str) -> Result<()> {
        self.call(Verb::DeleteVolume, &by(id)).await
    }

    /// Asked first, for an answer that says what is wrong; then each connection opens it again.
    async fn open_volume(&self, id: &str) -> Result<AgentClient> {
        let () = self.call(Verb::OpenVolume, &by(id)).await?;
        let tunnel = Tunnel::to_volume(self.node.clone(), id);
        Ok(AgentClient::patient(Endpoint::Custom(Arc::new(tunnel))).as_user("root"))
    }

    async fn keep_ready(&self, wanted: &[Ready]) -> Result<()> {
        let request = KeepReadyRequest {
            wanted: wanted.to_vec(),
        };
        self.call(Verb::KeepReady, &request).await
    }
}

fn by(id: &str) -> ById<'_> {
    ById { id: id.into() }
}
