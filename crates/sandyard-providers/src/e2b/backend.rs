//! The calls, each a request or two to the API.

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

use super::api::NOTHING;
use super::model::{Metric, Pause, Sandbox};
use super::templates::no_import;
use super::temporary_snapshots::TemporarySnapshot;
use super::{E2b, convert, error, network};

/// Sandboxes that are looked at one by one at once.
const AT_ONCE: usize = 8;

#[async_trait]
impl Provider for E2b {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    async fn check_health(&self) -> Result<()> {
        let ours = convert::wanted(convert::INSTALLATION, &self.installation);
        let query = [("metadata", ours), ("limit", "1".to_owned())];
        let path = ["v2", "sandboxes"];
        let verb = Verb::CheckHealth;
        let asked = self.api.query(verb, Method::GET, &path, &query, NOTHING);
        asked.await?.read::<Vec<Sandbox>>().map(drop)
    }
}

#[async_trait]
impl Instances for E2b {
    async fn create(&self, spec: &InstanceSpec) -> Result<Instance> {
        convert::check(spec)?;
        let template = &spec.template;
        let source = self.source(template, spec.is_restricted).await?;
        self.make(Verb::Create, spec, &source, template).await
    }

    /// By a snapshot that goes again: a copy that E2B makes by itself would carry the marks of what it was made from.
    async fn fork(&self, id: &str, spec: &InstanceSpec) -> Result<Instance> {
        let verb = Verb::Fork;
        convert::check(spec)?;
        let found = self.own(verb, id).await?;
        let template = self.instance(&found).template;
        let kept = self.keep_files(verb, id, &self.passing.next()).await?;
        let source = kept.snapshot_id.clone();
        let _passing = TemporarySnapshot {
            api: self.api.clone(),
            snapshot: Some(kept),
        };
        self.make(verb, spec, &source, &template).await
    }

    async fn inspect(&self, id: &str) -> Result<Option<Instance>> {
        let found = self.look(Verb::Inspect, id).await?;
        Ok(found.map(|found| self.instance(&found)))
    }

    async fn list(&self) -> Result<Vec<Instance>> {
        let installation = &self.installation;
        let listed = self
            .api
            .marked(Verb::List, convert::INSTALLATION, installation);
        let before = self.known.ids();
        let (all, now_ms) = listed.await?;
        self.known.forget_gone(before, &all);
        self.keeper.put_off(&self.api, &all, now_ms);
        self.passing.sweep(&self.api, now_ms);
        let failures = AtomicUsize::new(0);
        let looks = futures_util::stream::iter(all).map(|one| self.listed(one, &failures));
        let found: Vec<_> = looks.buffered(AT_ONCE).collect().await;
        Ok(found.into_iter().flatten().collect())
    }

    async fn pause(&self, id: &str) -> Result<Instance> {
        let verb = Verb::Pause;
        let found = self.own(verb, id).await?;
        match convert::state(&found) {
            SandboxState::Paused => return Ok(self.instance(&found)),
            SandboxState::Stopped => return Err(conflict("is stopped: start it")),
            _ => self.rest(verb, id, None).await?,
        }
        self.settled(verb, id).await
    }

    async fn resume(&self, id: &str) -> Result<Instance> {
        let verb = Verb::Resume;
        let found = self.own(verb, id).await?;
        match convert::state(&found) {
            SandboxState::Running => return Ok(self.instance(&found)),
            SandboxState::Stopped => return Err(conflict("is stopped: start it")),
            _ => self.wake(verb, id, None).await?,
        }
        self.settled(verb, id).await
    }

    async fn stop(&self, id: &str) -> Result<Instance> {
        let verb = Verb::Stop;
        let found = self.own(verb, id).await?;
        match convert::state(&found) {
            SandboxState::Stopped => return Ok(self.instance(&found)),
            // What rests with its memory can only let go of it by starting anew.
            SandboxState::Paused => self.wake(verb, id, Some(false)).await?,
            _ => {}
        }
        self.rest(verb, id, Some(false)).await?;
        let stopped = self.settled(verb, id).await?;
        if stopped.state != SandboxState::Stopped {
            return Err(error::unsupported(
                "stop a sandbox here: it is paused with its memory kept",
            ));
        }
        Ok(stopped)
    }

