//! What a daemon supports, according to its own information.

use std::collections::BTreeSet;

use bollard::models::SystemInfo;
use sandyard_provider::{Capabilities, ProviderError, ProviderErrorKind, ProviderInfo};

use super::config::{DockerConfig, DockerNetwork, Workspace};
use super::{NAME, connect};

/// What is known about the daemon's host.
#[derive(Clone, Debug)]
pub(super) struct DaemonInfo {
    /// Number of processors, in thousandths.
    pub(super) cpu_millis: u32,
    /// Whether memory, processor time and processes can be bounded.
    pub(super) can_bound_memory: bool,
    pub(super) can_bound_cpu: bool,
    pub(super) can_bound_pids: bool,
    /// Whether the size of a container's files can be bounded.
    pub(super) can_bound_disk: bool,
    /// Whether the size of volumes can be bounded.
    pub(super) can_bound_volumes: bool,
}

impl DaemonInfo {
    pub(super) fn new(info: &SystemInfo, can_bound_volumes: bool) -> Self {
        let cores = info.ncpu.and_then(|count| u32::try_from(count).ok());
        Self {
            cpu_millis: cores.unwrap_or(1).max(1).saturating_mul(1000),
            can_bound_memory: info.memory_limit.unwrap_or(false),
            can_bound_cpu: info.cpu_cfs_quota.unwrap_or(false),
            can_bound_pids: info.pids_limit.unwrap_or(false),
            can_bound_disk: can_bound_disk(info),
            can_bound_volumes,
        }
    }

    /// The limitations of all containers.
    pub(super) fn limitations(&self, workspace: Workspace) -> Vec<String> {
        // If the disk is not bounded at all, that covers `/workspace`, too.
        let is_workspace_open =
            self.can_bound_disk && workspace == Workspace::Volume && !self.can_bound_volumes;
        let mut limitations = Vec::new();
        for (is_able, what) in [
            (self.can_bound_memory, "memory"),
            (self.can_bound_cpu, "processor time"),
            (self.can_bound_pids, "the number of processes"),
            (self.can_bound_disk, "the disk"),
            (!is_workspace_open, "`/workspace`, which is a volume,"),
        ] {
            if !is_able {
                limitations.push(format!("Docker cannot limit {what} on this host"));
            }
        }
        limitations
    }
}

/// The provider's info.
pub(super) fn provider_info(
    config: &DockerConfig,
    info: &SystemInfo,
    daemon: &DaemonInfo,
) -> Result<ProviderInfo, ProviderError> {
    let Some(id) = info.id.as_deref().filter(|id| !id.is_empty()) else {
        let message = "the daemon reports no id";
        return Err(ProviderError::new(ProviderErrorKind::Unavailable, message));
    };
    check_network(config)?;
    check_runtime(config, info)?;
    let capabilities = Capabilities {
        can_limit: daemon.can_bound_memory && daemon.can_bound_cpu && daemon.can_bound_pids,
        ..super::REGISTRATION.capabilities
    };
    let (default, max_limits) = &config.limits;
    let mut limitations = daemon.limitations(config.workspace);
    if !daemon.can_bound_volumes {
        limitations.push("the size of volumes is not limited".to_owned());
    }
    limitations.extend(connect::limitations(config));
    if let DockerNetwork::Existing(name) = &config.network {
        limitations.push(format!(
            "on Docker's network `{name}` connections of sandboxes are neither restricted nor recorded"
        ));
    }
    Ok(ProviderInfo {
        name: NAME.to_owned(),
        location: format!("{NAME}:{id}"),
        capabilities,
        default_limits: default.least_of(max_limits),
        max_limits: max_limits.clone(),
        default_template: config.image.clone(),
        limitations,
    })
}

/// Refuses networks that are shared: the host's, or another container's.
fn check_network(config: &DockerConfig) -> Result<(), ProviderError> {
    let DockerNetwork::Existing(name) = &config.network else {
        return Ok(());
    };
    if name != "host" && !name.starts_with("container:") && !name.is_empty() {
        return Ok(());
    }
    let message = format!("sandboxes cannot be on Docker's network `{name}`");
    let hint = "set `docker.network` to a separate network, or remove the setting".to_owned();
    Err(ProviderError::new(ProviderErrorKind::Invalid, message).hint(Some(hint)))
}

/// Refuses a runtime that the daemon does not know, before the first container fails.
fn check_runtime(config: &DockerConfig, info: &SystemInfo) -> Result<(), ProviderError> {
    let (Some(requested), Some(available)) = (&config.runtime, &info.runtimes) else {
        return Ok(());
    };
    // A shim with a full name is looked up when it is needed.
    if available.contains_key(requested) || requested.starts_with("io.containerd.") {
        return Ok(());
    }
    let names: BTreeSet<&str> = available.keys().map(String::as_str).collect();
    let names = names.into_iter().collect::<Vec<_>>().join("`, `");
    let message = format!("Docker has no runtime `{requested}`");
    let hint = format!("available are `{names}`; add others to Docker's `daemon.json`");
    Err(ProviderError::new(ProviderErrorKind::NotFound, message).hint(Some(hint)))
}

/// Whether `--storage-opt size=` works: on overlay it needs XFS with project quotas.
fn can_bound_disk(info: &SystemInfo) -> bool {
    let status = info.driver_status.as_deref().unwrap_or_default();
    let has_status = |key: &str, value: &str| {
        let mut pairs = status.iter();
        pairs.any(
            |pair| matches!(pair.as_slice(), [k, v] if k == key && v.eq_ignore_ascii_case(value)),
        )
    };
    match info.driver.as_deref() {
        Some("btrfs" | "zfs" | "devicemapper" | "windowsfilter") => true,
        Some("overlay2") => {
            has_status("Backing Filesystem", "xfs") && has_status("Supports pquota", "true")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_limits_are_reported() {
        let daemon = |can_bound_disk, can_bound_volumes| DaemonInfo {
            cpu_millis: 1000,
            can_bound_memory: true,
            can_bound_cpu: true,
            can_bound_pids: true,
            can_bound_disk,
            can_bound_volumes,
        };
        let limitations = |daemon: DaemonInfo| daemon.limitations(Workspace::Volume).join("; ");
        assert_eq!(limitations(daemon(true, true)), "");
        assert!(limitations(daemon(true, false)).contains("/workspace"));
        assert_eq!(
            limitations(daemon(false, false)),
            "Docker cannot limit the disk on this host"
        );
        let layer = daemon(true, false).limitations(Workspace::Layer);
        assert_eq!(layer, Vec::<String>::new());
    }

    fn can_bound(driver: &str, status: &[(&str, &str)]) -> bool {
        let pair = |(key, value): &(&str, &str)| vec![(*key).to_owned(), (*value).to_owned()];
        let info = SystemInfo {
            driver: Some(driver.to_owned()),
            driver_status: Some(status.iter().map(pair).collect()),
            ..SystemInfo::default()
        };
        can_bound_disk(&info)
    }

    #[test]
    fn the_disk_is_limited_if_the_driver_supports_it() {
        assert!(can_bound("btrfs", &[]));
        assert!(!can_bound("overlay2", &[("Backing Filesystem", "extfs")]));
        assert!(!can_bound("overlay2", &[("Backing Filesystem", "xfs")]));
        let quota = [("Backing Filesystem", "xfs"), ("Supports pquota", "true")];
        // An older Docker does not report quotas.
        assert!(can_bound("overlay2", &quota));
        assert!(!can_bound("vfs", &[]));
    }
}
