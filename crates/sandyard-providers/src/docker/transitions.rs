//! Changes of state, and deletion.

use std::sync::Arc;
use std::time::Duration;

use bollard::query_parameters::{RenameContainerOptions, StopContainerOptions};
use sandyard_core::SandboxState::{self, Paused, Running, Stopped};
use sandyard_provider::ProviderErrorKind;

use super::convert::Container;
use super::daemon::Shared;
use super::error::{DaemonResult, Fault, fault};
use super::labels::STOPPED;
use super::link::Links;

/// How long an agent may take to end its commands, in seconds, before they are killed.
const STOP_TIMEOUT_SECONDS: i32 = 5;

/// Number of attempts to pause a container whose processes do not freeze in time.
const PAUSE_ATTEMPTS: usize = 5;
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// Whether the processes did not freeze in the runtime's time.
fn is_freeze_timeout(error: &bollard::errors::Error) -> bool {
    use bollard::errors::Error::DockerResponseServerError;
    matches!(error, DockerResponseServerError { message, .. } if message.contains("unable to freeze"))
}

impl Shared {
    /// Pauses a running container.
    pub(super) async fn pause(&self, id: &str) -> DaemonResult<Container> {
        let container = self.get(id).await?;
        match container.instance.state {
            Paused => return Ok(container),
            Running => {}
            state => return Err(wrong_state("pause", state)),
        }
        let pause = async || self.pause_with_retries(id).await;
        self.check_arrival(id, Paused, self.retry_once(pause).await)
            .await
    }

    /// Pauses a container. The runtime gives its processes a fraction of a second to freeze and unpauses them if that is not
    /// enough, which happens on a busy host. So it may need several attempts.
    pub(super) async fn pause_with_retries(&self, id: &str) -> DaemonResult {
        for _ in 1..PAUSE_ATTEMPTS {
            match self.daemon.pause_container(id).await {
                Err(error) if is_freeze_timeout(&error) => tokio::time::sleep(RETRY_PAUSE).await,
                other => return Ok(other?),
            }
        }
        Ok(self.daemon.pause_container(id).await?)
    }

    /// Unpauses a container.
    pub(super) async fn resume(&self, id: &str) -> DaemonResult<Container> {
        let container = self.get(id).await?;
        match container.instance.state {
            Running => return Ok(container),
            Paused => {}
            state => return Err(wrong_state("resume", state)),
        }
        let resume = async || Ok::<_, Fault>(self.daemon.unpause_container(id).await?);
        self.check_arrival(id, Running, self.retry_once(resume).await)
            .await
    }

    /// Ends a container's processes.
    pub(super) async fn stop(&self, id: &str) -> DaemonResult<Container> {
        let container = self.get(id).await?;
        if !container.was_stop_requested {
            self.rename(id, &format!("{}{STOPPED}", container.name))
                .await?;
        }
        if container.instance.state.is_live() {
            let stop = async || {
                let options = StopContainerOptions {
                    t: Some(STOP_TIMEOUT_SECONDS),
                    signal: None,
                };
                Ok::<_, Fault>(self.daemon.stop_container(id, Some(options)).await?)
            };
            let stopped = self.retry_once(stop).await;
            return self.check_arrival(id, Stopped, stopped).await;
        }
        match container.instance.state {
            Stopped => self.get(id).await,
            state => Err(wrong_state("stop", state)),
        }
    }

    /// Starts a container that was stopped or exited.
    pub(super) async fn start(&self, links: &Links, id: &str) -> DaemonResult<Container> {
        let container = self.get(id).await?;
        match container.instance.state {
            Running if !container.was_stop_requested => return Ok(container),
            Running | Stopped => {}
            state => return Err(wrong_state("start", state)),
        }
        if container.was_stop_requested {
            self.rename(id, &container.name).await?;
        }
        links.forget(id);
        self.require_plain_targets(&container).await?;
        self.start_and_wait(links, id).await?;
        self.get(id).await
    }

    /// Removes a container and its workspace.
    pub(super) async fn delete(self: &Arc<Self>, links: &Links, id: &str) -> DaemonResult {
        let Some(container) = self.find(id).await? else {
            return Ok(());
        };
        links.forget(id);
        if let Some(volume) = &container.workspace {
            self.retry_once(async || self.mark_deleted(volume).await)
                .await?;
        }
        self.retry_once(async || self.remove_container(id).await)
            .await?;
        if let Some(volume) = &container.workspace {
            self.retry_once(async || self.remove_workspace(volume, &container.name).await)
                .await?;
            self.retry_once(async || self.unmark(volume).await).await?;
        }
        self.remove_unnamed_image(&container.image).await
    }

    async fn rename(&self, id: &str, name: &str) -> DaemonResult {
        let rename = async || {
            let options = RenameContainerOptions {
                name: name.to_owned(),
            };
            Ok::<_, Fault>(self.daemon.rename_container(id, options).await?)
        };
        match self.retry_once(rename).await {
            // It has that name already: an answer was lost.
            Err(fault) if fault.text().contains("same name") => Ok(()),
            other => other,
        }
    }

    /// Checks whether a container reached a state: the daemon reports an error if it was in that state already.
    async fn check_arrival(
        &self,
        id: &str,
        target: SandboxState,
        result: DaemonResult,
    ) -> DaemonResult<Container> {
        let container = self.get(id).await?;
        if container.instance.state == target {
            return Ok(container);
        }
        result?;
        Err(wrong_state("change", container.instance.state))
    }
}

fn wrong_state(action: &str, state: SandboxState) -> Fault {
    let state = format!("{state:?}").to_lowercase();
    let message = format!("cannot {action} the sandbox: it is {state}");
    fault(ProviderErrorKind::Conflict, message)
}
