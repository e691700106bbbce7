//! From one state to another, and out of the world.

use std::sync::Arc;
use std::time::Duration;

use bollard::query_parameters::{RenameContainerOptions, StopContainerOptions};
use sandyard_core::SandboxState::{self, Paused, Running, Stopped};
use sandyard_provider::ProviderErrorKind;

use super::convert::Container;
use super::daemon::Shared;
use super::error::{DaemonResult, Fault, known};
use super::labels::STOPPED;
use super::link::Links;

/// How long an agent may take to end its commands, in seconds, before all is killed.
const ENDS_WITHIN: i32 = 5;

/// How often a container is frozen whose processes do not stand still in time.
const FREEZES: usize = 5;
const BETWEEN_FREEZES: Duration = Duration::from_millis(250);

/// Says whether a container's processes did not stand still in the time the runtime gives them.
fn is_too_short(error: &bollard::errors::Error) -> bool {
    use bollard::errors::Error::DockerResponseServerError;
    matches!(error, DockerResponseServerError { message, .. } if message.contains("unable to freeze"))
}

impl Shared {
    /// Freezes a container that runs.
    pub(super) async fn pause(&self, id: &str) -> DaemonResult<Container> {
        let now = self.get(id).await?;
        match now.instance.state {
            Paused => return Ok(now),
            Running => {}
            state => return Err(not_now("pause", state)),
        }
        let pause = async || self.freeze_now(id).await;
        self.arrive(id, Paused, self.again(pause).await).await
    }

    /// Has a container frozen. The runtime gives its processes a fraction of a second to stand still and then thaws them again,
    /// which on a busy host is too short now and then: so it is asked more than once.
    pub(super) async fn freeze_now(&self, id: &str) -> DaemonResult {
        for _ in 1..FREEZES {
            match self.daemon.pause_container(id).await {
                Err(error) if is_too_short(&error) => tokio::time::sleep(BETWEEN_FREEZES).await,
                other => return Ok(other?),
            }
        }
        Ok(self.daemon.pause_container(id).await?)
    }

    /// Thaws a container that is frozen.
    pub(super) async fn resume(&self, id: &str) -> DaemonResult<Container> {
        let now = self.get(id).await?;
        match now.instance.state {
            Running => return Ok(now),
            Paused => {}
            state => return Err(not_now("resume", state)),
        }
        let resume = async || Ok::<_, Fault>(self.daemon.unpause_container(id).await?);
        self.arrive(id, Running, self.again(resume).await).await
    }

    /// Ends a container's processes.
    pub(super) async fn stop(&self, id: &str) -> DaemonResult<Container> {
        let now = self.get(id).await?;
        if !now.is_asked_to_stop {
            self.rename(id, &format!("{}{STOPPED}", now.name)).await?;
        }
        if now.instance.state.is_live() {
            let stop = async || {
                let options = StopContainerOptions {
                    t: Some(ENDS_WITHIN),
                    signal: None,
                };
                Ok::<_, Fault>(self.daemon.stop_container(id, Some(options)).await?)
            };
            let stopped = self.again(stop).await;
            return self.arrive(id, Stopped, stopped).await;
        }
        match now.instance.state {
            Stopped => self.get(id).await,
            state => Err(not_now("stop", state)),
        }
    }

    /// Starts a container that was stopped, or ended by itself.
    pub(super) async fn start(&self, links: &Links, id: &str) -> DaemonResult<Container> {
        let now = self.get(id).await?;
        match now.instance.state {
            Running if !now.is_asked_to_stop => return Ok(now),
            Running | Stopped => {}
            state => return Err(not_now("start", state)),
        }
        if now.is_asked_to_stop {
            self.rename(id, &now.name).await?;
        }
        links.forget(id);
        self.need_plain_targets(&now).await?;
        self.start_and_wait(links, id).await?;
        self.get(id).await
    }

    /// Removes a container and all it holds.
    pub(super) async fn delete(self: &Arc<Self>, links: &Links, id: &str) -> DaemonResult {
        let Some(found) = self.find(id).await? else {
            return Ok(());
        };
        links.forget(id);
        if let Some(volume) = &found.workspace {
            self.again(async || self.mark_deleted(volume).await).await?;
        }
        self.again(async || self.remove_container(id).await).await?;
        if let Some(volume) = &found.workspace {
            self.again(async || self.remove_workspace(volume, &found.name).await)
                .await?;
            self.again(async || self.unmark(volume).await).await?;
        }
        self.drop_image(&found.image).await
    }

    async fn rename(&self, id: &str, name: &str) -> DaemonResult {
        let rename = async || {
            let options = RenameContainerOptions {
                name: name.to_owned(),
            };
            Ok::<_, Fault>(self.daemon.rename_container(id, options).await?)
        };
        match self.again(rename).await {
            // It is called so already: an answer got lost.
            Err(fault) if fault.text().contains("same name") => Ok(()),
            other => other,
        }
    }

    /// Looks whether a container has come to a state: the daemon complains about what is so already.
    async fn arrive(
        &self,
        id: &str,
        wanted: SandboxState,
        asked: DaemonResult,
    ) -> DaemonResult<Container> {
        let now = self.get(id).await?;
        if now.instance.state == wanted {
            return Ok(now);
        }
        asked?;
        Err(not_now("change", now.instance.state))
    }
}

fn not_now(doing: &str, state: SandboxState) -> Fault {
    let state = format!("{state:?}").to_lowercase();
    let message = format!("it cannot {doing}: the sandbox is {state}");
    known(ProviderErrorKind::Conflict, message)
}
