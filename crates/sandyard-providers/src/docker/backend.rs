//! The calls, each bounded in time.

use std::sync::PoisonError;
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
    /// Notes what a call has made of a container, and tells it.
    fn noted(&self, container: Container) -> Instance {
        self.history.note(&container.instance);
        container.instance
    }

    fn close_way_out(&self, id: &str) {
        if let Some(gateway) = &self.gateway {
            gateway.detach(id);
        }
    }

    /// What is used now; in every state.
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
        let mut flows = self.flows.lock().unwrap_or_else(PoisonError::into_inner);
        flows.take()
    }

    async fn close(&self) {
        self.keepers.end_all().await;
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
        // It may have to come over a network first, which is none of the container's time.
        let image = self.shared.image(&spec.template, spec.is_restricted).await;
        let image = image.map_err(|fault| fault.into_error(verb))?;
        let make = self.shared.make(&self.links, spec, &image);
        let made = self.within(verb, make).await?;
        Ok(self.noted(made))
    }

    async fn fork(&self, id: &str, spec: &InstanceSpec) -> Result<Instance> {
        let fork = async {
            let calm = self.links.calm(id).await;
            self.shared.fork(&self.links, id, spec, calm).await
        };
        let made = self.within(Verb::Fork, fork).await?;
        Ok(self.noted(made))
    }

    async fn inspect(&self, id: &str) -> Result<Option<Instance>> {
        let found = self.within(Verb::Inspect, self.shared.find(id)).await?;
        Ok(found.map(|container| container.instance))
    }

    async fn list(&self) -> Result<Vec<Instance>> {
        let since = Instant::now();
        let all = self.within(Verb::List, self.shared.sandboxes()).await?;
        let ours: Vec<_> = all.into_iter().map(|one| one.instance).collect();
        // Another server of this installation may have removed some.
        self.history.note_all(since, &ours);
        if let Some(gateway) = &self.gateway {
            let live = ours.iter().filter(|one| one.state.is_live());
            gateway.retain(since, live.map(|one| one.id.as_str()));
        }
        self.links.tidy();
        self.sweeper.poke(&self.shared, &self.links);
        Ok(ours)
    }

    async fn pause(&self, id: &str) -> Result<Instance> {
        let pause = async {
            let _calm = self.links.calm(id).await;
            self.shared.pause(id).await
        };
        let paused = self.within(Verb::Pause, pause).await?;
        Ok(self.noted(paused))
    }

    async fn resume(&self, id: &str) -> Result<Instance> {
        let resumed = self.within(Verb::Resume, self.shared.resume(id)).await?;
        Ok(self.noted(resumed))
    }

    async fn stop(&self, id: &str) -> Result<Instance> {
        let stopped = self.within(Verb::Stop, self.shared.stop(id)).await?;
        self.close_way_out(id);
        self.links.forget(id);
        Ok(self.noted(stopped))
    }

    async fn start(&self, id: &str) -> Result<Instance> {
        let start = self.shared.start(&self.links, id);
        let started = self.within(Verb::Start, start).await?;
        Ok(self.noted(started))
    }

    async fn delete(&self, id: &str) -> Result<()> {
        self.within(Verb::Delete, self.shared.delete(&self.links, id))
            .await?;
        self.close_way_out(id);
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
        let endpoint = Endpoint::Custom(self.links.way(&instance.id));
        agent_client::with_token(endpoint, &instance.access_token)
    }

    async fn set_network(&self, id: &str, grant: &NetworkGrant) -> Result<Vec<String>> {
        let found = self.within(Verb::SetNetwork, self.shared.get(id)).await?;
        if let DockerNetwork::Named(name) = &self.shared.config.network {
            return Ok(vec![format!(
                "nothing of the policy holds on Docker's network `{name}`: all that can be reached there can be reached"
            )]);
        }
        let Some(gateway) = &self.gateway else {
            return Ok(vec![
                "there is no gateway here, so nothing can be reached".to_owned(),
            ]);
        };
        // One that is stopped is given its way out when it starts.
        if found.instance.state.is_live() {
            let endpoint = Endpoint::Custom(self.links.way(id));
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
        let keep = async {
            let _calm = self.links.calm(id).await;
            self.shared.snapshot(id, name).await
        };
        self.within(Verb::Snapshot, keep).await
    }

    async fn import_template(&self, name: &str, archive: ArchiveReader) -> Result<TemplateInfo> {
        let import = self.shared.import(name, archive);
        self.within(Verb::ImportTemplate, import).await
    }

    async fn remove_template(&self, name: &str) -> Result<()> {
        let remove = self.shared.remove_template(name);
        self.within(Verb::RemoveTemplate, remove).await
    }

    /// Containers are made when they are asked for; the image is there by then.
    async fn keep_ready(&self, wanted: &[Ready]) -> Result<()> {
        let prepare = async {
            // Containers are not kept ready, but what all of them need is: the default image. Others are fetched by whoever wants them.
            if wanted
                .iter()
                .any(|ready| ready.template.is_none() && ready.count > 0)
                && let Err(fault) = self.shared.image(&self.info.default_template, false).await
            {
                tracing::warn!(
                    image = self.info.default_template,
                    "There is no default image: {}",
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
        let make = self.shared.create_volume(volume);
        self.within(Verb::CreateVolume, make).await
    }

    async fn delete_volume(&self, id: &str) -> Result<()> {
        let verb = Verb::DeleteVolume;
        if !check::is_volume_id(id) {
            return Ok(());
        }
        let most = self.shared.config.timeouts.of(verb);
        let end = tokio::time::timeout(most, self.keepers.end(id)).await;
        end.unwrap_or_else(|_| Err(timed_out(verb, most)))?;
        self.within(verb, self.shared.delete_volume(id)).await
    }

    async fn open_volume(&self, id: &str) -> Result<AgentClient> {
        // Before it takes somebody's place.
        let need = self.shared.need_volume(id);
        self.within(Verb::OpenVolume, need).await?;
        self.keepers.open(id).await
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
        // Not seen since this server started, or not there.
        let inspected = self.inspect(id).await?;
        inspected.map(|_| Vec::new()).ok_or_else(|| no_instance(id))
    }
}
