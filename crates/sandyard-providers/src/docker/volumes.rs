//! Users' volumes: Docker volumes that outlive containers.

use std::collections::HashMap;

use bollard::Docker as Daemon;
use bollard::models::VolumeCreateRequest;
use bollard::query_parameters::{ListContainersOptions, RemoveVolumeOptions};
use sandyard_provider::{ProviderErrorKind, VOLUME_PATH, VolumeSpec};

use super::body::plain_volume;
use super::check;
use super::daemon::Shared;
use super::error::{DaemonResult, fault, if_exists, invalid};
use super::labels::{self, COPIER, INSTALLATION, VOLUME, WORKSPACE, WORKSPACES, random_text};

/// The Docker name of a volume.
pub(super) fn volume_name(id: &str) -> String {
    format!("sandyard-vol-{id}")
}

/// Docker's own volume driver, the only one whose options are known.
pub(super) const DRIVER: &str = "local";

/// Options that limit the size of a volume.
fn size_options(bytes: u64) -> HashMap<String, String> {
    HashMap::from([("size".to_owned(), bytes.to_string())])
}

/// Whether the daemon can limit the size of volumes. It needs a file system with project quotas and does not report that, so a
/// volume is created as a test.
pub(super) async fn can_bound_volumes(daemon: &Daemon, installation: &str) -> bool {
    // If the volume remains, the sweep removes it like a workspace.
    let name = format!("{WORKSPACES}size-{}", &random_text()[..12]);
    let labels = [(INSTALLATION, installation), (WORKSPACE, name.as_str())];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let request = VolumeCreateRequest {
        name: Some(name.clone()),
        driver: Some(DRIVER.to_owned()),
        driver_opts: Some(size_options(16 << 20)),
        labels: Some(labels.into()),
        ..VolumeCreateRequest::default()
    };
    if let Err(error) = daemon.create_volume(request).await {
        tracing::debug!(%error, "Docker cannot limit the size of volumes");
        return false;
    }
    let options = None::<RemoveVolumeOptions>;
    if let Err(error) = daemon.remove_volume(&name, options).await {
        tracing::warn!(%error, name, "Failed to remove a volume at Docker");
    }
    true
}

impl Shared {
    /// Options that limit the size of a volume, if the daemon supports that.
    pub(super) fn size_limit(&self, bytes: u64) -> Option<HashMap<String, String>> {
        self.daemon_info
            .can_bound_volumes
            .then(|| size_options(bytes))
    }

    /// Creates an empty volume that all users may write to; an existing one keeps its files.
    pub(super) async fn create_volume(&self, volume: &VolumeSpec) -> DaemonResult {
        if !check::is_volume_id(&volume.id) || volume.size_bytes == 0 {
            return Err(invalid(
                "a volume's id must consist of letters and digits, and its size must not be zero",
            ));
        }
        let name = volume_name(&volume.id);
        match self.require_volume(&volume.id).await {
            // An earlier create may have stopped before this step.
            Ok(()) => return self.make_volume_writable(&name).await,
            Err(fault) if !is_not_found(&fault) => return Err(fault),
            Err(_) => {}
        }
        if if_exists(self.daemon.inspect_volume(&name).await)?.is_some() {
            let message = format!("a Docker volume `{name}` of another owner exists already");
            return Err(fault(ProviderErrorKind::Conflict, message));
        }
        let labels = [
            (INSTALLATION, self.config.installation.as_str()),
            (VOLUME, volume.id.as_str()),
        ];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let request = VolumeCreateRequest {
            name: Some(name.clone()),
            driver_opts: self.size_limit(volume.size_bytes),
            labels: Some(labels.into()),
            ..VolumeCreateRequest::default()
        };
        self.daemon.create_volume(request).await?;
        let result = self.make_volume_writable(&name).await;
        if result.is_err() {
            let _ = self.remove_volume(&name).await;
        }
        result
    }

    async fn make_volume_writable(&self, name: &str) -> DaemonResult {
        let image = self.empty_image().await?;
        let labels = labels::all([
            (INSTALLATION, self.config.installation.as_str()),
            (COPIER, name),
        ]);
        let helper = format!("sandyard-open-{}", &random_text()[..12]);
        let mounts = vec![plain_volume(name, VOLUME_PATH, false)];
        let helper = self
            .create_unstarted(&helper, &image, labels, mounts)
            .await?;
        let result = self.make_writable(&helper, VOLUME_PATH).await;
        self.remove_container(&helper).await?;
        result
    }

    /// Removes a volume that no container mounts; removing a missing one succeeds.
    pub(super) async fn delete_volume(&self, id: &str) -> DaemonResult {
        if !check::is_volume_id(id)
            || self
                .require_volume(id)
                .await
                .is_err_and(|fault| is_not_found(&fault))
        {
            return Ok(());
        }
        let name = volume_name(id);
        let options = ListContainersOptions {
            all: true,
            filters: Some(HashMap::from([("volume".to_owned(), vec![name.clone()])])),
            ..ListContainersOptions::default()
        };
        let containers = self.daemon.list_containers(Some(options)).await?;
        if !containers.is_empty() {
            let message = format!("a sandbox mounts the volume `{id}`");
            return Err(fault(ProviderErrorKind::Conflict, message));
        }
        self.remove_volume(&name).await
    }
}

fn is_not_found(fault: &super::error::Fault) -> bool {
    matches!(fault, super::error::Fault::Provider(error) if error.kind == ProviderErrorKind::NotFound)
}
