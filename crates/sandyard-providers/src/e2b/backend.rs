//! The provider's calls, each one or two requests to the API.

use std::sync::atomic::AtomicUsize;

use async_trait::async_trait;
use futures_util::StreamExt;
use http::Method;
use sandyard_agent_client::AgentClient;
use sandyard_core::SandboxState;
use sandyard_core::network::NetworkGrant;
use sandyard_provider::ProviderErrorKind::{Conflict, NotFound};
use sandyard_provider::{
    AgentAddress, ArchiveReader, Change, Instance, InstanceSpec, Instances, Provider,
    ProviderError, ProviderInfo, Ready, Result, TemplateInfo, Templates, Usage, UsagePoint,
    UsageReports, Verb, Volumes,
};

use super::api::NO_BODY;
use super::model::{Metric, Pause, Sandbox};
use super::templates::no_import;
use super::temporary_snapshots::TemporarySnapshot;
use super::{E2b, convert, error, network};

/// How many sandboxes are inspected at once.
const CONCURRENCY: usize = 8;

#[async_trait]
impl Provider for E2b {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    async fn check_health(&self) -> Result<()> {
        let filter = convert::query_value(convert::INSTALLATION, &self.installation);
        let query = [("metadata", filter), ("limit", "1".to_owned())];
        let path = ["v2", "sandboxes"];
        let verb = Verb::CheckHealth;
        let answer = self.api.query(verb, Method::GET, &path, &query, NO_BODY);
        answer.await?.read::<Vec<Sandbox>>().map(drop)
    }
}

#[async_trait]
impl Instances for E2b {
    async fn create(&self, spec: &InstanceSpec) -> Result<Instance> {
        convert::check(spec)?;
        let template = &spec.template;
        let source = self.source(template, spec.is_restricted).await?;
        self.create_sandbox(Verb::Create, spec, &source, template)
            .await
    }

    /// Uses a temporary snapshot: a copy that E2B makes would have the metadata of its source.
    async fn fork(&self, id: &str, spec: &InstanceSpec) -> Result<Instance> {
        let verb = Verb::Fork;
        convert::check(spec)?;
        let found = self.find_own(verb, id).await?;
        let template = self.instance(&found).template;
        let snapshot = self
            .save_files(verb, id, &self.temporary_snapshots.next())
            .await?;
        let source = snapshot.snapshot_id.clone();
        let _guard = TemporarySnapshot {
            api: self.api.clone(),
            snapshot: Some(snapshot),
        };
        self.create_sandbox(verb, spec, &source, &template).await
    }

    async fn inspect(&self, id: &str) -> Result<Option<Instance>> {
        let found = self.find(Verb::Inspect, id).await?;
        Ok(found.map(|found| self.instance(&found)))
    }

    async fn list(&self) -> Result<Vec<Instance>> {
        let installation = &self.installation;
        let marked = self
            .api
            .with_label(Verb::List, convert::INSTALLATION, installation);
        let before = self.cache.ids();
        let (all, now_ms) = marked.await?;
        self.cache.retain_listed(before, &all);
        self.timeout_extender.extend(&self.api, &all, now_ms);
        self.temporary_snapshots.sweep(&self.api, now_ms);
        let failures = AtomicUsize::new(0);
        let instances =
            futures_util::stream::iter(all).map(|sandbox| self.with_pause_mode(sandbox, &failures));
        let found: Vec<_> = instances.buffered(CONCURRENCY).collect().await;
        Ok(found.into_iter().flatten().collect())
    }

    async fn pause(&self, id: &str) -> Result<Instance> {
        let verb = Verb::Pause;
        let found = self.find_own(verb, id).await?;
        match convert::state(&found) {
            SandboxState::Paused => return Ok(self.instance(&found)),
            SandboxState::Stopped => return Err(conflict("is stopped: start it")),
            _ => self.pause_sandbox(verb, id, None).await?,
        }
        self.inspect_own(verb, id).await
    }

    async fn resume(&self, id: &str) -> Result<Instance> {
        let verb = Verb::Resume;
        let found = self.find_own(verb, id).await?;
        match convert::state(&found) {
            SandboxState::Running => return Ok(self.instance(&found)),
            SandboxState::Stopped => return Err(conflict("is stopped: start it")),
            _ => self.wake(verb, id, None).await?,
        }
        self.inspect_own(verb, id).await
    }

    async fn stop(&self, id: &str) -> Result<Instance> {
        let verb = Verb::Stop;
        let found = self.find_own(verb, id).await?;
        match convert::state(&found) {
            SandboxState::Stopped => return Ok(self.instance(&found)),
            // A sandbox that is paused with its memory can only drop the memory by a new start.
            SandboxState::Paused => self.wake(verb, id, Some(false)).await?,
            _ => {}
        }
        self.pause_sandbox(verb, id, Some(false)).await?;
        let stopped = self.inspect_own(verb, id).await?;
        if stopped.state != SandboxState::Stopped {
            return Err(error::unsupported(
                "stop this sandbox: it is paused with its memory",
            ));
        }
        Ok(stopped)
    }

    async fn start(&self, id: &str) -> Result<Instance> {
        let verb = Verb::Start;
        let found = self.find_own(verb, id).await?;
        match convert::state(&found) {
            SandboxState::Running => return Ok(self.instance(&found)),
            SandboxState::Paused => return Err(conflict("is paused: resume it")),
            _ => self.wake(verb, id, None).await?,
        }
        // Its processes are new.
        self.cache.tools(id).forget();
        self.inspect_own(verb, id).await
    }

