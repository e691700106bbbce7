//! The provider's calls, each with a timeout.

use std::time::Instant;

use async_trait::async_trait;
use sandyard_agent_client::{AgentClient, Endpoint};
use sandyard_core::SandboxId;
use sandyard_core::network::{Flow, NetworkGrant};
use sandyard_engine::{DEFAULT_TEMPLATE, Engine, EngineError, ErrorKind, PoolSpec, SandboxInfo};
use sandyard_provider::{
    AgentAddress, ArchiveReader, Change, Instance, InstanceSpec, Instances, Provider,
    ProviderError, ProviderErrorKind, ProviderInfo, Ready, Result, TemplateInfo, Templates, Usage,
    UsagePoint, UsageReports, Verb, VolumeSpec, Volumes,
};
use tokio::sync::mpsc;

use super::error::{no_instance, timed_out};
use super::{Embedded, convert};
use crate::agent_client;

impl Embedded {
    /// Refuses limits above the host's maximum: the engine trusts its callers.
    fn check_limits(&self, spec: &InstanceSpec) -> Result<()> {
        let checked = spec.limits.check(&self.info.max_limits);
        checked.map_err(|error| ProviderError::new(ProviderErrorKind::Invalid, error.to_string()))
    }

    /// A call that changes the state of a sandbox.
    async fn transition<F>(
        &self,
        verb: Verb,
        id: &str,
        transition: impl FnOnce(Engine, SandboxId) -> F,
    ) -> Result<Instance>
    where
        F: Future<Output = Result<SandboxInfo, EngineError>> + Send,
    {
        let work = transition(self.engine.clone(), parse(id)?);
        let done = self.within(verb, work).await.map(convert::instance)?;
        self.history.record(&done);
        Ok(done)
    }
}

#[async_trait]
impl Provider for Embedded {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    async fn check_health(&self) -> Result<()> {
        let hello = self.engine.hello();
        self.within(Verb::CheckHealth, hello).await.map(drop)
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
    }
}

#[async_trait]
impl Instances for Embedded {
    async fn create(&self, spec: &InstanceSpec) -> Result<Instance> {
        self.check_limits(spec)?;
        let labels = self.labels(&spec.sandbox_id);
        let sandbox_spec = convert::sandbox_spec(spec, &labels);
        let create = self.create_once(&labels, || self.engine.create(&sandbox_spec));
        let instance = self.within(Verb::Create, create).await?;
        self.history.record(&instance);
        Ok(instance)
    }

    async fn fork(&self, id: &str, spec: &InstanceSpec) -> Result<Instance> {
        self.check_limits(spec)?;
        let id = parse(id)?;
        let labels = self.labels(&spec.sandbox_id);
        let fork_spec = convert::fork_spec(spec, &labels);
        let fork = self.create_once(&labels, || self.engine.fork(&id, &fork_spec));
        let instance = self.within(Verb::Fork, fork).await?;
        self.history.record(&instance);
        Ok(instance)
    }

    async fn inspect(&self, id: &str) -> Result<Option<Instance>> {
        let Ok(id) = parse(id) else {
            return Ok(None);
        };
        let inspect = async {
            match self.engine.inspect(&id).await {
                Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
                other => other.map(Some),
            }
        };
        let found = self.within(Verb::Inspect, inspect).await?;
        let own = found.filter(|info| convert::is_owned(info, &self.installation));
        Ok(own.map(convert::instance))
    }

    async fn list(&self) -> Result<Vec<Instance>> {
        let since = Instant::now();
        let all = self.within(Verb::List, self.engine.list()).await?;
        let own = all
            .into_iter()
            .filter(|info| convert::is_owned(info, &self.installation));
        let own: Vec<_> = own.map(convert::instance).collect();
        // Another server on this data directory may have removed some.
        self.history.record_all(since, &own);
        if let Some(gateway) = &self.gateway {
            let live = own.iter().filter(|instance| instance.state.is_live());
            gateway.retain(since, live.map(|instance| instance.id.as_str()));
        }
        Ok(own)
    }

    async fn pause(&self, id: &str) -> Result<Instance> {
        let pause = |engine: Engine, id| async move { engine.pause(&id).await };
        self.transition(Verb::Pause, id, pause).await
    }

    async fn resume(&self, id: &str) -> Result<Instance> {
        let resume = |engine: Engine, id| async move { engine.resume(&id).await };
        self.transition(Verb::Resume, id, resume).await
    }

    async fn stop(&self, id: &str) -> Result<Instance> {
        let stop = |engine: Engine, id| async move { engine.stop(&id).await };
        let stopped = self.transition(Verb::Stop, id, stop).await?;
        self.close_egress(id);
        Ok(stopped)
    }

    async fn start(&self, id: &str) -> Result<Instance> {
        let start = |engine: Engine, id| async move { engine.start(&id).await };
        self.transition(Verb::Start, id, start).await
    }

