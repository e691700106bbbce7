//! From create to delete: what is asked of the API, and waiting until it is so.

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
    /// One sandbox by id; none: there is none, or it is not ours.
    pub(super) async fn own(&self, id: &str) -> Result<Option<Sandbox>> {
        // Nothing else names one there, and a name of somebody's choice must not stand for an id.
        let is_id = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if id.is_empty() || id.len() > 100 || !id.chars().all(is_id) {
            return Ok(None);
        }
        let found = self.fetch(id).await?;
        Ok(found.filter(|one| one.id == id && self.whose.is_of(one)))
    }

    /// One sandbox by id or name, whosever it is.
    async fn fetch(&self, id_or_name: &str) -> Result<Option<Sandbox>> {
        let asked = self.api.to(Method::GET, &["sandbox", id_or_name]);
        match self.api.ask::<Sandbox>("inspect", asked).await {
            Ok(sandbox) => Ok(Some(sandbox)),
            Err(error) if error.kind == ProviderErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn instance(&self, sandbox: Sandbox) -> Instance {
        let started_ms = self.known.of(&sandbox.id).started_ms();
        convert::instance(sandbox, self.pids, started_ms)
    }

    /// Makes a sandbox with our agent running in it.
    pub(super) async fn create(&self, spec: &InstanceSpec) -> Result<Instance> {
        let attempt = self.next_attempt();
        let source = self.source(&spec.template, spec.is_restricted).await?;
        let made = self.make(spec, &source, &attempt).await?;
        let id = made.id.clone();
        match self.furnish(spec, made).await {
            Ok(sandbox) => Ok(self.instance(sandbox)),
            Err(error) => {
                // What cannot be used is not left; if this fails too, its labels tell whose it is.
                if let Err(left) = self.delete(&id).await {
                    tracing::warn!(instance.id = id, error = %left, "A sandbox at Daytona that failed is left");
                    return Err(maybe_created(error));
                }
                Err(error)
            }
        }
    }

    /// Asks for a sandbox. The name is given once only, so that a lost answer never leads to a second one.
    async fn make(&self, spec: &InstanceSpec, source: &Source, attempt: &str) -> Result<Sandbox> {
        let name = format!("sandyard-{}-{attempt}", spec.sandbox_id);
        let labels = convert::labels(spec, &self.whose, attempt);
        let (network, _) = network::translate(&spec.network, false);
        // Should this server be gone, what can keep its memory does.
        let is_paused = source.is_machine && self.is_machine;
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
            network: network.of_new(),
        };
        let ask = || async {
            let asked = self.api.to(Method::POST, &["sandbox"]);
            let asked = asked.timeout(self.timeouts.create).json(&request);
            self.api.ask::<Sandbox>(CREATE, asked).await
        };
        let error = match ask().await {
            Ok(sandbox) => return Ok(sandbox),
            Err(error) => error,
        };
        match error.kind {
            ProviderErrorKind::Unavailable
            | ProviderErrorKind::TimedOut
            | ProviderErrorKind::Failed => {
                tracing::warn!(sandbox.id = %spec.sandbox_id, %error, "Lost Daytona's answer while making a sandbox");
                let found = self.find(&name, attempt).await;
                found.map_err(maybe_created)?.ok_or(error)
            }
            // Refused for its template? Only then is it the template that is not found.
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

    /// Finds what exactly this attempt has made.
    async fn find(&self, name: &str, attempt: &str) -> Result<Option<Sandbox>> {
        let is_it = |one: &Sandbox| {
            let told = one.labels.get(convert::ATTEMPT).map(String::as_str);
            self.whose.is_of(one) && told == Some(attempt)
        };
        Ok(self.fetch(name).await?.filter(is_it))
    }

    /// Waits until a new sandbox runs, and brings our agent in.
    async fn furnish(&self, spec: &InstanceSpec, made: Sandbox) -> Result<Sandbox> {
        let mut sandbox = self
            .settle(made, "create", |state| state == State::Started)
            .await?;
        self.known
            .of(&sandbox.id)
            .has_started(Clock::System.now_ms());
        let settings = Settings {
            token: &spec.access_token,
            env: &spec.env,
        };
        self.install(&sandbox, &settings).await?;
        self.begin_agent(&sandbox).await?;
        // Whoever finds it without this knows that its maker did not get here.
        let labels = &mut sandbox.labels;
        labels.insert(convert::READY.to_owned(), "yes".to_owned());
        let path = ["sandbox", &sandbox.id, "labels"];
        let asked = self.api.to(Method::PUT, &path);
        let asked = asked.json(&serde_json::json!({ "labels": labels }));
        self.api.tell("labels", asked).await?;
        Ok(sandbox)
    }

    /// Waits until a sandbox is as wanted. Answers that get lost meanwhile do not matter.
    pub(super) async fn settle(
        &self,
        mut sandbox: Sandbox,
        what: &str,
        is_there: impl Fn(State) -> bool,
    ) -> Result<Sandbox> {
        let mut pauses = Backoff::new(match sandbox.state {
            State::Archived | State::Restoring => restoring(&self.timeouts),
            _ => self.timeouts.create,
        });
        loop {
            match sandbox.state {
                state if is_there(state) => return Ok(sandbox),
                State::Error | State::BuildFailed => {
                    let reason = convert::failure(&sandbox);
                    let message = format!("the sandbox failed at Daytona: {reason}");
                    return Err(ProviderError::new(ProviderErrorKind::Failed, message));
                }
                State::Destroying | State::Destroyed => return Err(absent()),
                _ => {}
            }
            pauses.next(what).await?;
            match self.own(&sandbox.id).await {
                Ok(found) => sandbox = found.ok_or_else(absent)?,
                Err(error) if error.retry == sandyard_provider::Retry::Later => {
                    pauses.next(what).await.map_err(|_| error)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits while something is under way.
    pub(super) async fn settled(&self, id: &str, what: &str) -> Result<Sandbox> {
        let sandbox = self.own(id).await?.ok_or_else(absent)?;
        let is_quiet = |state| {
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
        self.settle(sandbox, what, is_quiet).await
    }

    /// Asks for a change of state.
    pub(super) async fn turn(&self, id: &str, verb: &str) -> Result<()> {
        let asked = self.api.to(Method::POST, &["sandbox", id, verb]);
        self.api.tell(verb, asked).await
    }

    /// Starts it from its files, with its agent.
    pub(super) async fn start(&self, id: &str) -> Result<Instance> {
        let sandbox = self.settled(id, "start").await?;
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
            self.turn(id, verb).await?;
            sandbox = self.own(id).await?.ok_or_else(absent)?;
            sandbox = self
                .settle(sandbox, "start", |state| state == State::Started)
                .await?;
            self.known.of(id).has_started(Clock::System.now_ms());
        }
        self.ensure_agent(&sandbox).await?;
        Ok(self.instance(sandbox))
    }

    /// Ends its processes.
    pub(super) async fn stop(&self, id: &str) -> Result<Instance> {
        let is_stopped =
            |state| matches!(state, State::Stopped | State::Archived | State::Archiving);
        let mut sandbox = self.settled(id, "stop").await?;
        if !is_stopped(sandbox.state) {
            self.turn(id, "stop").await?;
            self.known.of(id).forget_links();
            sandbox = self.own(id).await?.ok_or_else(absent)?;
            sandbox = self.settle(sandbox, "stop", is_stopped).await?;
        }
        Ok(self.instance(sandbox))
    }

    /// Removes it, if it is ours, and waits until it is gone.
    pub(super) async fn delete(&self, id: &str) -> Result<()> {
        let mut pauses = Backoff::new(self.timeouts.create);
        let mut is_asked = false;
        while let Some(sandbox) = self.own(id).await? {
            if !is_asked && sandbox.state != State::Destroying {
                let asked = self.api.to(Method::DELETE, &["sandbox", id]);
                match self.api.tell("delete", asked).await {
                    Ok(()) => is_asked = true,
                    Err(error) if error.kind == ProviderErrorKind::NotFound => break,
                    // Something else is under way with it.
                    Err(error) if error.kind == ProviderErrorKind::Conflict => {
                        pauses.next("delete").await.map_err(|_| error)?;
                    }
                    Err(error) => return Err(error),
                }
                continue;
            }
            pauses.next("delete").await?;
        }
        self.known.forget(id);
        Ok(())
    }
}

/// How long it may take to start what was archived: its files have to come from elsewhere first. Still less than its caller waits.
pub(super) fn restoring(timeouts: &CallTimeouts) -> Duration {
    timeouts.create * 5 / 2
}
