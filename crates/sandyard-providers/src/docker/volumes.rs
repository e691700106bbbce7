//! Volumes of users: volumes of Docker's that outlive containers.

use std::collections::HashMap;

use bollard::Docker as Daemon;
use bollard::models::VolumeCreateRequest;
use bollard::query_parameters::{ListContainersOptions, RemoveVolumeOptions};
use sandyard_provider::{ProviderErrorKind, VOLUME_PATH, VolumeSpec};

use super::body::plain_volume;
use super::check;
use super::daemon::Shared;
use super::error::{DaemonResult, if_there, invalid, known};
use super::labels::{self, HELPER, INSTALLATION, VOLUME, WORKSPACE, WORKSPACES, random_text};

/// The name of a volume at the daemon's.
pub(super) fn volume_name(id: &str) -> String {
    format!("sandyard-vol-{id}")
}

/// Docker's own driver of volumes, the only one whose options we know.
pub(super) const DRIVER: &str = "local";

/// What has that driver bound a volume to so many bytes.
fn size(bytes: u64) -> HashMap<String, String> {
    HashMap::from([("size".to_owned(), bytes.to_string())])
}

/// Says whether a daemon can bound volumes, by making one: it needs a file system with project quotas, and does not say what it has.
pub(super) async fn can_bound_volumes(daemon: &Daemon, installation: &str) -> bool {
    // Should it be left, it is swept as what is left of a sandbox.
    let name = format!("{WORKSPACES}size-{}", &random_text()[..12]);
    let labels = [(INSTALLATION, installation), (WORKSPACE, name.as_str())];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let request = VolumeCreateRequest {
        name: Some(name.clone()),
        driver: Some(DRIVER.to_owned()),
        driver_opts: Some(size(16 << 20)),
        labels: Some(labels.into()),
        ..VolumeCreateRequest::default()
    };
    if let Err(error) = daemon.create_volume(request).await {
        tracing::debug!(%error, "Docker cannot bound volumes");
        return false;
    }
    let options = None::<RemoveVolumeOptions>;
    if let Err(error) = daemon.remove_volume(&name, options).await {
        tracing::warn!(%error, name, "A volume is left at Docker's");
    }
    true
}

impl Shared {
    /// What has a volume bounded to so many bytes, where that is possible.
    pub(super) fn bounded_to(&self, bytes: u64) -> Option<HashMap<String, String>> {
        self.place.can_bound_volumes.then(|| size(bytes))
    }

    /// Makes an empty volume that everybody may write to; one that is there keeps what is in it.
    pub(super) async fn create_volume(&self, volume: &VolumeSpec) -> DaemonResult {
        if !check::is_volume_id(&volume.id) || volume.size_bytes == 0 {
            return Err(invalid(
                "a volume's id has letters and digits, and its size is not zero",
            ));
        }
        let name = volume_name(&volume.id);
        match self.need_volume(&volume.id).await {
            // Whoever made it may not have come to this.
            Ok(()) => return self.open_up_volume(&name).await,
            Err(fault) if !is_absent(&fault) => return Err(fault),
            Err(_) => {}
        }
        if if_there(self.daemon.inspect_volume(&name).await)?.is_some() {
            let message = format!("there is a volume `{name}` at Docker's that is not ours");
            return Err(known(ProviderErrorKind::Conflict, message));
        }
        let labels = [
            (INSTALLATION, self.config.installation.as_str()),
            (VOLUME, volume.id.as_str()),
        ];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let request = VolumeCreateRequest {
            name: Some(name.clone()),
            driver_opts: self.bounded_to(volume.size_bytes),
            labels: Some(labels.into()),
            ..VolumeCreateRequest::default()
        };
        self.daemon.create_volume(request).await?;
        let opened = self.open_up_volume(&name).await;
        if opened.is_err() {
            let _ = self.remove_volume(&name).await;
        }
        opened
    }

    async fn open_up_volume(&self, name: &str) -> DaemonResult {
        let image = self.empty_image().await?;
        let labels = labels::all([
            (INSTALLATION, self.config.installation.as_str()),
            (HELPER, name),
        ]);
        let helper = format!("sandyard-open-{}", &random_text()[..12]);
        let mounts = vec![plain_volume(name, VOLUME_PATH, false)];
        let helper = self.never_started(&helper, &image, labels, mounts).await?;
        let opened = self.open_up(&helper, VOLUME_PATH).await;
        self.remove_container(&helper).await?;
        opened
    }

    /// Removes a volume that no container has; a missing one is fine.
    pub(super) async fn delete_volume(&self, id: &str) -> DaemonResult {
        if !check::is_volume_id(id)
            || self
                .need_volume(id)
                .await
                .is_err_and(|fault| is_absent(&fault))
        {
            return Ok(());
        }
        let name = volume_name(id);
        let options = ListContainersOptions {
            all: true,
            filters: Some(HashMap::from([("volume".to_owned(), vec![name.clone()])])),
            ..ListContainersOptions::default()
        };
        let users = self.daemon.list_containers(Some(options)).await?;
        if !users.is_empty() {
            let message = format!("a sandbox has the volume `{id}`");
            return Err(known(ProviderErrorKind::Conflict, message));
        }
        self.remove_volume(&name).await
    }
}

fn is_absent(fault: &super::error::Fault) -> bool {
    matches!(fault, super::error::Fault::Provider(error) if error.kind == ProviderErrorKind::NotFound)
}