    async fn delete(&self, id: &str) -> Result<()> {
        let Ok(parsed) = parse(id) else {
            return Ok(());
        };
        self.within(Verb::Delete, self.engine.delete(&parsed))
            .await?;
        self.close_egress(id);
        self.history.forget(id);
        Ok(())
    }

    async fn diff(&self, id: &str) -> Result<Vec<Change>> {
        let id = parse(id)?;
        let diff = self.within(Verb::Diff, self.engine.diff(&id)).await;
        diff.map(convert::changes)
    }

    async fn agent(&self, instance: &AgentAddress) -> Result<AgentClient> {
        let endpoint = self.engine.agent(&parse(&instance.id)?).endpoint().clone();
        agent_client::with_token(endpoint, &instance.access_token)
    }

    async fn set_network(&self, id: &str, grant: &NetworkGrant) -> Result<Vec<String>> {
        let parsed = parse(id)?;
        let endpoint = self.engine.agent(&parsed).endpoint().clone();
        // The socket exists while the sandbox lives; checking it is far cheaper than asking the launcher.
        let is_live = matches!(&endpoint, Endpoint::Unix(path) if path.exists());
        if !is_live {
            // A stopped instance gets its egress when it starts.
            let inspected = self.inspect(id).await?;
            return inspected.map(|_| Vec::new()).ok_or_else(|| no_instance(id));
        }
        let Some(gateway) = &self.gateway else {
            return Ok(vec![
                "this server has no gateway: the sandbox has no network access".to_owned(),
            ]);
        };
        gateway.attach(id, endpoint, grant.clone());
        Ok(Vec::new())
    }
}

#[async_trait]
impl Templates for Embedded {
    async fn templates(&self) -> Result<Vec<TemplateInfo>> {
        let all = self
            .within(Verb::Templates, self.engine.templates())
            .await?;
        let mut templates: Vec<_> = all.into_iter().map(convert::template).collect();
        // The default template is created on first use, but can always be used.
        if !templates
            .iter()
            .any(|template| template.name == DEFAULT_TEMPLATE)
        {
            templates.push(TemplateInfo {
                is_ours: true,
                name: DEFAULT_TEMPLATE.to_owned(),
                created_ms: None,
                size_bytes: None,
                note: Some("the programs of this host".to_owned()),
            });
            templates.sort_by(|a, b| a.name.cmp(&b.name));
        }
        Ok(templates)
    }

    async fn snapshot(&self, id: &str, name: &str) -> Result<TemplateInfo> {
        let id = parse(id)?;
        let keep = self.engine.snapshot(&id, name);
        let snapshot = self.within(Verb::Snapshot, keep).await;
        snapshot.map(convert::template)
    }

    async fn import_template(&self, name: &str, archive: ArchiveReader) -> Result<TemplateInfo> {
        let import = self.engine.import_template(name, archive, |_| {});
        let imported = self.within(Verb::ImportTemplate, import).await;
        imported.map(convert::template)
    }

    async fn remove_template(&self, name: &str) -> Result<()> {
        let remove = self.engine.remove_template(name);
        self.within(Verb::RemoveTemplate, remove).await
    }

    async fn keep_ready(&self, pool: &[Ready]) -> Result<()> {
        let pool_spec = |ready: &Ready| PoolSpec {
            template: match &ready.template {
                Some(template) => template.clone(),
                None => DEFAULT_TEMPLATE.to_owned(),
            },
            limits: self.info.default_limits.clone(),
            count: ready.count,
        };
        let pool = pool.iter().filter(|ready| ready.count > 0).map(pool_spec);
        let work = async {
            self.engine.set_pool(pool.collect()).await?;
            self.engine.ready_count().await
        };
        let ready = self.within(Verb::KeepReady, work).await?;
        let provider = self.info.name.clone();
        metrics::gauge!("sandyard_ready_sandboxes", "provider" => provider).set(ready as f64);
        Ok(())
    }
}

#[async_trait]
impl Volumes for Embedded {
    async fn create_volume(&self, volume: &VolumeSpec) -> Result<()> {
        let create = self.engine.create_volume(&volume.id, volume.size_bytes);
        self.within(Verb::CreateVolume, create).await
    }

    async fn delete_volume(&self, id: &str) -> Result<()> {
        let verb = Verb::DeleteVolume;
        let timeout = self.timeouts.of(verb);
        let deleted = tokio::time::timeout(timeout, self.volume_helpers.delete(id)).await;
        deleted.unwrap_or_else(|_| Err(timed_out(verb, timeout)))?;
        self.within(verb, self.engine.delete_volume(id)).await
    }

    async fn open_volume(&self, id: &str) -> Result<AgentClient> {
        self.volume_helpers.open(id).await
    }
}

#[async_trait]
impl UsageReports for Embedded {
    async fn usage(&self, id: &str) -> Result<Usage> {
        let id = parse(id)?;
        let stats = self.within(Verb::Usage, self.engine.stats(&id)).await;
        stats.map(convert::usage)
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

fn parse(id: &str) -> Result<SandboxId> {
    id.parse().map_err(|_| no_instance(id))
}
