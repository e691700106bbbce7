//! The provider's calls, each with a timeout.

use std::time::Instant;

use async_trait::async_trait;
use sandyard_agent_client::{AgentClient, Endpoint};
use sandyard_core::network::{Flow, NetworkGrant};
use sandyard_provider::{
    AgentAddress, ArchiveReader, Change, Instance, InstanceSpec, Instances, Provider, ProviderInfo,
    Ready, Result, TemplateInfo, Templates, Usage, UsagePoint, UsageReports, Verb, VolumeSpec,
    Volumes,
};
use tokio::sync::mpsc;

use super::config::DockerNetwork;
use super::convert::Container;
use super::error::{DaemonResult, no_instance, timed_out};
use super::{Docker, check, convert};
use crate::agent_client;

impl Docker {
    /// Records the state of a container after a call, and returns its instance.
    fn record(&self, container: Container) -> Instance {
        self.history.record(&container.instance);
        container.instance
    }

    fn close_egress(&self, id: &str) {
        if let Some(gateway) = &self.gateway {
            gateway.detach(id);
        }
    }

    /// Current usage, in every state.
    async fn read_usage(&self, id: &str) -> DaemonResult<Usage> {
        let container = self.shared.get(id).await?;
        let size = self.shared.size(&self.sizes, id).await;
        let stats = match container.instance.state.is_live() {
            true => self.shared.stats(id).await?,
            false => None,
        };
        Ok(convert::usage(stats.as_ref(), size))
    }
}

#[async_trait]
impl Provider for Docker {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    async fn check_health(&self) -> Result<()> {
        let ping = async { Ok(self.shared.daemon.ping().await?) };
        self.within(Verb::CheckHealth, ping).await.map(drop)
    }

    fn take_flows(&self) -> Option<mpsc::Receiver<Flow>> {
        let mut flows = self.flows.lock();
        flows.take()
    }

    async fn close(&self) {
        self.volume_helpers.delete_all().await;
        if let Some(gateway) = &self.gateway {
            gateway.shut_down().await;
        }
        self.links.close_all();
    }
}

#[async_trait]
impl Instances for Docker {
    async fn create(&self, spec: &InstanceSpec) -> Result<Instance> {
        let verb = Verb::Create;
        let checked = check::spec(spec, &self.info.max_limits);
        checked.map_err(|fault| fault.into_error(verb))?;
        // An image may have to be pulled, which does not count as the container's time.
        let image = self.shared.image(&spec.template, spec.is_restricted).await;
        let image = image.map_err(|fault| fault.into_error(verb))?;
        let create = self.shared.create_container(&self.links, spec, &image);
        let container = self.within(verb, create).await?;
        Ok(self.record(container))
    }

    async fn fork(&self, id: &str, spec: &InstanceSpec) -> Result<Instance> {
        let fork = async {
            let guard = self.links.block(id).await;
            self.shared.fork(&self.links, id, spec, guard).await
        };
        let container = self.within(Verb::Fork, fork).await?;
        Ok(self.record(container))
    }

    async fn inspect(&self, id: &str) -> Result<Option<Instance>> {
        let container = self.within(Verb::Inspect, self.shared.find(id)).await?;
        Ok(container.map(|container| container.instance))
    }

    async fn list(&self) -> Result<Vec<Instance>> {
        let since = Instant::now();
        let all = self.within(Verb::List, self.shared.sandboxes()).await?;
        let instances: Vec<_> = all.into_iter().map(|instance| instance.instance).collect();
        // Another server of this installation may have removed some.
        self.history.record_all(since, &instances);
        if let Some(gateway) = &self.gateway {
            let live = instances.iter().filter(|instance| instance.state.is_live());
            gateway.retain(since, live.map(|instance| instance.id.as_str()));
        }
        self.links.remove_ended();
        self.sweeper.trigger(&self.shared, &self.links);
        Ok(instances)
    }

    async fn pause(&self, id: &str) -> Result<Instance> {
        let pause = async {
            let _guard = self.links.block(id).await;
            self.shared.pause(id).await
        };
        let paused = self.within(Verb::Pause, pause).await?;
        Ok(self.record(paused))
    }

    async fn resume(&self, id: &str) -> Result<Instance> {
        let resumed = self.within(Verb::Resume, self.shared.resume(id)).await?;
        Ok(self.record(resumed))
    }

    async fn stop(&self, id: &str) -> Result<Instance> {
        let stopped = self.within(Verb::Stop, self.shared.stop(id)).await?;
        self.close_egress(id);
        self.links.forget(id);
        Ok(self.record(stopped))
    }

    async fn start(&self, id: &str) -> Result<Instance> {
        let start = self.shared.start(&self.links, id);
        let started = self.within(Verb::Start, start).await?;
        Ok(self.record(started))
    }

