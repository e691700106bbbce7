//! Creates a container; if a step fails, everything is removed.

use std::sync::Arc;
use std::time::Duration;

use bollard::body_full;
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{
    CreateContainerOptions, StartContainerOptions, UploadToContainerOptions,
};
use bytes::Bytes;
use sandyard_agent_client::{AgentClient, Endpoint};
use sandyard_core::SandboxState;
use sandyard_provider::{InstanceSpec, ProviderErrorKind, Verb};

use super::body::WORKSPACE_PATH;
use super::convert::Container;
use super::daemon::Shared;
use super::error::{DaemonResult, Fault, fault, invalid};
use super::image::Image;
use super::labels::{ATTEMPT, InstanceLabels, WORKSPACE, labelled};
use super::link::Links;
use super::tar;
use crate::maybe_created::maybe_created;

/// Timeout of one request to an agent that may not run yet.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest pause between two attempts to remove a failed container.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Removes what an attempt created, unless it succeeded.
struct Undo {
    shared: Arc<Shared>,
    labels: InstanceLabels,
    is_done: bool,
}

impl Drop for Undo {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let (shared, labels) = (self.shared.clone(), self.labels.clone());
        // The caller gave up, so nothing waits for this.
        tokio::spawn(async move { shared.undo_with_retries(&labels).await });
    }
}

impl Shared {
    /// Creates a container of an image; returns when its agent answers.
    pub(super) async fn create_container(
        self: &Arc<Self>,
        links: &Links,
        spec: &InstanceSpec,
        image: &Image,
    ) -> DaemonResult<Container> {
        let labels = InstanceLabels::new(&spec.sandbox_id, &self.config.installation);
        let plan = self.plan(spec, image, &labels).await?;
        let is_writable_by_all = plan.labels.contains_key(WORKSPACE) && !image.is_snapshot;
        let body = plan.body(&self.daemon_info);
        let mut undo = Undo {
            shared: self.clone(),
            labels: labels.clone(),
            is_done: false,
        };
        let project = spec.project.as_deref();
        let created = self
            .create_and_start(links, &labels, body, is_writable_by_all, project)
            .await;
        let fault = match created {
            Ok(container) => {
                undo.is_done = true;
                return Ok(container);
            }
            Err(fault) => fault,
        };
        // The call may time out during this; then dropping `undo` starts again.
        match self.undo(&labels).await {
            Ok(()) => {
                undo.is_done = true;
                Err(fault)
            }
            Err(failure) => {
                tracing::warn!(sandbox.id = %labels.sandbox_id, "Failed to remove a container that did not start: {}", failure.text());
                Err(maybe_created(fault.into_error(Verb::Create)).into())
            }
        }
    }

    async fn create_and_start(
        &self,
        links: &Links,
        labels: &InstanceLabels,
        body: ContainerCreateBody,
        is_writable_by_all: bool,
        project: Option<&str>,
    ) -> DaemonResult<Container> {
        let id = self.create_once(labels, body, project).await?;
        if is_writable_by_all {
            self.make_writable(&id, WORKSPACE_PATH).await?;
        }
        let created = self.get(&id).await?;
        self.require_plain_targets(&created).await?;
        self.start_and_wait(links, &id).await?;
        self.get(&id).await
    }

    /// Creates a container; if the answer is lost, checks whether it exists.
    async fn create_once(
        &self,
        labels: &InstanceLabels,
        body: ContainerCreateBody,
        project: Option<&str>,
    ) -> DaemonResult<String> {
        let ask = || async {
            let options = CreateContainerOptions {
                name: Some(labels.name.clone()),
                ..CreateContainerOptions::default()
            };
            let created = self.daemon.create_container(Some(options), body.clone());
            Ok::<_, Fault>(created.await?.id)
        };
        match ask().await {
            // The daemon's message contains a path of its host, which is not for users.
            Err(fault) if fault.text().contains("bind source path does not exist") => {
                tracing::warn!(sandbox.id = %labels.sandbox_id, "A project has no folder: {}", fault.text());
                let project = project.unwrap_or_default();
                Err(invalid(format!(
                    "project `{project}` has no folder on Docker's host"
                )))
            }
            Err(fault) if fault.is_lost() && self.is_back().await => {
                tracing::warn!(sandbox.id = %labels.sandbox_id, "Lost the connection to Docker during a create");
                match self.created_by(labels).await?.pop() {
                    Some(id) => Ok(id),
                    None => ask().await,
                }
            }
            other => other,
        }
    }

