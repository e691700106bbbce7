//! The provider's calls. Each passes the script of the test before and after its work.

use std::sync::Arc;

use async_trait::async_trait;
use sandyard_agent_client::AgentClient;
use sandyard_core::network::{Flow, NetworkGrant};
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;

use super::FakeProvider;
use super::agent::{Machine, client};
use super::script::Moment;
use super::world::World;
use sandyard_provider::{
    AgentAddress, ArchiveReader, Capabilities, Change, Instance, InstanceSpec, Instances, Provider,
    ProviderError, ProviderErrorKind, ProviderInfo, Ready, Result, TemplateInfo, Templates, Usage,
    UsagePoint, UsageReports, Verb, VolumeSpec, Volumes,
};

impl FakeProvider {
    async fn call<T>(
        &self,
        verb: Verb,
        subject: &str,
        work: impl FnOnce(&mut World) -> Result<T>,
    ) -> Result<T> {
        let plan = self.shared.script.lock().enter(verb, subject);
        plan.apply(Moment::Before).await?;
        self.require(verb)?;
        let done = work(&mut self.shared.world.lock())?;
        plan.apply(Moment::After).await?;
        Ok(done)
    }

    fn has_agents(&self) -> bool {
        self.agent.is_some() || self.shared.world.lock().agents.is_some()
    }

    /// The agent shared by all instances, or that of this machine.
    fn agent_of(&self, machine: Option<Arc<Machine>>, name: &str) -> Result<AgentClient> {
        let agents = machine.map(|machine| client(machine, name));
        self.agent.clone().or(agents).ok_or_else(|| {
            ProviderError::new(
                ProviderErrorKind::Unsupported,
                "the fake provider has no agents",
            )
        })
    }

    fn require(&self, verb: Verb) -> Result<()> {
        let can: Capabilities = self.info.capabilities;
        let is_able = match verb {
            Verb::Pause | Verb::Resume => can.can_pause,
            Verb::Stop | Verb::Start => can.can_stop,
            Verb::Snapshot => can.can_snapshot,
            Verb::Fork => can.can_fork,
            Verb::Diff => can.can_diff,
            Verb::Templates | Verb::RemoveTemplate => can.can_manage_templates,
            Verb::ImportTemplate => can.can_import_templates,
            Verb::UsageHistory => can.can_recall_usage,
            Verb::CreateVolume | Verb::DeleteVolume => can.can_mount,
            Verb::OpenVolume => can.can_mount && self.has_agents(),
            Verb::Agent => self.has_agents(),
            _ => true,
        };
        if is_able {
            return Ok(());
        }
        Err(ProviderError::new(
            ProviderErrorKind::Unsupported,
            format!("the fake provider does not support `{verb}`"),
        ))
    }
}

#[async_trait]
impl Provider for FakeProvider {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    async fn check_health(&self) -> Result<()> {
        self.call(Verb::CheckHealth, "", |_| Ok(())).await
    }

    fn take_flows(&self) -> Option<mpsc::Receiver<Flow>> {
        self.shared.flows_out.lock().take()
    }
}

#[async_trait]
impl Instances for FakeProvider {
    async fn create(&self, spec: &InstanceSpec) -> Result<Instance> {
        let max_limits = &self.info.max_limits;
        let make = |world: &mut World| world.create(spec, max_limits);
        self.call(Verb::Create, spec.sandbox_id.as_str(), make)
            .await
    }

    async fn fork(&self, id: &str, spec: &InstanceSpec) -> Result<Instance> {
        self.call(Verb::Fork, id, |world| world.fork(id, spec))
            .await
    }

    async fn inspect(&self, id: &str) -> Result<Option<Instance>> {
        let inspect = |world: &mut World| Ok(world.instance(id).ok());
        self.call(Verb::Inspect, id, inspect).await
    }

    async fn list(&self) -> Result<Vec<Instance>> {
        let list = |world: &mut World| {
            let listed = world.instances.values().filter(|instance| instance.is_ours);
            Ok(listed.map(|instance| instance.to_instance()).collect())
        };
        self.call(Verb::List, "", list).await
    }

    async fn pause(&self, id: &str) -> Result<Instance> {
        self.call(Verb::Pause, id, |world| world.pause(id)).await
    }

    async fn resume(&self, id: &str) -> Result<Instance> {
        self.call(Verb::Resume, id, |world| world.resume(id)).await
    }

    async fn stop(&self, id: &str) -> Result<Instance> {
        self.call(Verb::Stop, id, |world| world.stop(id)).await
    }

    async fn start(&self, id: &str) -> Result<Instance> {
        self.call(Verb::Start, id, |world| world.start(id)).await
    }

