//! Providers that pass every call on: one method instead of one for each call.

use std::borrow::Cow;

use async_trait::async_trait;
use sandyard_agent_client::AgentClient;
use sandyard_core::network::NetworkGrant;

use crate::call::{Answer, ArchiveOnce, Call};
use crate::instances::{AgentAddress, Change, Instance, InstanceSpec, Instances};
use crate::provider::Result;
use crate::templates::{ArchiveReader, Ready, TemplateInfo, Templates};
use crate::usage::{Usage, UsagePoint, UsageReports};
use crate::volumes::{VolumeSpec, Volumes};

/// A provider that passes calls on to another one, in this process or on another node.
#[async_trait]
pub trait Forward: Send + Sync + 'static {
    /// Passes a call on and returns its answer.
    async fn forward(&self, call: &Call<'_>) -> Result<Answer>;
}

#[async_trait]
impl<T: Forward> Instances for T {
    async fn create(&self, spec: &InstanceSpec) -> Result<Instance> {
        let call = Call::Create(Cow::Borrowed(spec));
        self.forward(&call).await?.try_into()
    }

    async fn fork(&self, id: &str, spec: &InstanceSpec) -> Result<Instance> {
        let spec = Cow::Borrowed(spec);
        let call = Call::Fork {
            id: id.into(),
            spec,
        };
        self.forward(&call).await?.try_into()
    }

    async fn inspect(&self, id: &str) -> Result<Option<Instance>> {
        let call = Call::Inspect { id: id.into() };
        self.forward(&call).await?.try_into()
    }

    async fn list(&self) -> Result<Vec<Instance>> {
        self.forward(&Call::List).await?.try_into()
    }

    async fn pause(&self, id: &str) -> Result<Instance> {
        let call = Call::Pause { id: id.into() };
        self.forward(&call).await?.try_into()
    }

    async fn resume(&self, id: &str) -> Result<Instance> {
        let call = Call::Resume { id: id.into() };
        self.forward(&call).await?.try_into()
    }

    async fn stop(&self, id: &str) -> Result<Instance> {
        let call = Call::Stop { id: id.into() };
        self.forward(&call).await?.try_into()
    }

    async fn start(&self, id: &str) -> Result<Instance> {
        let call = Call::Start { id: id.into() };
        self.forward(&call).await?.try_into()
    }

    async fn delete(&self, id: &str) -> Result<()> {
        let call = Call::Delete { id: id.into() };
        self.forward(&call).await?.try_into()
    }

    async fn diff(&self, id: &str) -> Result<Vec<Change>> {
        let call = Call::Diff { id: id.into() };
        self.forward(&call).await?.try_into()
    }

    async fn agent(&self, instance: &AgentAddress) -> Result<AgentClient> {
        self.forward(&Call::Agent(instance)).await?.try_into()
    }

    async fn set_network(&self, id: &str, grant: &NetworkGrant) -> Result<Vec<String>> {
        let id = id.into();
        let call = Call::SetNetwork { id, grant };
        self.forward(&call).await?.try_into()
    }
}

#[async_trait]
impl<T: Forward> Templates for T {
    async fn templates(&self) -> Result<Vec<TemplateInfo>> {
        self.forward(&Call::Templates).await?.try_into()
    }

    async fn snapshot(&self, id: &str, name: &str) -> Result<TemplateInfo> {
        let (id, name) = (id.into(), name.into());
        self.forward(&Call::Snapshot { id, name }).await?.try_into()
    }

    async fn import_template(&self, name: &str, archive: ArchiveReader) -> Result<TemplateInfo> {
        let (name, archive) = (name.into(), ArchiveOnce::new(archive));
        let call = Call::ImportTemplate { name, archive };
        self.forward(&call).await?.try_into()
    }

    async fn remove_template(&self, name: &str) -> Result<()> {
        let call = Call::RemoveTemplate { name: name.into() };
        self.forward(&call).await?.try_into()
    }

    async fn keep_ready(&self, pool: &[Ready]) -> Result<()> {
        let pool = Cow::Borrowed(pool);
        self.forward(&Call::KeepReady { pool }).await?.try_into()
    }
}

#[async_trait]
impl<T: Forward> Volumes for T {
    async fn create_volume(&self, volume: &VolumeSpec) -> Result<()> {
        let call = Call::CreateVolume(Cow::Borrowed(volume));
        self.forward(&call).await?.try_into()
    }

    async fn delete_volume(&self, id: &str) -> Result<()> {
        let call = Call::DeleteVolume { id: id.into() };
        self.forward(&call).await?.try_into()
    }

    async fn open_volume(&self, id: &str) -> Result<AgentClient> {
        let call = Call::OpenVolume { id: id.into() };
        self.forward(&call).await?.try_into()
    }
}

#[async_trait]
impl<T: Forward> UsageReports for T {
    async fn usage(&self, id: &str) -> Result<Usage> {
        let call = Call::Usage { id: id.into() };
        self.forward(&call).await?.try_into()
    }

    async fn usage_history(&self, id: &str, from_ms: i64, to_ms: i64) -> Result<Vec<UsagePoint>> {
        let id = id.into();
        let call = Call::UsageHistory { id, from_ms, to_ms };
        self.forward(&call).await?.try_into()
    }
}