    async fn delete(&self, id: &str) -> Result<()> {
        let verb = Verb::Delete;
        if self.cache.keys(id).is_none() && self.find(verb, id).await?.is_none() {
            return Ok(());
        }
        let path = ["sandboxes", id];
        match self.api.ask(verb, Method::DELETE, &path, NO_BODY).await {
            Err(error) if error.kind != NotFound => return Err(error),
            _ => self.cache.forget(id),
        }
        Ok(())
    }

    async fn diff(&self, _id: &str) -> Result<Vec<Change>> {
        Err(error::unsupported(
            "list the files that changed since the template",
        ))
    }

    async fn agent(&self, instance: &AgentAddress) -> Result<AgentClient> {
        self.client(&instance.id, &instance.access_token).await
    }

    async fn set_network(&self, id: &str, grant: &NetworkGrant) -> Result<Vec<String>> {
        let verb = Verb::SetNetwork;
        if !convert::is_id(id) {
            return Err(error::no_instance());
        }
        self.check_owned(verb, id).await?;
        let (network, mut limitations) = network::network(&grant.policy);
        network::limitations_of_secrets(grant, &mut limitations);
        let path = ["sandboxes", id, "network"];
        let answer = self.api.ask(verb, Method::PUT, &path, Some(&network)).await;
        match answer {
            // A paused sandbox has no network access; it gets its egress when it is resumed.
            Err(error) if matches!(error.kind, NotFound | Conflict) => {
                let found = self.find_own(verb, id).await?;
                match convert::state(&found) {
                    SandboxState::Running => Err(error),
                    _ => Ok(limitations),
                }
            }
            other => other.map(|_| limitations),
        }
    }
}

#[async_trait]
impl Templates for E2b {
    async fn templates(&self) -> Result<Vec<TemplateInfo>> {
        self.all_templates().await
    }

    async fn snapshot(&self, id: &str, name: &str) -> Result<TemplateInfo> {
        let verb = Verb::Snapshot;
        self.find_own(verb, id).await?;
        self.check_name(name).await?;
        self.save_files(verb, id, &self.full_name(name)).await?;
        Ok(TemplateInfo {
            is_ours: true,
            name: name.to_owned(),
            created_ms: None,
            size_bytes: None,
            note: None,
        })
    }

    async fn import_template(&self, _name: &str, _archive: ArchiveReader) -> Result<TemplateInfo> {
        Err(no_import())
    }

    async fn remove_template(&self, name: &str) -> Result<()> {
        self.remove_snapshot(name).await
    }

    /// No pool: E2B starts sandboxes from memory anyway.
    async fn keep_ready(&self, _pool: &[Ready]) -> Result<()> {
        Ok(())
    }
}

impl Volumes for E2b {}

#[async_trait]
impl UsageReports for E2b {
    async fn usage(&self, id: &str) -> Result<Usage> {
        let all = self.metrics(Verb::Usage, id, &[]).await?;
        Ok(all.last().map(convert::usage).unwrap_or_default())
    }

    async fn usage_history(&self, id: &str, from_ms: i64, to_ms: i64) -> Result<Vec<UsagePoint>> {
        let mut query = Vec::new();
        if from_ms <= to_ms {
            // The API takes full seconds, so the range is a little larger.
            let seconds = |at_ms: i64| at_ms.max(0).div_euclid(1000).to_string();
            query.push(("start", seconds(from_ms)));
            if to_ms < MAX_TIME_MS {
                query.push(("end", seconds(to_ms)));
            }
        }
        let all = self.metrics(Verb::UsageHistory, id, &query).await?;
        let mut points: Vec<_> = all.iter().map(convert::point).collect();
        points.retain(|point| from_ms <= point.at_ms && point.at_ms <= to_ms);
        points.sort_by_key(|point| point.at_ms);
        Ok(points)
    }
}

/// The year 9999, the latest time of the API.
const MAX_TIME_MS: i64 = 253_402_300_799_000;

impl E2b {
    /// Pauses a sandbox; with `memory` false, its memory is dropped.
    async fn pause_sandbox(&self, verb: Verb, id: &str, memory: Option<bool>) -> Result<()> {
        let path = ["sandboxes", id, "pause"];
        let request = Pause { memory };
        let answer = self.api.ask(verb, Method::POST, &path, Some(&request));
        match answer.await {
            // It is paused already; the caller inspects it next.
            Err(error) if error.kind == Conflict => Ok(()),
            other => other.map(drop),
        }
    }

    async fn metrics(&self, verb: Verb, id: &str, query: &[(&str, String)]) -> Result<Vec<Metric>> {
        if !convert::is_id(id) {
            return Err(error::no_instance());
        }
        self.check_owned(verb, id).await?;
        let path = ["sandboxes", id, "metrics"];
        let answer = self.api.query(verb, Method::GET, &path, query, NO_BODY);
        match answer.await {
            Err(error) if error.kind == NotFound => {
                self.cache.forget(id);
                Err(error::no_instance())
            }
            other => other?.read(),
        }
    }
}

fn conflict(state: &str) -> ProviderError {
    ProviderError::new(Conflict, format!("the sandbox {state} instead"))
}
