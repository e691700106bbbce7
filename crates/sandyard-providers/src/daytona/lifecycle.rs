//! From create to delete: requests to the API, and waiting for their effect.

use std::time::Duration;

use http::Method;
use sandyard_core::Clock;
use sandyard_provider::{Instance, InstanceSpec, ProviderError, ProviderErrorKind, Result};

use super::Shared;
use super::api::CREATE;
use super::backoff::Backoff;
use super::convert;
use super::error::{absent, conflict};
use super::model::{CreateSandbox, Sandbox, State};
use super::network;
use super::program::Settings;
use super::snapshots::Source;
use crate::CallTimeouts;
use crate::maybe_created::maybe_created;

impl Shared {
    /// A sandbox by id; `None` if it does not exist or belongs to another installation.
    pub(super) async fn find_own(&self, id: &str) -> Result<Option<Sandbox>> {
        // The API also accepts names here, which users choose, so other texts are not sent.
        let is_id = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if id.is_empty() || id.len() > 100 || !id.chars().all(is_id) {
            return Ok(None);
        }
        let found = self.fetch(id).await?;
        Ok(found.filter(|sandbox| sandbox.id == id && self.owner.is_owned(sandbox)))
    }

    /// A sandbox by id or name, whatever its owner.
    async fn fetch(&self, id_or_name: &str) -> Result<Option<Sandbox>> {
        let request = self.api.to(Method::GET, &["sandbox", id_or_name]);
        match self.api.ask::<Sandbox>("inspect", request).await {
            Ok(sandbox) => Ok(Some(sandbox)),
            Err(error) if error.kind == ProviderErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn instance(&self, sandbox: Sandbox) -> Instance {
        let started_ms = self.cache.of(&sandbox.id).started_ms();
        convert::instance(sandbox, self.pids, started_ms)
    }

    /// Creates a sandbox with a running agent.
    pub(super) async fn create(&self, spec: &InstanceSpec) -> Result<Instance> {
        let attempt = self.next_attempt();
        let source = self.source(&spec.template, spec.is_restricted).await?;
        let created = self.create_sandbox(spec, &source, &attempt).await?;
        let id = created.id.clone();
        match self.install_agent(spec, created).await {
            Ok(sandbox) => Ok(self.instance(sandbox)),
            Err(error) => {
                // A sandbox that cannot be used is deleted. If that fails, too, its labels identify it.
                if let Err(failure) = self.delete(&id).await {
                    tracing::warn!(instance.id = id, error = %failure, "Failed to delete a sandbox at Daytona whose create failed");
                    return Err(maybe_created(error));
                }
                Err(error)
            }
        }
    }

    /// Requests a sandbox. Its name is unique, so a lost answer never leads to a second sandbox.
    async fn create_sandbox(
        &self,
        spec: &InstanceSpec,
        source: &Source,
        attempt: &str,
    ) -> Result<Sandbox> {
        let name = format!("sandyard-{}-{attempt}", spec.sandbox_id);
        let labels = convert::labels(spec, &self.owner, attempt);
        let (network, _) = network::translate(&spec.network, false);
        // When this server is down, sandboxes that can keep their memory are paused.
        let is_paused = source.is_vm && self.is_vm;
        let minutes = self.auto_stop_minutes;
        let request = CreateSandbox {
            name: &name,
            snapshot: &source.name,
            env: &spec.env,
            labels: &labels,
            public: false,
            target: self.target.as_deref(),
            auto_stop_interval: if is_paused { 0 } else { minutes },
            auto_pause_interval: is_paused.then_some(minutes),
            auto_archive_interval: self.auto_archive_minutes,
            auto_delete_interval: -1,
            network: network.without_empty_lists(),
        };
        let ask = || async {
            let call = self.api.to(Method::POST, &["sandbox"]);
            let call = call.timeout(self.timeouts.create).json(&request);
            self.api.ask::<Sandbox>(CREATE, call).await
        };
        let error = match ask().await {
            Ok(sandbox) => return Ok(sandbox),
            Err(error) => error,
        };
        match error.kind {
            ProviderErrorKind::Unavailable
            | ProviderErrorKind::TimedOut
            | ProviderErrorKind::Failed => {
                tracing::warn!(sandbox.id = %spec.sandbox_id, %error, "Lost Daytona's answer to a create");
                let found = self.find(&name, attempt).await;
                found.map_err(maybe_created)?.ok_or(error)
            }
            // Only if the template does not exist is that the reason.
            ProviderErrorKind::NotFound | ProviderErrorKind::Invalid => {
                match self.snapshot_by_name(&source.name).await {
                    Ok(None) => {
                        let message =
                            format!("there is no snapshot `{}` at Daytona", spec.template);
                        Err(ProviderError::new(ProviderErrorKind::NotFound, message))
                    }
                    _ => Err(error),
                }
            }
            _ => Err(error),
        }
    }

    /// Finds the sandbox that this attempt created.
    async fn find(&self, name: &str, attempt: &str) -> Result<Option<Sandbox>> {
        let is_created = |sandbox: &Sandbox| {
            let label = sandbox.labels.get(convert::ATTEMPT).map(String::as_str);
            self.owner.is_owned(sandbox) && label == Some(attempt)
        };
        Ok(self.fetch(name).await?.filter(is_created))
    }

    /// Waits until a new sandbox runs, and installs the agent.
    async fn install_agent(&self, spec: &InstanceSpec, created: Sandbox) -> Result<Sandbox> {
        let mut sandbox = self
            .settle(created, "create", |state| state == State::Started)
            .await?;
        self.cache
            .of(&sandbox.id)
            .has_started(Clock::System.now_ms());
        let settings = Settings {
            token: &spec.access_token,
            env: &spec.env,
        };
        self.install(&sandbox, &settings).await?;
        self.start_first_agent(&sandbox).await?;
        // A sandbox without this label was not finished.
        let labels = &mut sandbox.labels;
        labels.insert(convert::READY.to_owned(), "yes".to_owned());
        let path = ["sandbox", &sandbox.id, "labels"];
        let request = self.api.to(Method::PUT, &path);
        let request = request.json(&serde_json::json!({ "labels": labels }));
        self.api.send_only("labels", request).await?;
        Ok(sandbox)
    }

    /// Waits until a sandbox reaches a state. Lost answers do not matter meanwhile.
    pub(super) async fn settle(
        &self,
        mut sandbox: Sandbox,
        what: &str,
        is_reached: impl Fn(State) -> bool,
    ) -> Result<Sandbox> {
        let mut pauses = Backoff::new(match sandbox.state {
            State::Archived | State::Restoring => restore_timeout(&self.timeouts),
            _ => self.timeouts.create,
        });
        loop {
            match sandbox.state {
                state if is_reached(state) => return Ok(sandbox),
                State::Error | State::BuildFailed => {
                    let reason = convert::failure(&sandbox);
                    let message = format!("the sandbox failed at Daytona: {reason}");
                    return Err(ProviderError::new(ProviderErrorKind::Failed, message));
                }
                State::Destroying | State::Destroyed => return Err(absent()),
                _ => {}
            }
            pauses.next(what).await?;
            match self.find_own(&sandbox.id).await {
                Ok(found) => sandbox = found.ok_or_else(absent)?,
                Err(error) if error.retry == sandyard_provider::Retry::Later => {
                    pauses.next(what).await.map_err(|_| error)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits until no transition is in progress.
    pub(super) async fn find_settled(&self, id: &str, what: &str) -> Result<Sandbox> {
        let sandbox = self.find_own(id).await?.ok_or_else(absent)?;
        let is_settled = |state| {
            matches!(
                state,
                State::Started
                    | State::Stopped
                    | State::Archived
                    | State::Paused
                    | State::Error
                    | State::BuildFailed
            )
        };
        self.settle(sandbox, what, is_settled).await
    }

    /// Requests a change of state.
    pub(super) async fn change_state(&self, id: &str, verb: &str) -> Result<()> {
        let request = self.api.to(Method::POST, &["sandbox", id, verb]);
        self.api.send_only(verb, request).await
    }

    /// Starts a sandbox from its files, with its agent.
    pub(super) async fn start(&self, id: &str) -> Result<Instance> {
        let sandbox = self.find_settled(id, "start").await?;
        let verb = match sandbox.state {
            State::Started => None,
            State::Paused => return Err(conflict("the sandbox is paused, not stopped")),
            State::Error if sandbox.recoverable == Some(true) => Some("recover"),
            State::Error | State::BuildFailed => {
                let reason = convert::failure(&sandbox);
                return Err(conflict(format!("the sandbox failed at Daytona: {reason}")));
            }
            _ => Some("start"),
        };
        let mut sandbox = sandbox;
        if let Some(verb) = verb {
            self.change_state(id, verb).await?;
            sandbox = self.find_own(id).await?.ok_or_else(absent)?;
            sandbox = self
                .settle(sandbox, "start", |state| state == State::Started)
                .await?;
            self.cache.of(id).has_started(Clock::System.now_ms());
        }
        self.ensure_agent(&sandbox).await?;
        Ok(self.instance(sandbox))
    }

    /// Ends its processes.
    pub(super) async fn stop(&self, id: &str) -> Result<Instance> {
        let is_stopped =
            |state| matches!(state, State::Stopped | State::Archived | State::Archiving);
        let mut sandbox = self.find_settled(id, "stop").await?;
        if !is_stopped(sandbox.state) {
            self.change_state(id, "stop").await?;
            self.cache.of(id).forget_links();
            sandbox = self.find_own(id).await?.ok_or_else(absent)?;
            sandbox = self.settle(sandbox, "stop", is_stopped).await?;
        }
        Ok(self.instance(sandbox))
    }

    /// Deletes a sandbox of this installation, and waits until it is gone.
    pub(super) async fn delete(&self, id: &str) -> Result<()> {
        let mut pauses = Backoff::new(self.timeouts.create);
        let mut is_requested = false;
        while let Some(sandbox) = self.find_own(id).await? {
            if !is_requested && sandbox.state != State::Destroying {
                let request = self.api.to(Method::DELETE, &["sandbox", id]);
                match self.api.send_only("delete", request).await {
                    Ok(()) => is_requested = true,
                    Err(error) if error.kind == ProviderErrorKind::NotFound => break,
                    // Another transition is in progress.
                    Err(error) if error.kind == ProviderErrorKind::Conflict => {
                        pauses.next("delete").await.map_err(|_| error)?;
                    }
                    Err(error) => return Err(error),
                }
                continue;
            }
            pauses.next("delete").await?;
        }
        self.cache.forget(id);
        Ok(())
    }
}

/// Timeout of starting an archived sandbox, whose files must be restored first. Shorter than the caller's timeout.
pub(super) fn restore_timeout(timeouts: &CallTimeouts) -> Duration {
    timeouts.create * 5 / 2
}