    /// The containers that this attempt created.
    async fn created_by(&self, labels: &InstanceLabels) -> DaemonResult<Vec<String>> {
        let attempt = labelled(ATTEMPT, Some(&labels.attempt));
        let containers = self
            .containers(&[self.installation_label(), attempt])
            .await?;
        Ok(containers
            .into_iter()
            .filter_map(|container| container.id)
            .collect())
    }

    /// Removes everything that an attempt created.
    async fn undo(&self, labels: &InstanceLabels) -> DaemonResult {
        let (created, workspace) = (
            self.retry_once(|| self.created_by(labels)).await?,
            labels.workspace(),
        );
        if !created.is_empty() {
            self.mark_deleted(&workspace).await?;
        }
        for id in created {
            self.remove_container(&id).await?;
        }
        self.remove_volume(&workspace).await?;
        self.unmark(&workspace).await
    }

    /// The same with retries while the daemon does not answer: no one else knows that the container is not needed.
    async fn undo_with_retries(&self, labels: &InstanceLabels) {
        let undo = async {
            let mut pause = Duration::from_secs(1);
            // An attempt without an answer must not be the last.
            while let Err(problem) = self.undo_with_timeout(labels).await {
                tracing::debug!(sandbox.id = %labels.sandbox_id, "Failed to remove a failed container; trying again later: {problem}");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(MAX_PAUSE);
            }
        };
        let _ = tokio::time::timeout(self.config.timeouts.copy, undo).await;
    }

    async fn undo_with_timeout(&self, labels: &InstanceLabels) -> Result<(), String> {
        let done = tokio::time::timeout(self.config.timeouts.create, self.undo(labels)).await;
        let done = done.map_err(|_| "it took too long".to_owned())?;
        done.map_err(|fault| fault.text())
    }

    /// Makes a folder of a container that does not run yet writable for all users: their ids are not known yet.
    pub(super) async fn make_writable(&self, id: &str, path: &str) -> DaemonResult {
        let name = format!("{}/", path.trim_start_matches('/'));
        let archive = [tar::folder(&name, 0o777), tar::END.to_vec()].concat();
        let options = UploadToContainerOptions {
            path: "/".to_owned(),
            ..UploadToContainerOptions::default()
        };
        let body = body_full(Bytes::from(archive));
        Ok(self
            .daemon
            .upload_to_container(id, Some(options), body)
            .await?)
    }

    /// Starts a container; returns when its agent answers.
    pub(super) async fn start_and_wait(&self, links: &Links, id: &str) -> DaemonResult {
        let output = self.capture_output(id).await;
        let start = || async {
            let options = None::<StartContainerOptions>;
            Ok::<_, Fault>(self.daemon.start_container(id, options).await?)
        };
        self.retry_once(start).await?;
        let agent = AgentClient::new(Endpoint::Custom(links.dialler(id)));
        loop {
            let answer = tokio::time::timeout(HEALTH_TIMEOUT, agent.health()).await;
            let problem = match answer {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "it does not answer".to_owned(),
            };
            tracing::debug!(
                container.id = id,
                "The agent does not answer yet: {problem}"
            );
            let now = self.retry_once(|| self.find(id)).await?;
            let is_up = now
                .as_ref()
                .is_some_and(|now| now.instance.state == SandboxState::Running);
            if !is_up {
                links.forget(id);
                let reason = now.and_then(|now| now.instance.reason);
                return Err(did_not_start(reason, &output.text()));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn did_not_start(reason: Option<String>, output: &str) -> Fault {
    let mut message = "the container exited before its agent answered".to_owned();
    for more in reason.as_deref().into_iter().chain([output]) {
        if !more.is_empty() {
            message.push_str(": ");
            message.push_str(more);
        }
    }
    fault(ProviderErrorKind::Failed, message)
}
