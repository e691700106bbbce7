//! The provider's calls.

use async_trait::async_trait;
use http::Method;
use sandyard_agent_client::AgentClient;
use sandyard_core::network::NetworkGrant;
use sandyard_provider::{
    AgentAddress, ArchiveReader, Change, Instance, InstanceSpec, Instances, Provider,
    ProviderError, ProviderErrorKind, ProviderInfo, Ready, Result, TemplateInfo, Templates, Usage,
    UsageReports, Verb, Volumes,
};
use serde_json::json;

use super::error::{absent, conflict, timed_out, unsupported};
use super::model::{Page, Sandbox, State};
use super::toolbox::Toolbox;
use super::{Daytona, VM_CLASS, convert, lifecycle, network};

/// Why a sandbox that is not a virtual machine cannot be paused.
const NO_PAUSE: &str = "be paused with their memory, unless they are of a class that can";

impl Daytona {
    /// Bounds a call in time. Its work may continue.
    async fn within<T>(&self, verb: Verb, work: impl Future<Output = Result<T>>) -> Result<T> {
        let timeouts = self.shared.timeouts;
        let timeout = match verb {
            // A create that could not be finished is undone.
            Verb::Create => timeouts.create + timeouts.quick,
            // It may have been archived; other sandboxes have a shorter timeout inside.
            Verb::Start => lifecycle::restore_timeout(&timeouts),
            // These wait until Daytona has finished.
            Verb::Stop | Verb::Delete | Verb::Pause | Verb::Resume | Verb::Agent => timeouts.create,
            verb => timeouts.of(verb),
        };
        let done = tokio::time::timeout(timeout, work).await;
        done.unwrap_or_else(|_| Err(timed_out(verb.as_str(), timeout)))
    }
}

#[async_trait]
impl Provider for Daytona {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    /// Sends a request that needs the key, so that a wrong key is noticed.
    async fn check_health(&self) -> Result<()> {
        self.within(Verb::CheckHealth, async {
            let request = self.shared.api.to(Method::GET, &["sandbox"]);
            let request = request.query(&[("limit", "1")]);
            let _: Page<Sandbox> = self.shared.api.ask("health", request).await?;
            Ok(())
        })
        .await
    }
}

#[async_trait]
impl Instances for Daytona {
    async fn create(&self, spec: &InstanceSpec) -> Result<Instance> {
        self.check(spec)?;
        self.within(Verb::Create, self.shared.create(spec)).await
    }

    async fn fork(&self, _id: &str, _spec: &InstanceSpec) -> Result<Instance> {
        Err(unsupported("be forked"))
    }

    async fn inspect(&self, id: &str) -> Result<Option<Instance>> {
        let found = self.within(Verb::Inspect, self.shared.find_own(id)).await?;
        Ok(found.map(|sandbox| self.shared.instance(sandbox)))
    }

    async fn list(&self) -> Result<Vec<Instance>> {
        // Each page has its own timeout.
        let (all, now_ms) = self.shared.list().await?;
        self.shared.keep_alive(&all, now_ms);
        let instance = |sandbox| self.shared.instance(sandbox);
        Ok(all.into_iter().map(instance).collect())
    }

    async fn pause(&self, id: &str) -> Result<Instance> {
        self.require(self.info.capabilities.can_pause, NO_PAUSE)?;
        self.within(Verb::Pause, async {
            let mut sandbox = self.shared.find_settled(id, "pause").await?;
            // Its own class counts, not that of the default snapshot.
            let class = sandbox.sandbox_class.as_deref().unwrap_or(VM_CLASS);
            self.require(class == VM_CLASS, NO_PAUSE)?;
            match sandbox.state {
                State::Paused => {}
                State::Started => {
                    self.shared.change_state(id, "pause").await?;
                    sandbox = self.shared.find_own(id).await?.ok_or_else(absent)?;
                    let is_paused = |state| state == State::Paused;
                    sandbox = self.shared.settle(sandbox, "pause", is_paused).await?;
                }
                _ => return Err(conflict("the sandbox does not run")),
            }
            Ok(self.shared.instance(sandbox))
        })
        .await
    }