    async fn delete(&self, id: &str) -> Result<()> {
        let remove = |world: &mut World| {
            if world.find(id).is_ok() {
                world.remove(id);
            }
            Ok(())
        };
        self.call(Verb::Delete, id, remove).await
    }

    async fn diff(&self, id: &str) -> Result<Vec<Change>> {
        let read = |world: &mut World| {
            let machine = &world.find(id)?.machine;
            // An instance without a machine has no files.
            Ok(machine
                .as_ref()
                .map_or_else(Vec::new, |machine| machine.difference()))
        };
        self.call(Verb::Diff, id, read).await
    }

    async fn agent(&self, instance: &AgentAddress) -> Result<AgentClient> {
        let id = instance.id.as_str();
        let read = |world: &mut World| Ok(world.find(id)?.machine.clone());
        let machine = self.call(Verb::Agent, id, read).await?;
        self.agent_of(machine, id)
    }

    async fn set_network(&self, id: &str, grant: &NetworkGrant) -> Result<Vec<String>> {
        let set = |world: &mut World| {
            world.find(id)?;
            world.grants.insert(id.to_owned(), grant.clone());
            Ok(world.unenforced.clone())
        };
        self.call(Verb::SetNetwork, id, set).await
    }
}

#[async_trait]
impl Templates for FakeProvider {
    async fn templates(&self) -> Result<Vec<TemplateInfo>> {
        let read = |world: &mut World| Ok(world.templates.values().cloned().collect());
        self.call(Verb::Templates, "", read).await
    }

    async fn snapshot(&self, id: &str, name: &str) -> Result<TemplateInfo> {
        let save = |world: &mut World| world.snapshot(id, name);
        self.call(Verb::Snapshot, id, save).await
    }

    async fn import_template(
        &self,
        name: &str,
        mut archive: ArchiveReader,
    ) -> Result<TemplateInfo> {
        let mut bytes = Vec::new();
        archive.read_to_end(&mut bytes).await.map_err(|error| {
            ProviderError::new(ProviderErrorKind::Failed, "failed to read the archive")
                .source(error)
        })?;
        let save = |world: &mut World| {
            if bytes.is_empty() {
                return Err(ProviderError::new(
                    ProviderErrorKind::Invalid,
                    "the archive is empty",
                ));
            }
            world.add_template(name, Some(bytes.len() as u64))
        };
        self.call(Verb::ImportTemplate, name, save).await
    }

    async fn remove_template(&self, name: &str) -> Result<()> {
        let remove = |world: &mut World| world.remove_template(name);
        self.call(Verb::RemoveTemplate, name, remove).await
    }

    async fn keep_ready(&self, pool: &[Ready]) -> Result<()> {
        let save = |world: &mut World| {
            world.ready = pool.iter().map(|ready| ready.count).sum();
            Ok(())
        };
        self.call(Verb::KeepReady, "", save).await
    }
}

#[async_trait]
impl Volumes for FakeProvider {
    async fn create_volume(&self, volume: &VolumeSpec) -> Result<()> {
        let make = |world: &mut World| world.add_volume(volume);
        self.call(Verb::CreateVolume, &volume.id, make).await
    }

    async fn delete_volume(&self, id: &str) -> Result<()> {
        let remove = |world: &mut World| world.remove_volume(id);
        self.call(Verb::DeleteVolume, id, remove).await
    }

    /// An agent shared by all instances does not see the volume.
    async fn open_volume(&self, id: &str) -> Result<AgentClient> {
        let read = |world: &mut World| {
            world.volume(id)?;
            let agents = world.agents.as_ref();
            Ok(agents.and_then(|agents| agents.open_volume(id, &world.clock)))
        };
        let machine = self.call(Verb::OpenVolume, id, read).await?;
        self.agent_of(machine, &format!("volume-{id}"))
    }
}

#[async_trait]
impl UsageReports for FakeProvider {
    async fn usage(&self, id: &str) -> Result<Usage> {
        let read = |world: &mut World| {
            let instance = world.find(id)?;
            let live = instance.state.is_live();
            Ok(Usage {
                memory_bytes: live.then_some(1 << 20),
                pids: live.then_some(1),
                disk_bytes: Some(
                    instance
                        .machine
                        .as_ref()
                        .map_or(0, |machine| machine.disk_used()),
                ),
                ..Usage::default()
            })
        };
        self.call(Verb::Usage, id, read).await
    }

    async fn usage_history(&self, id: &str, from_ms: i64, to_ms: i64) -> Result<Vec<UsagePoint>> {
        let read = |world: &mut World| {
            let now_ms = world.clock.now_ms();
            Ok(world.find(id)?.usage_between(from_ms, to_ms.min(now_ms)))
        };
        self.call(Verb::UsageHistory, id, read).await
    }
}
