//! What everybody here needs: the daemon, and what was agreed on with it.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::Duration;

use bollard::Docker as Daemon;
use bollard::models::ContainerSummary;
use bollard::query_parameters::{
    InspectContainerOptions, ListContainersOptions, RemoveContainerOptions, RemoveVolumeOptions,
};
use futures_util::StreamExt;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::check;
use super::config::DockerConfig;
use super::connection::DaemonConnection;
use super::convert::{self, Container};
use super::daemon_info::DaemonInfo;
use super::error::{DaemonResult, if_there, no_instance};
use super::labels::{INSTALLATION, KEEPER, SANDBOX, labelled, said};
use super::program::Fillings;
use super::pull::Pulls;
use super::sealed::Seal;

/// How many containers are looked at at once.
const AT_ONCE: usize = 8;
/// How long one may take.
const LOOKED_WITHIN: Duration = Duration::from_secs(8);
/// How long all of them may take together: those that are left then are told of by what the list itself says.
const ALL_WITHIN: Duration = Duration::from_secs(16);
/// How long a daemon that was lost may take to come back, while somebody waits.
const COMES_BACK_WITHIN: Duration = Duration::from_secs(10);

/// One daemon, and how it is used.
pub(super) struct Shared {
    pub(super) daemon: Daemon,
    /// The way to it, for what its client does not bound.
    pub(super) line: DaemonConnection,
    pub(super) config: DockerConfig,
    pub(super) place: DaemonInfo,
    pub(super) seal: Seal,
    /// The system call filter, read once.
    pub(super) seccomp: Option<String>,
    /// The certificate that programs inside are to trust.
    pub(super) authority: OnceLock<String>,
    /// Names what is put into every container.
    pub(super) agent: OnceCell<String>,
    /// How that comes to the daemon.
    pub(super) fillings: Fillings,
    /// How images do.
    pub(super) pulls: Pulls,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// All containers with all of these labels, whatever they do.
    pub(super) async fn containers(
        &self,
        labels: &[String],
    ) -> DaemonResult<Vec<ContainerSummary>> {
        let options = ListContainersOptions {
            all: true,
            filters: Some(HashMap::from([("label".to_owned(), labels.to_vec())])),
            ..ListContainersOptions::default()
        };
        Ok(self.daemon.list_containers(Some(options)).await?)
    }

    /// The label of everything that is this installation's.
    pub(super) fn ours(&self) -> String {
        labelled(INSTALLATION, Some(&self.config.installation))
    }

    /// All sandboxes' containers.
    pub(super) async fn sandboxes(&self) -> DaemonResult<Vec<Container>> {
        let all = self
            .containers(&[self.ours(), labelled(SANDBOX, None)])
            .await?;
        let is_sandbox = |one: &ContainerSummary| {
            let labels = one.labels.as_ref();
            labels.is_none_or(|labels| said(labels, KEEPER).is_none())
        };
        let ours = all.into_iter().filter(is_sandbox);
        let end = Instant::now() + ALL_WITHIN;
        let looks = ours.map(|one| async move { self.look(one, end).await });
        let mut found = futures_util::stream::iter(looks).buffer_unordered(AT_ONCE);
        let mut containers = Vec::new();
        while let Some(one) = found.next().await {
            containers.extend(one?);
        }
        containers.sort_by(|a, b| {
            let key = |one: &Container| (one.instance.created_ms, one.instance.id.clone());
            key(a).cmp(&key(b))
        });
        Ok(containers)
    }

    /// Looks closer at a container that was listed. One that the daemon cannot tell more of is still there, and holds up no other.
    async fn look(
        &self,
        listed: ContainerSummary,
        end: Instant,
    ) -> DaemonResult<Option<Container>> {
        let id = listed.id.clone().unwrap_or_default();
        let end = end.min(Instant::now() + LOOKED_WITHIN);
        let why = match tokio::time::timeout_at(end, self.find(&id)).await {
            Ok(Err(fault)) if !fault.is_lost() => fault.text(),
            Ok(found) => return found,
            Err(_) => "it takes too long".to_owned(),
        };
        tracing::warn!(
            container.id = id,
            "Docker tells little of a container: {why}"
        );
        let known = convert::as_inspected(listed);
        Ok(convert::container(known, &self.config.installation))
    }

    /// A sandbox's container; none: there is none of ours of that id.
    pub(super) async fn find(&self, id: &str) -> DaemonResult<Option<Container>> {
        if !check::is_container_id(id) {
            return Ok(None);
        }
        let options = None::<InspectContainerOptions>;
        let found = if_there(self.daemon.inspect_container(id, options).await)?;
        Ok(found.and_then(|found| convert::container(found, &self.config.installation)))
    }

    /// A sandbox's container that must be there.
    pub(super) async fn get(&self, id: &str) -> DaemonResult<Container> {
        let found = self.find(id).await?;
        found.ok_or_else(|| no_instance(id).into())
    }

    /// Removes a container with its anonymous volumes; a missing one is fine.
    pub(super) async fn remove_container(&self, id: &str) -> DaemonResult {
        let options = RemoveContainerOptions {
            v: true,
            force: true,
            link: false,
        };
        match if_there(self.daemon.remove_container(id, Some(options)).await) {
            Ok(_) => Ok(()),
            // Somebody else is at it, or was: it is over when it cannot be seen any more.
            Err(fault) if fault.status() == Some(409) => self.wait_until_gone(id).await,
            Err(fault) => Err(fault),
        }
    }

    /// Waits until a container that is being removed is gone; whoever asks bounds the time.
    async fn wait_until_gone(&self, id: &str) -> DaemonResult {
        let options = || None::<InspectContainerOptions>;
        while if_there(self.daemon.inspect_container(id, options()).await)?.is_some() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Removes a volume; a missing one is fine.
    pub(super) async fn remove_volume(&self, name: &str) -> DaemonResult {
        let options = RemoveVolumeOptions { force: false };
        if_there(self.daemon.remove_volume(name, Some(options)).await).map(drop)
    }

    /// Waits for a daemon that was lost, for a moment; says whether it answers again.
    pub(super) async fn comes_back(&self) -> bool {
        let ping = async {
            while self.daemon.ping().await.is_err() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(COMES_BACK_WITHIN, ping).await.is_ok()
    }

    /// Asks again, once, when the daemon was lost: for what may be done twice.
    pub(super) async fn again<T, F>(&self, ask: impl Fn() -> F) -> DaemonResult<T>
    where
        F: Future<Output = DaemonResult<T>>,
    {
        match ask().await {
            Err(fault) if fault.is_lost() && self.comes_back().await => ask().await,
            other => other,
        }
    }
}