    async fn resume(&self, id: &str) -> Result<Instance> {
        self.require(self.info.capabilities.can_pause, NO_PAUSE)?;
        self.within(Verb::Resume, async {
            let mut sandbox = self.shared.find_settled(id, "resume").await?;
            match sandbox.state {
                State::Started => {}
                State::Paused => {
                    self.shared.change_state(id, "start").await?;
                    sandbox = self.shared.find_own(id).await?.ok_or_else(absent)?;
                    let is_started = |state| state == State::Started;
                    sandbox = self.shared.settle(sandbox, "resume", is_started).await?;
                }
                _ => return Err(conflict("the sandbox is stopped, not paused")),
            }
            Ok(self.shared.instance(sandbox))
        })
        .await
    }

    async fn stop(&self, id: &str) -> Result<Instance> {
        self.within(Verb::Stop, self.shared.stop(id)).await
    }

    async fn start(&self, id: &str) -> Result<Instance> {
        self.within(Verb::Start, self.shared.start(id)).await
    }

    async fn delete(&self, id: &str) -> Result<()> {
        self.within(Verb::Delete, self.shared.delete(id)).await
    }

    async fn diff(&self, _id: &str) -> Result<Vec<Change>> {
        Err(unsupported("list their changed files"))
    }

    async fn agent(&self, instance: &AgentAddress) -> Result<AgentClient> {
        self.within(Verb::Agent, self.shared.agent(instance)).await
    }

    async fn set_network(&self, id: &str, grant: &NetworkGrant) -> Result<Vec<String>> {
        self.within(Verb::SetNetwork, async {
            self.shared.find_own(id).await?.ok_or_else(absent)?;
            let (network, limitations) =
                network::translate(&grant.policy, !grant.secrets.is_empty());
            let request = self
                .shared
                .api
                .to(Method::POST, &["sandbox", id, "network-settings"]);
            self.shared
                .api
                .send_only("network", request.json(&json!(network)))
                .await?;
            Ok(limitations)
        })
        .await
    }
}

#[async_trait]
impl Templates for Daytona {
    async fn templates(&self) -> Result<Vec<TemplateInfo>> {
        // Each page has its own timeout.
        self.shared.templates().await
    }

    async fn snapshot(&self, id: &str, name: &str) -> Result<TemplateInfo> {
        self.within(Verb::Snapshot, self.shared.snapshot(id, name))
            .await
    }

    async fn import_template(&self, _name: &str, _archive: ArchiveReader) -> Result<TemplateInfo> {
        Err(unsupported(
            "start from imported archives: create a snapshot at Daytona",
        ))
    }

    async fn remove_template(&self, name: &str) -> Result<()> {
        let removing = self.shared.remove_template(name);
        self.within(Verb::RemoveTemplate, removing).await
    }

    /// Daytona manages its own pool.
    async fn keep_ready(&self, _pool: &[Ready]) -> Result<()> {
        Ok(())
    }
}

impl Volumes for Daytona {}

#[async_trait]
impl UsageReports for Daytona {
    async fn usage(&self, id: &str) -> Result<Usage> {
        self.within(Verb::Usage, async {
            let sandbox = self.shared.find_own(id).await?.ok_or_else(absent)?;
            if sandbox.state != State::Started {
                return Ok(Usage::default());
            }
            let toolbox = Toolbox::of(&self.shared.api, &sandbox).await?;
            match toolbox.metrics().await {
                Ok(metrics) => Ok(convert::usage(&metrics)),
                // An older daemon does not report metrics, and a sandbox that is being stopped or paused does not either.
                Err(error)
                    if matches!(
                        error.kind,
                        ProviderErrorKind::NotFound
                            | ProviderErrorKind::Invalid
                            | ProviderErrorKind::Conflict
                            | ProviderErrorKind::Unsupported
                    ) =>
                {
                    Ok(Usage::default())
                }
                Err(error) => Err(error),
            }
        })
        .await
    }
}

impl Daytona {
    fn require(&self, can: bool, what: &str) -> Result<()> {
        can.then_some(()).ok_or_else(|| unsupported(what))
    }

    /// Refuses invalid specs before any request.
    fn check(&self, spec: &InstanceSpec) -> Result<()> {
        let invalid =
            |message: String| Err(ProviderError::new(ProviderErrorKind::Invalid, message));
        if !spec.mounts.is_empty() {
            return Err(unsupported("mount volumes of this server"));
        }
        if let Err(error) = spec.limits.check(&self.info.max_limits) {
            return invalid(error.to_string());
        }
        for (name, value) in &spec.env {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return invalid(format!("`{}` is not a valid variable", name.escape_debug()));
            }
        }
        Ok(())
    }
}
