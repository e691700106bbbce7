//! Volumes of `/workspace`, which go with their sandbox and with nothing else.
//!
//! Docker's own commands take containers away (`docker system prune` takes every stopped one) and leave their volumes: then this
//! volume is the last there is of somebody's work. So it matters how a container went. Docker keeps no word of it, and labels of
//! volumes cannot be changed, so that other volumes, which stay empty, say it:
//!
//! ```text
//! sandyard-ws-<name>        the volume of the container `sandyard-<name>`
//! sandyard-deleted-<name>   it was deleted by us, or its making given up: the volume may go
//! sandyard-lost-<name>      its container was gone when somebody looked: the volume is kept for a week since
//! ```

use std::collections::{HashMap, HashSet};

use bollard::models::{Volume, VolumeCreateRequest};
use bollard::query_parameters::ListVolumesOptions;
use sandyard_core::Clock;

use super::check;
use super::convert::daemon_time_ms;
use super::daemon::Shared;
use super::error::{DaemonResult, if_there};
use super::labels::{GONE, INSTALLATION, WORKSPACE, WORKSPACES, said};

/// What the names of volumes begin with that say how a container went.
const DELETED: &str = "sandyard-deleted-";
const LOST: &str = "sandyard-lost-";

/// The name of the volume that says something of another.
fn word(prefix: &str, workspace: &str) -> Option<String> {
    let rest = workspace.strip_prefix(WORKSPACES)?;
    check::is_volume_name(workspace).then(|| format!("{prefix}{rest}"))
}

impl Shared {
    /// Notes that what is in a volume of `/workspace` is not wanted any more: before its container goes, after which nothing would
    /// tell.
    pub(super) async fn mark_deleted(&self, workspace: &str) -> DaemonResult {
        self.mark(DELETED, workspace).await
    }

    async fn mark(&self, prefix: &str, workspace: &str) -> DaemonResult {
        let Some(name) = word(prefix, workspace) else {
            return Ok(());
        };
        let labels = [
            (INSTALLATION, self.config.installation.as_str()),
            (GONE, workspace),
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

    /// Takes away what was noted of a volume.
    pub(super) async fn unmark(&self, workspace: &str) -> DaemonResult {
        for prefix in [DELETED, LOST] {
            if let Some(name) = word(prefix, workspace) {
                self.remove_volume(&name).await?;
            }
        }
        Ok(())
    }

    /// Removes the volume of a container's `/workspace`, if that is what it is: its own labels say so, which nobody inside writes.
    pub(super) async fn remove_workspace(&self, volume: &str, container: &str) -> DaemonResult {
        if !volume.starts_with(WORKSPACES) || !check::is_volume_name(volume) {
            return Ok(());
        }
        let found = if_there(self.daemon.inspect_volume(volume).await)?;
        let labels = found.map(|found| found.labels).unwrap_or_default();
        let is_it = said(&labels, INSTALLATION) == Some(&self.config.installation)
            && said(&labels, WORKSPACE).is_some_and(|name| name == container);
        match is_it {
            true => self.remove_volume(volume).await,
            false => Ok(()),
        }
    }

    /// Removes volumes whose containers we deleted before `old`, and those whose containers were lost before `lost`. `there` are
    /// the names of all containers, read after the volumes: one that has none by then has none yet, or not any more.
    pub(super) async fn sweep_workspaces(&self, old: i64, lost: i64) -> DaemonResult {
        let filters = HashMap::from([("label".to_owned(), vec![self.ours()])]);
        let options = ListVolumesOptions {
            filters: Some(filters),
        };
        let volumes = self.daemon.list_volumes(Some(options)).await?;
        let volumes = volumes.volumes.unwrap_or_default();
        let there = self.names_there().await?;
        let all: HashMap<&str, &Volume> =
            volumes.iter().map(|one| (one.name.as_str(), one)).collect();
        for volume in &volumes {
            if let Some(about) = said(&volume.labels, GONE) {
                // The volume went, and who took it away did not come to this.
                if !all.contains_key(about.as_str()) && made_ms(volume) < old {
                    super::sweep::note(&volume.name, self.remove_volume(&volume.name).await);
                }
                continue;
            }
            let owner = said(&volume.labels, WORKSPACE);
            let (Some(owner), Some(lost_word), Some(deleted_word)) =
                (owner, word(LOST, &volume.name), word(DELETED, &volume.name))
            else {
                continue;
            };
            let said_ms = |name: &str| all.get(name).map(|word| made_ms(word));
            let (lost_ms, deleted_ms) = (said_ms(&lost_word), said_ms(&deleted_word));
            if there.contains(owner) {
                if lost_ms.is_some() {
                    // It is back.
                    self.remove_volume(&lost_word).await?;
                }
            } else if deleted_ms.is_some_and(|since| since < old)
                || lost_ms.is_some_and(|since| since < lost)
            {
                let removed = self.remove_volume(&volume.name).await;
                let is_gone = removed.is_ok();
                super::sweep::note(&volume.name, removed);
                if is_gone {
                    self.unmark(&volume.name).await?;
                }
            } else if lost_ms.is_none() && deleted_ms.is_none() && made_ms(volume) < old {
                self.mark(LOST, &volume.name).await?;
                let days = (Clock::System.now_ms() - lost) / 86_400_000;
                tracing::warn!(
                    volume = volume.name,
                    container = owner,
                    "Somebody removed the container of a sandbox. Its `/workspace` is kept in the volume for {days} days"
                );
            }
        }
        Ok(())
    }

    async fn names_there(&self) -> DaemonResult<HashSet<String>> {
        let all = self.containers(&[self.ours()]).await?;
        Ok(all.iter().flat_map(super::sweep::names).collect())
    }
}

/// When a volume was made; one that does not say is new.
fn made_ms(volume: &Volume) -> i64 {
    let made = volume.created_at.as_deref().and_then(daemon_time_ms);
    made.unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_volumes_of_workspaces_are_told_of() {
        let told = word(LOST, "sandyard-ws-one-0123");
        assert_eq!(told.as_deref(), Some("sandyard-lost-one-0123"));
        for other in ["sandyard-vol-one", "ws-one", "sandyard-ws-../one"] {
            assert_eq!(word(LOST, other), None, "{other}");
        }
    }
}
