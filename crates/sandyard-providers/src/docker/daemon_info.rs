//! What a daemon can and cannot do, as it says of itself.

use std::collections::BTreeSet;

use bollard::models::SystemInfo;
use sandyard_provider::{Capabilities, ProviderError, ProviderErrorKind, ProviderInfo};

use super::config::{DockerConfig, DockerNetwork, Workspace};
use super::{NAME, connect};

/// What is known of the place containers are in.
#[derive(Clone, Debug)]
pub(super) struct DaemonInfo {
    /// How many processors there are, in thousandths.
    pub(super) cpu_millis: u32,
    /// Whether memory, processor time and processes can be bounded.
    pub(super) can_bound_memory: bool,
    pub(super) can_bound_cpu: bool,
    pub(super) can_bound_pids: bool,
    /// Whether the size of a container's files can be bounded.
    pub(super) can_bound_disk: bool,
    /// Whether that of volumes can.
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

    /// What no container gets here, in words.
    pub(super) fn limitations(&self, workspace: Workspace) -> Vec<String> {
        // Where nothing of the disk is bounded, that is all there is to say.
        let is_workspace_open =
            self.can_bound_disk && workspace == Workspace::Volume && !self.can_bound_volumes;
        let mut limitations = Vec::new();
        for (can, what) in [
            (self.can_bound_memory, "memory"),
            (self.can_bound_cpu, "processor time"),
            (self.can_bound_pids, "the number of processes"),
            (self.can_bound_disk, "the disk"),
            (!is_workspace_open, "`/workspace`, which is a volume,"),
        ] {
            if !can {
                limitations.push(format!("Docker cannot bound {what} here"));
            }
        }
        limitations
    }
}

/// What the provider says of itself.
pub(super) fn provider_info(
    config: &DockerConfig,
    info: &SystemInfo,
    place: &DaemonInfo,
) -> Result<ProviderInfo, ProviderError> {
    let Some(id) = info.id.as_deref().filter(|id| !id.is_empty()) else {
        let message = "the daemon does not say which one it is";
        return Err(ProviderError::new(ProviderErrorKind::Unavailable, message));
    };
    check_network(config)?;
    check_runtime(config, info)?;
    let capabilities = Capabilities {
        can_limit: place.can_bound_memory && place.can_bound_cpu && place.can_bound_pids,
        ..super::REGISTRATION.capabilities
    };
    let (default, most) = &config.limits;
    let mut limitations = place.limitations(config.workspace);
    if !place.can_bound_volumes {
        limitations.push("the size of volumes is not bounded".to_owned());
    }
    limitations.extend(connect::limitations(config));
    if let DockerNetwork::Named(name) = &config.network {
        limitations.push(format!(
            "what sandboxes reach through Docker's network `{name}` is neither judged nor recorded"
        ));
    }
    Ok(ProviderInfo {
        name: NAME.to_owned(),
        location: format!("{NAME}:{id}"),
        capabilities,
        default_limits: default.least_of(most),
        max_limits: most.clone(),
        default_template: config.image.clone(),
        limitations,
    })
}

/// Refuses a network that is none: the host's own, or another container's.
fn check_network(config: &DockerConfig) -> Result<(), ProviderError> {
    let DockerNetwork::Named(name) = &config.network else {
        return Ok(());
    };
    if name != "host" && !name.starts_with("container:") && !name.is_empty() {
        return Ok(());
    }
    let message = format!("sandboxes cannot be on Docker's network `{name}`");
    let hint = "set `docker.network` to a network of their own, or leave it out".to_owned();
    Err(ProviderError::new(ProviderErrorKind::Invalid, message).hint(Some(hint)))
}

/// Refuses a runtime that the daemon does not know, before the first container fails.
fn check_runtime(config: &DockerConfig, info: &SystemInfo) -> Result<(), ProviderError> {
    let (Some(wanted), Some(known)) = (&config.runtime, &info.runtimes) else {
        return Ok(());
    };
    // A shim can be named in full, and is then looked for when it is needed.
    if known.contains_key(wanted) || wanted.starts_with("io.containerd.") {
        return Ok(());
    }
    let names: BTreeSet<&str> = known.keys().map(String::as_str).collect();
    let names = names.into_iter().collect::<Vec<_>>().join("`, `");
    let message = format!("Docker knows no runtime `{wanted}`");
    let hint = format!("it knows `{names}`; others are added to its `daemon.json`");
    Err(ProviderError::new(ProviderErrorKind::NotFound, message).hint(Some(hint)))
}

/// Says whether `--storage-opt size=` holds: on overlay it needs XFS with project quotas.
fn can_bound_disk(info: &SystemInfo) -> bool {
    let status = info.driver_status.as_deref().unwrap_or_default();
    let says = |key: &str, value: &str| {
        let mut pairs = status.iter();
        pairs.any(
            |pair| matches!(pair.as_slice(), [k, v] if k == key && v.eq_ignore_ascii_case(value)),
        )
    };
    match info.driver.as_deref() {
        Some("btrfs" | "zfs" | "devicemapper" | "windowsfilter") => true,
        Some("overlay2") => says("Backing Filesystem", "xfs") && says("Supports pquota", "true"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_bounded_is_said() {
        let place = |can_bound_disk, can_bound_volumes| DaemonInfo {
            cpu_millis: 1000,
            can_bound_memory: true,
            can_bound_cpu: true,
            can_bound_pids: true,
            can_bound_disk,
            can_bound_volumes,
        };
        let limitations = |place: DaemonInfo| place.limitations(Workspace::Volume).join("; ");
        assert_eq!(limitations(place(true, true)), "");
        assert!(limitations(place(true, false)).contains("/workspace"));
        assert_eq!(
            limitations(place(false, false)),
            "Docker cannot bound the disk here"
        );
        let layer = place(true, false).limitations(Workspace::Layer);
        assert_eq!(layer, Vec::<String>::new());
    }

    fn on(driver: &str, status: &[(&str, &str)]) -> bool {
        let pair = |(key, value): &(&str, &str)| vec![(*key).to_owned(), (*value).to_owned()];
        let info = SystemInfo {
            driver: Some(driver.to_owned()),
            driver_status: Some(status.iter().map(pair).collect()),
            ..SystemInfo::default()
        };
        can_bound_disk(&info)
    }

    #[test]
    fn the_disk_is_bounded_where_the_driver_can() {
        assert!(on("btrfs", &[]));
        assert!(!on("overlay2", &[("Backing Filesystem", "extfs")]));
        assert!(!on("overlay2", &[("Backing Filesystem", "xfs")]));
        let quota = [("Backing Filesystem", "xfs"), ("Supports pquota", "true")];
        // An older Docker does not say, and then refuses; nothing is promised there.
        assert!(on("overlay2", &quota));
        assert!(!on("vfs", &[]));
    }
}
