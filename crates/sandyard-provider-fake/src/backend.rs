//! The calls themselves: each goes through what the test has prepared for it, before its work and after.

use std::sync::{Arc, PoisonError};

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
        let fate = self.script().enter(verb, subject);
        fate.pass(Moment::Before).await?;
        self.require(verb)?;
        let done = work(&mut self.world())?;
        fate.pass(Moment::After).await?;
        Ok(done)
    }

    fn has_agents(&self) -> bool {
        self.agent.is_some() || self.world().inside.is_some()
    }

    /// The agent that every instance has, or the one in there.
    fn agent_of(&self, machine: Option<Arc<Machine>>, name: &str) -> Result<AgentClient> {
        let inside = machine.map(|machine| client(machine, name));
        self.agent.clone().or(inside).ok_or_else(|| {
            ProviderError::new(ProviderErrorKind::Unsupported, "there is no agent here")
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
            format!("`{verb}` cannot be done here"),
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
        let flows = self.shared.flows_out.lock();
        flows.unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[async_trait]
impl Instances for FakeProvider {
    async fn create(&self, spec: &InstanceSpec) -> Result<Instance> {
        let most = &self.info.max_limits;
        let make = |world: &mut World| world.create(spec, most);
        self.call(Verb::Create, spec.sandbox_id.as_str(), make)
            .await
    }

    async fn fork(&self, id: &str, spec: &InstanceSpec) -> Result<Instance> {
        self.call(Verb::Fork, id, |world| world.fork(id, spec))
            .await
    }

    async fn inspect(&self, id: &str) -> Result<Option<Instance>> {
        let look = |world: &mut World| Ok(world.instance(id).ok());
        self.call(Verb::Inspect, id, look).await
    }

    async fn list(&self) -> Result<Vec<Instance>> {
        let look = |world: &mut World| {
            let ours = world.instances.values().filter(|one| one.is_ours);
            Ok(ours.map(|one| one.instance()).collect())
        };
        self.call(Verb::List, "", look).await
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
            if world.one(id).is_ok() {
                world.remove(id);
            }
            Ok(())
        };
        self.call(Verb::Delete, id, remove).await
    }

    async fn diff(&self, id: &str) -> Result<Vec<Change>> {
        let look = |world: &mut World| {
            let machine = &world.one(id)?.machine;
            // One without a machine has no files.
            Ok(machine
                .as_ref()
                .map_or_else(Vec::new, |machine| machine.difference()))
        };
        self.call(Verb::Diff, id, look).await
    }

    async fn agent(&self, instance: &AgentAddress) -> Result<AgentClient> {
        let id = instance.id.as_str();
        let look = |world: &mut World| Ok(world.one(id)?.machine.clone());
        let machine = self.call(Verb::Agent, id, look).await?;
        self.agent_of(machine, id)
    }

    async fn set_network(&self, id: &str, grant: &NetworkGrant) -> Result<Vec<String>> {
        let set = |world: &mut World| {
            world.one(id)?;
            world.grants.insert(id.to_owned(), grant.clone());
            Ok(world.unenforced.clone())
        };
        self.call(Verb::SetNetwork, id, set).await
    }
}

#[async_trait]
impl Templates for FakeProvider {
    async fn templates(&self) -> Result<Vec<TemplateInfo>> {
        let look = |world: &mut World| Ok(world.templates.values().cloned().collect());
        self.call(Verb::Templates, "", look).await
    }

    async fn snapshot(&self, id: &str, name: &str) -> Result<TemplateInfo> {
        let keep = |world: &mut World| world.snapshot(id, name);
        self.call(Verb::Snapshot, id, keep).await
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
        let keep = |world: &mut World| {
            if bytes.is_empty() {
                return Err(ProviderError::new(
                    ProviderErrorKind::Invalid,
                    "that is no archive",
                ));
            }
            world.add_template(name, Some(bytes.len() as u64))
        };
        self.call(Verb::ImportTemplate, name, keep).await
    }

    async fn remove_template(&self, name: &str) -> Result<()> {
        let remove = |world: &mut World| world.remove_template(name);
        self.call(Verb::RemoveTemplate, name, remove).await
    }

    async fn keep_ready(&self, wanted: &[Ready]) -> Result<()> {
        let keep = |world: &mut World| {
            world.ready = wanted.iter().map(|ready| ready.count).sum();
            Ok(())
        };
        self.call(Verb::KeepReady, "", keep).await
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

    /// Where every instance has the same agent it sees no volume, but it is there for whoever has one.
    async fn open_volume(&self, id: &str) -> Result<AgentClient> {
        let look = |world: &mut World| {
            world.volume(id)?;
            let inside = world.inside.as_ref();
            Ok(inside.and_then(|inside| inside.open_volume(id, &world.clock)))
        };
        let machine = self.call(Verb::OpenVolume, id, look).await?;
        self.agent_of(machine, &format!("volume-{id}"))
    }
}

#[async_trait]
impl UsageReports for FakeProvider {
    async fn usage(&self, id: &str) -> Result<Usage> {
        let look = |world: &mut World| {
            let one = world.one(id)?;
            let live = one.state.is_live();
            Ok(Usage {
                memory_bytes: live.then_some(1 << 20),
                pids: live.then_some(1),
                disk_bytes: Some(
                    one.machine
                        .as_ref()
                        .map_or(0, |machine| machine.disk_used()),
                ),
                ..Usage::default()
            })
        };
        self.call(Verb::Usage, id, look).await
    }

    async fn usage_history(&self, id: &str, from_ms: i64, to_ms: i64) -> Result<Vec<UsagePoint>> {
        let look = |world: &mut World| {
            let now_ms = world.clock.now_ms();
            Ok(world.one(id)?.usage_between(from_ms, to_ms.min(now_ms)))
        };
        self.call(Verb::UsageHistory, id, look).await
    }
}
