//! Making a container: all of it, or nothing is left.

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
use super::error::{DaemonResult, Fault, invalid, known};
use super::image::Image;
use super::labels::{ATTEMPT, InstanceLabels, WORKSPACE, labelled};
use super::link::Links;
use super::tar;
use crate::maybe_created::maybe_created;

/// How long one question to an agent that may not be there yet may take.
const ASKED_WITHIN: Duration = Duration::from_secs(10);

/// The longest pause between two attempts to take something away.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Takes away what an attempt has made, unless it came to its end.
struct Undo {
    shared: Arc<Shared>,
    marks: InstanceLabels,
    is_done: bool,
}

impl Drop for Undo {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let (shared, marks) = (self.shared.clone(), self.marks.clone());
        // Whoever asked has given up, so nobody waits for this.
        tokio::spawn(async move { shared.undo_at_last(&marks).await });
    }
}

impl Shared {
    /// Makes a container of an image, and returns when its agent answers.
    pub(super) async fn make(
        self: &Arc<Self>,
        links: &Links,
        spec: &InstanceSpec,
        image: &Image,
    ) -> DaemonResult<Container> {
        let marks = InstanceLabels::new(&spec.sandbox_id, &self.config.installation);
        let plan = self.plan(spec, image, &marks).await?;
        let is_open_to_all = plan.labels.contains_key(WORKSPACE) && !image.is_snapshot;
        let body = plan.body(&self.place);
        let mut undo = Undo {
            shared: self.clone(),
            marks: marks.clone(),
            is_done: false,
        };
        let project = spec.project.as_deref();
        let made = self
            .bring_up(links, &marks, body, is_open_to_all, project)
            .await;
        let fault = match made {
            Ok(container) => {
                undo.is_done = true;
                return Ok(container);
            }
            Err(fault) => fault,
        };
        // The time may be over in the middle of this; then `undo` begins it anew when it is dropped.
        match self.undo(&marks).await {
            Ok(()) => {
                undo.is_done = true;
                Err(fault)
            }
            Err(left) => {
                tracing::warn!(sandbox.id = %marks.sandbox_id, "Failed to remove a container that did not start: {}", left.text());
                Err(maybe_created(fault.into_error(Verb::Create)).into())
            }
        }
    }

    async fn bring_up(
        &self,
        links: &Links,
        marks: &InstanceLabels,
        body: ContainerCreateBody,
        is_open_to_all: bool,
        project: Option<&str>,
    ) -> DaemonResult<Container> {
        let id = self.create_once(marks, body, project).await?;
        if is_open_to_all {
            self.open_up(&id, WORKSPACE_PATH).await?;
        }
        let made = self.get(&id).await?;
        self.need_plain_targets(&made).await?;
        self.start_and_wait(links, &id).await?;
        self.get(&id).await
    }

    /// Creates a container; when the answer got lost, looks whether it is there.
    async fn create_once(
        &self,
        marks: &InstanceLabels,
        body: ContainerCreateBody,
        project: Option<&str>,
    ) -> DaemonResult<String> {
        let ask = || async {
            let options = CreateContainerOptions {
                name: Some(marks.name.clone()),
                ..CreateContainerOptions::default()
            };
            let made = self.daemon.create_container(Some(options), body.clone());
            Ok::<_, Fault>(made.await?.id)
        };
        match ask().await {
            // The daemon names the folder of its host, which is nothing to whoever asks.
            Err(fault) if fault.text().contains("bind source path does not exist") => {
                tracing::warn!(sandbox.id = %marks.sandbox_id, "A project has no folder: {}", fault.text());
                let project = project.unwrap_or_default();
                Err(invalid(format!(
                    "project `{project}` has no folder on Docker's host"
                )))
            }
            Err(fault) if fault.is_lost() && self.comes_back().await => {
                tracing::warn!(sandbox.id = %marks.sandbox_id, "Lost Docker while making a container");
                match self.made_by(marks).await?.pop() {
                    Some(id) => Ok(id),
                    None => ask().await,
                }
            }
            other => other,
        }
    }

    /// What exactly this attempt has made.
    async fn made_by(&self, marks: &InstanceLabels) -> DaemonResult<Vec<String>> {
        let attempt = labelled(ATTEMPT, Some(&marks.attempt));
        let found = self.containers(&[self.ours(), attempt]).await?;
        Ok(found.into_iter().filter_map(|one| one.id).collect())
    }

    /// Removes whatever an attempt has made.
    async fn undo(&self, marks: &InstanceLabels) -> DaemonResult {
        let (made, workspace) = (self.again(|| self.made_by(marks)).await?, marks.workspace());
        if !made.is_empty() {
            self.mark_deleted(&workspace).await?;
        }
        for id in made {
            self.remove_container(&id).await?;
        }
        self.remove_volume(&workspace).await?;
        self.unmark(&workspace).await
    }

    /// The same, again and again while the daemon is not there: nobody else knows that nothing of it is wanted.
    async fn undo_at_last(&self, marks: &InstanceLabels) {
        let undo = async {
            let mut pause = Duration::from_secs(1);
            // One that is never answered must not be the last.
            while let Err(why) = self.undo_in_time(marks).await {
                tracing::debug!(sandbox.id = %marks.sandbox_id, "What was made stays for now: {why}");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        };
        let _ = tokio::time::timeout(self.config.timeouts.copy, undo).await;
    }

    async fn undo_in_time(&self, marks: &InstanceLabels) -> Result<(), String> {
        let done = tokio::time::timeout(self.config.timeouts.create, self.undo(marks)).await;
        let done = done.map_err(|_| "it takes too long".to_owned())?;
        done.map_err(|fault| fault.text())
    }

    /// Lets everybody write to a folder of a container that does not run yet: nobody knows yet who is who in it.
    pub(super) async fn open_up(&self, id: &str, path: &str) -> DaemonResult {
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

    /// Starts a container, and returns when its agent answers.
    pub(super) async fn start_and_wait(&self, links: &Links, id: &str) -> DaemonResult {
        let output = self.listen(id).await;
        let start = || async {
            let options = None::<StartContainerOptions>;
            Ok::<_, Fault>(self.daemon.start_container(id, options).await?)
        };
        self.again(start).await?;
        let agent = AgentClient::new(Endpoint::Custom(links.way(id)));
        loop {
            let answer = tokio::time::timeout(ASKED_WITHIN, agent.health()).await;
            let why = match answer {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "it does not answer".to_owned(),
            };
            tracing::debug!(container.id = id, "The agent is not there yet: {why}");
            let now = self.again(|| self.find(id)).await?;
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

fn did_not_start(reason: Option<String>, said: &str) -> Fault {
    let mut message = "the container ended before its agent answered".to_owned();
    for more in reason.as_deref().into_iter().chain([said]) {
        if !more.is_empty() {
            message.push_str(": ");
            message.push_str(more);
        }
    }
    known(ProviderErrorKind::Failed, message)
}