    async fn delete(&self, id: &str) -> Result<()> {
        self.within(Verb::Delete, self.shared.delete(&self.links, id))
            .await?;
        self.close_egress(id);
        self.history.forget(id);
        self.sizes.forget(id);
        Ok(())
    }

    async fn diff(&self, id: &str) -> Result<Vec<Change>> {
        self.within(Verb::Diff, self.shared.changes(id)).await
    }

    async fn agent(&self, instance: &AgentAddress) -> Result<AgentClient> {
        if !check::is_container_id(&instance.id) {
            return Err(no_instance(&instance.id));
        }
        let endpoint = Endpoint::Custom(self.links.dialler(&instance.id));
        agent_client::with_token(endpoint, &instance.access_token)
    }

    async fn set_network(&self, id: &str, grant: &NetworkGrant) -> Result<Vec<String>> {
        let container = self.within(Verb::SetNetwork, self.shared.get(id)).await?;
        if let DockerNetwork::Existing(name) = &self.shared.config.network {
            return Ok(vec![format!(
                "the policy is not enforced on Docker's network `{name}`: sandboxes can reach everything that the network reaches"
            )]);
        }
        let Some(gateway) = &self.gateway else {
            return Ok(vec![
                "this server has no gateway: the sandbox has no network access".to_owned(),
            ]);
        };
        // A stopped instance gets its egress when it starts.
        if container.instance.state.is_live() {
            let endpoint = Endpoint::Custom(self.links.dialler(id));
            gateway.attach(id, endpoint, grant.clone());
        }
        Ok(Vec::new())
    }
}

#[async_trait]
impl Templates for Docker {
    async fn templates(&self) -> Result<Vec<TemplateInfo>> {
        self.within(Verb::Templates, self.shared.templates()).await
    }

    async fn snapshot(&self, id: &str, name: &str) -> Result<TemplateInfo> {
        let snapshot = async {
            let _guard = self.links.block(id).await;
            self.shared.snapshot(id, name).await
        };
        self.within(Verb::Snapshot, snapshot).await
    }

    async fn import_template(&self, name: &str, archive: ArchiveReader) -> Result<TemplateInfo> {
        let import = self.shared.import(name, archive);
        self.within(Verb::ImportTemplate, import).await
    }

    async fn remove_template(&self, name: &str) -> Result<()> {
        let remove = self.shared.remove_template(name);
        self.within(Verb::RemoveTemplate, remove).await
    }

    /// Containers are created on request; the default image is pulled in advance.
    async fn keep_ready(&self, pool: &[Ready]) -> Result<()> {
        let prepare = async {
            // Containers cannot be created in advance, but the default image can be pulled. Other images are pulled on request.
            if pool
                .iter()
                .any(|ready| ready.template.is_none() && ready.count > 0)
                && let Err(fault) = self.shared.image(&self.info.default_template, false).await
            {
                tracing::warn!(
                    image = self.info.default_template,
                    "Failed to get the default image: {}",
                    fault.text()
                );
            }
            Ok(())
        };
        self.within(Verb::KeepReady, prepare).await
    }
}

#[async_trait]
impl Volumes for Docker {
    async fn create_volume(&self, volume: &VolumeSpec) -> Result<()> {
        let create = self.shared.create_volume(volume);
        self.within(Verb::CreateVolume, create).await
    }

    async fn delete_volume(&self, id: &str) -> Result<()> {
        let verb = Verb::DeleteVolume;
        if !check::is_volume_id(id) {
            return Ok(());
        }
        let timeout = self.shared.config.timeouts.of(verb);
        let deleted = tokio::time::timeout(timeout, self.volume_helpers.delete(id)).await;
        deleted.unwrap_or_else(|_| Err(timed_out(verb, timeout)))?;
        self.within(verb, self.shared.delete_volume(id)).await
    }

    async fn open_volume(&self, id: &str) -> Result<AgentClient> {
        // Checked before a slot of the volume helpers is used.
        let check = self.shared.require_volume(id);
        self.within(Verb::OpenVolume, check).await?;
        self.volume_helpers.open(id).await
    }
}

#[async_trait]
impl UsageReports for Docker {
    async fn usage(&self, id: &str) -> Result<Usage> {
        self.within(Verb::Usage, self.read_usage(id)).await
    }

    async fn usage_history(&self, id: &str, from_ms: i64, to_ms: i64) -> Result<Vec<UsagePoint>> {
        if let Some(points) = self.history.between(id, from_ms, to_ms) {
            return Ok(points);
        }
        // Not seen since this server started, or missing.
        let inspected = self.inspect(id).await?;
        inspected.map(|_| Vec::new()).ok_or_else(|| no_instance(id))
    }
}
