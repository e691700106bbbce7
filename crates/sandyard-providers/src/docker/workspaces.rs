//! Volumes of `/workspace`, which are deleted with their sandbox and at no other time.
//!
//! Docker commands such as `docker system prune` remove stopped containers and leave their volumes: then the volume has the only
//! copy of the user's work. So it matters why a container disappeared. Docker does not record it, and labels of volumes cannot be
//! changed, so empty marker volumes record it:
//!
//! ```text
//! sandyard-ws-<name>        the volume of the container `sandyard-<name>`
//! sandyard-deleted-<name>   this server deleted the container, or its create failed: the volume can be removed
//! sandyard-lost-<name>      the container had disappeared when a sweep checked: the volume is retained for a week from then
//! ```

use std::collections::{HashMap, HashSet};

use bollard::models::{Volume, VolumeCreateRequest};
use bollard::query_parameters::ListVolumesOptions;
use sandyard_core::Clock;

use super::check;
use super::convert::daemon_time_ms;
use super::daemon::Shared;
use super::error::{DaemonResult, if_exists};
use super::labels::{INSTALLATION, MARKER, WORKSPACE, WORKSPACES, label_value};

/// Prefixes of the names of marker volumes.
const DELETED_PREFIX: &str = "sandyard-deleted-";
const LOST_PREFIX: &str = "sandyard-lost-";

/// The name of a marker of a workspace.
fn marker_name(prefix: &str, workspace: &str) -> Option<String> {
    let rest = workspace.strip_prefix(WORKSPACES)?;
    check::is_volume_name(workspace).then(|| format!("{prefix}{rest}"))
}

impl Shared {
    /// Records that the files of a workspace are no longer needed. Called before the container is removed, because nothing would
    /// record it afterwards.
    pub(super) async fn mark_deleted(&self, workspace: &str) -> DaemonResult {
        self.mark(DELETED_PREFIX, workspace).await
    }

    async fn mark(&self, prefix: &str, workspace: &str) -> DaemonResult {
        let Some(name) = marker_name(prefix, workspace) else {
            return Ok(());
        };
        let labels = [
            (INSTALLATION, self.config.installation.as_str()),
            (MARKER, workspace),
        ];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let request = VolumeCreateRequest {
            name: Some(name),
            labels: Some(labels.into()),
            ..VolumeCreateRequest::default()
        };
        self.daemon.create_volume(request).await?;
        Ok(())
    }

    /// Removes the markers of a workspace.
    pub(super) async fn unmark(&self, workspace: &str) -> DaemonResult {
        for prefix in [DELETED_PREFIX, LOST_PREFIX] {
            if let Some(name) = marker_name(prefix, workspace) {
                self.remove_volume(&name).await?;
            }
        }
        Ok(())
    }

    /// Removes the volume of a container's `/workspace`. The volume's labels, which users cannot write, must confirm that.
    pub(super) async fn remove_workspace(&self, volume: &str, container: &str) -> DaemonResult {
        if !volume.starts_with(WORKSPACES) || !check::is_volume_name(volume) {
            return Ok(());
        }
        let info = if_exists(self.daemon.inspect_volume(volume).await)?;
        let labels = info.map(|info| info.labels).unwrap_or_default();
        let is_workspace = label_value(&labels, INSTALLATION) == Some(&self.config.installation)
            && label_value(&labels, WORKSPACE).is_some_and(|name| name == container);
        match is_workspace {
            true => self.remove_volume(volume).await,
            false => Ok(()),
        }
    }

    /// Removes volumes whose containers this server deleted before `before`, and those whose containers were lost before
    /// `lost_before`. Container names are read after the volumes: a volume without a container then has none yet, or no longer.
    pub(super) async fn sweep_workspaces(&self, before: i64, lost_before: i64) -> DaemonResult {
        let filters = HashMap::from([("label".to_owned(), vec![self.installation_label()])]);
        let options = ListVolumesOptions {
            filters: Some(filters),
        };
        let volumes = self.daemon.list_volumes(Some(options)).await?;
        let volumes = volumes.volumes.unwrap_or_default();
        let container_names = self.all_container_names().await?;
        let all: HashMap<&str, &Volume> = volumes
            .iter()
            .map(|volume| (volume.name.as_str(), volume))
            .collect();
        for volume in &volumes {
            if let Some(workspace) = label_value(&volume.labels, MARKER) {
                // The volume was removed, but not its marker.
                if !all.contains_key(workspace.as_str()) && created_ms(volume) < before {
                    super::sweep::log_removal(&volume.name, self.remove_volume(&volume.name).await);
                }
                continue;
            }
            let owner = label_value(&volume.labels, WORKSPACE);
            let (Some(owner), Some(lost_marker), Some(deleted_marker)) = (
                owner,
                marker_name(LOST_PREFIX, &volume.name),
                marker_name(DELETED_PREFIX, &volume.name),
            ) else {
                continue;
            };
            let marker_ms = |name: &str| all.get(name).map(|marker_name| created_ms(marker_name));
            let (lost_ms, deleted_ms) = (marker_ms(&lost_marker), marker_ms(&deleted_marker));
            if container_names.contains(owner) {
                if lost_ms.is_some() {
                    // The container is back.
                    self.remove_volume(&lost_marker).await?;
                }
            } else if deleted_ms.is_some_and(|since| since < before)
                || lost_ms.is_some_and(|since| since < lost_before)
            {
                let removed = self.remove_volume(&volume.name).await;
                let is_removed = removed.is_ok();
                super::sweep::log_removal(&volume.name, removed);
                if is_removed {
                    self.unmark(&volume.name).await?;
                }
            } else if lost_ms.is_none() && deleted_ms.is_none() && created_ms(volume) < before {
                self.mark(LOST_PREFIX, &volume.name).await?;
                let days = (Clock::System.now_ms() - lost_before) / 86_400_000;
                tracing::warn!(
                    volume = volume.name,
                    container = owner,
                    "The container of a sandbox was removed outside of this server. Its `/workspace` is retained in the volume for {days} days"
                );
            }
        }
        Ok(())
    }

    async fn all_container_names(&self) -> DaemonResult<HashSet<String>> {
        let all = self.containers(&[self.installation_label()]).await?;
        Ok(all.iter().flat_map(super::sweep::container_names).collect())
    }
}

/// When a volume was created; a volume without a time counts as new.
fn created_ms(volume: &Volume) -> i64 {
    let created = volume.created_at.as_deref().and_then(daemon_time_ms);
    created.unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_workspaces_have_markers() {
        let name = marker_name(LOST_PREFIX, "sandyard-ws-one-0123");
        assert_eq!(name.as_deref(), Some("sandyard-lost-one-0123"));
        for other in ["sandyard-vol-one", "ws-one", "sandyard-ws-../one"] {
            assert_eq!(marker_name(LOST_PREFIX, other), None, "{other}");
        }
    }
}
