//! The daemon and what all of the provider's code shares.

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
use super::error::{DaemonResult, if_exists, no_instance};
use super::labels::{INSTALLATION, SANDBOX, VOLUME_HELPER, label_value, labelled};
use super::program::Fillings;
use super::pull::Pulls;
use super::sealed::Seal;

/// How many containers are inspected at once.
const CONCURRENCY: usize = 8;
/// Timeout of inspecting one container.
const INSPECT_TIMEOUT: Duration = Duration::from_secs(8);
/// Timeout of inspecting all of them; the others are reported as the list describes them.
const LIST_TIMEOUT: Duration = Duration::from_secs(16);
/// How long to wait for a daemon that was lost.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// One daemon and its configuration.
pub(super) struct Shared {
    pub(super) daemon: Daemon,
    /// Connection for requests that the client does not bound.
    pub(super) connection: DaemonConnection,
    pub(super) config: DockerConfig,
    pub(super) daemon_info: DaemonInfo,
    pub(super) seal: Seal,
    /// The seccomp profile, read once.
    pub(super) seccomp: Option<String>,
    /// The certificate that programs in containers must trust.
    pub(super) authority: OnceLock<String>,
    /// Digest of the program that is mounted in every container.
    pub(super) agent: OnceCell<String>,
    /// The upload of the program in progress.
    pub(super) fillings: Fillings,
    /// Image pulls in progress.
    pub(super) pulls: Pulls,
}

sandyard_core::debug_fields!(Shared: config);

impl Shared {
    /// All containers with all of these labels, in every state.
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

    /// The label of everything that belongs to this installation.
    pub(super) fn installation_label(&self) -> String {
        labelled(INSTALLATION, Some(&self.config.installation))
    }

    /// The containers of all sandboxes.
    pub(super) async fn sandboxes(&self) -> DaemonResult<Vec<Container>> {
        let all = self
            .containers(&[self.installation_label(), labelled(SANDBOX, None)])
            .await?;
        let is_sandbox = |summary: &ContainerSummary| {
            let labels = summary.labels.as_ref();
            labels.is_none_or(|labels| label_value(labels, VOLUME_HELPER).is_none())
        };
        let sandboxes = all.into_iter().filter(is_sandbox);
        let end = Instant::now() + LIST_TIMEOUT;
        let inspections =
            sandboxes.map(|summary| async move { self.inspect_listed(summary, end).await });
        let mut container = futures_util::stream::iter(inspections).buffer_unordered(CONCURRENCY);
        let mut containers = Vec::new();
        while let Some(container) = container.next().await {
            containers.extend(container?);
        }
        containers.sort_by(|a, b| {
            let key = |container: &Container| {
                (container.instance.created_ms, container.instance.id.clone())
            };
            key(a).cmp(&key(b))
        });
        Ok(containers)
    }

    /// Inspects a container of a list. When that fails, it is reported as the list describes it, without delaying others.
    async fn inspect_listed(
        &self,
        summary: ContainerSummary,
        end: Instant,
    ) -> DaemonResult<Option<Container>> {
        let id = summary.id.clone().unwrap_or_default();
        let end = end.min(Instant::now() + INSPECT_TIMEOUT);
        let problem = match tokio::time::timeout_at(end, self.find(&id)).await {
            Ok(Err(fault)) if !fault.is_lost() => fault.text(),
            Ok(container) => return container,
            Err(_) => "it took too long".to_owned(),
        };
        tracing::warn!(
            container.id = id,
            "Failed to inspect a container: {problem}"
        );
        let inspected = convert::as_inspected(summary);
        Ok(convert::container(inspected, &self.config.installation))
    }

    /// A sandbox's container; `None` if it does not exist or belongs to another installation.
    pub(super) async fn find(&self, id: &str) -> DaemonResult<Option<Container>> {
        if !check::is_container_id(id) {
            return Ok(None);
        }
        let options = None::<InspectContainerOptions>;
        let container = if_exists(self.daemon.inspect_container(id, options).await)?;
        Ok(
            container
                .and_then(|container| convert::container(container, &self.config.installation)),
        )
    }

    /// A sandbox's container that must exist.
    pub(super) async fn get(&self, id: &str) -> DaemonResult<Container> {
        let container = self.find(id).await?;
        container.ok_or_else(|| no_instance(id).into())
    }

    /// Removes a container with its anonymous volumes; removing a missing one succeeds.
    pub(super) async fn remove_container(&self, id: &str) -> DaemonResult {
        let options = RemoveContainerOptions {
            v: true,
            force: true,
            link: false,
        };
        match if_exists(self.daemon.remove_container(id, Some(options)).await) {
            Ok(_) => Ok(()),
            // Another request is removing it: wait until it is removed.
            Err(fault) if fault.status() == Some(409) => self.wait_until_removed(id).await,
            Err(fault) => Err(fault),
        }
    }

    /// Waits until a container that is being removed is gone; the caller bounds the time.
    async fn wait_until_removed(&self, id: &str) -> DaemonResult {
        let options = || None::<InspectContainerOptions>;
        while if_exists(self.daemon.inspect_container(id, options()).await)?.is_some() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Removes a volume; removing a missing one succeeds.
    pub(super) async fn remove_volume(&self, name: &str) -> DaemonResult {
        let options = RemoveVolumeOptions { force: false };
        if_exists(self.daemon.remove_volume(name, Some(options)).await).map(drop)
    }

    /// Waits for a moment for a daemon that was lost; returns whether it answers again.
    pub(super) async fn is_back(&self) -> bool {
        let ping = async {
            while self.daemon.ping().await.is_err() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(RECONNECT_TIMEOUT, ping).await.is_ok()
    }

    /// Repeats an idempotent request once when the daemon was lost.
    pub(super) async fn retry_once<T, F>(&self, send: impl Fn() -> F) -> DaemonResult<T>
    where
        F: Future<Output = DaemonResult<T>>,
    {
        match send().await {
            Err(fault) if fault.is_lost() && self.is_back().await => send().await,
            other => other,
        }
    }
}