    async fn start(&self, id: &str) -> Result<Instance> {
        let verb = Verb::Start;
        let found = self.own(verb, id).await?;
        match convert::state(&found) {
            SandboxState::Running => return Ok(self.instance(&found)),
            SandboxState::Paused => return Err(conflict("is paused: resume it")),
            _ => self.wake(verb, id, None).await?,
        }
        // Its processes are new.
        self.known.tools(id).forget();
        self.settled(verb, id).await
    }

    async fn delete(&self, id: &str) -> Result<()> {
        let verb = Verb::Delete;
        if self.known.keys(id).is_none() && self.look(verb, id).await?.is_none() {
            return Ok(());
        }
        let path = ["sandboxes", id];
        match self.api.ask(verb, Method::DELETE, &path, NOTHING).await {
            Err(error) if error.kind != NotFound => return Err(error),
            _ => self.known.forget(id),
        }
        Ok(())
    }

    async fn diff(&self, _id: &str) -> Result<Vec<Change>> {
        Err(error::unsupported("tell what changed since the template"))
    }

    async fn agent(&self, instance: &AgentAddress) -> Result<AgentClient> {
        self.client(&instance.id, &instance.access_token).await
    }

    async fn set_network(&self, id: &str, grant: &NetworkGrant) -> Result<Vec<String>> {
        let verb = Verb::SetNetwork;
        if !convert::is_id(id) {
            return Err(error::no_instance());
        }
        self.check_own(verb, id).await?;
        let (network, mut limitations) = network::network(&grant.policy);
        network::limitations_of_secrets(grant, &mut limitations);
        let path = ["sandboxes", id, "network"];
        let asked = self.api.ask(verb, Method::PUT, &path, Some(&network)).await;
        match asked {
            // What rests reaches nothing, and is given its way out again when it wakes.
            Err(error) if matches!(error.kind, NotFound | Conflict) => {
                let found = self.own(verb, id).await?;
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
        self.own(verb, id).await?;
        self.check_free(name).await?;
        self.keep_files(verb, id, &self.marked(name)).await?;
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

    /// Nothing is kept ready: E2B starts its sandboxes from memory anyway.
    async fn keep_ready(&self, _wanted: &[Ready]) -> Result<()> {
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
            // Whole seconds there, so a little more than asked for.
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

/// The year 9999: as far as times go there.
const MAX_TIME_MS: i64 = 253_402_300_799_000;

impl E2b {
    /// Puts a sandbox to rest.
    async fn rest(&self, verb: Verb, id: &str, memory: Option<bool>) -> Result<()> {
        let path = ["sandboxes", id, "pause"];
        let how = Pause { memory };
        let asked = self.api.ask(verb, Method::POST, &path, Some(&how));
        match asked.await {
            // It rests already; what it is then is looked at afterwards.
            Err(error) if error.kind == Conflict => Ok(()),
            other => other.map(drop),
        }
    }

    async fn metrics(&self, verb: Verb, id: &str, query: &[(&str, String)]) -> Result<Vec<Metric>> {
        if !convert::is_id(id) {
            return Err(error::no_instance());
        }
        self.check_own(verb, id).await?;
        let path = ["sandboxes", id, "metrics"];
        let asked = self.api.query(verb, Method::GET, &path, query, NOTHING);
        match asked.await {
            Err(error) if error.kind == NotFound => {
                self.known.forget(id);
                Err(error::no_instance())
            }
            other => other?.read(),
        }
    }
}

fn conflict(why: &str) -> ProviderError {
    ProviderError::new(Conflict, format!("the sandbox {why} instead"))
}
