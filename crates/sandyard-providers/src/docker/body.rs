//! The container of a sandbox: what it may, what it has, what runs in it.

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigLogConfig, Mount as DockerMount,
    MountBindOptions, MountType, MountVolumeOptions, RestartPolicy, RestartPolicyNameEnum,
};
use sandyard_core::Limits;

use super::config::DockerNetwork;
use super::daemon_info::DaemonInfo;
use super::labels;

/// Where the agent's program is, in every container.
pub(super) const AGENT_FOLDER: &str = "/.sandyard";
/// The agent's program.
pub(super) const AGENT_PATH: &str = "/.sandyard/agent";
/// Where users work.
pub(super) const WORKSPACE_PATH: &str = "/workspace";

/// Processes that are ours and not the user's: the agent with its threads, and those that link to it.
const OWN_PIDS: i64 = 32;
/// Bytes of `/dev/shm`.
const SHARED_MEMORY: i64 = 64 << 20;

/// What the agent needs to serve users who are not root, and nothing else.
const CAPABILITIES: [&str; 9] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    // With these the agent gives up the others before anybody else runs.
    "SETPCAP",
    "NET_BIND_SERVICE",
];

/// Paths that are read-only in a container: Docker's own defaults, and `/proc/pressure`, where anybody could make the host's
/// kernel measure for them. Which paths are hidden stays Docker's choice, since newer daemons hide more.
const READ_ONLY_PATHS: [&str; 6] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/pressure",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

/// What a container is made of.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) image: &'a str,
    pub(super) hostname: &'a str,
    pub(super) labels: HashMap<String, String>,
    pub(super) limits: &'a Limits,
    pub(super) mounts: Vec<DockerMount>,
    /// What the role in the container is told.
    pub(super) options: Vec<String>,
    pub(super) network: &'a DockerNetwork,
    pub(super) runtime: Option<&'a str>,
    pub(super) has_new_privileges: bool,
    /// A system call filter, as JSON.
    pub(super) seccomp: Option<&'a str>,
}

impl Plan<'_> {
    /// In the daemon's words.
    pub(super) fn body(self, place: &DaemonInfo) -> ContainerCreateBody {
        let mut entrypoint = vec![AGENT_PATH.to_owned(), "contained".to_owned()];
        entrypoint.extend(self.options.iter().cloned());
        ContainerCreateBody {
            image: Some(self.image.to_owned()),
            hostname: Some(self.hostname.to_owned()),
            user: Some("0".to_owned()),
            entrypoint: Some(entrypoint),
            cmd: Some(Vec::new()),
            working_dir: Some("/".to_owned()),
            labels: Some(labels::all(self.labels.clone())),
            // An image's own check would run beside the agent, as root.
            healthcheck: Some(HealthConfig {
                test: Some(vec!["NONE".to_owned()]),
                ..HealthConfig::default()
            }),
            stop_signal: Some("SIGTERM".to_owned()),
            host_config: Some(self.host(place)),
            ..ContainerCreateBody::default()
        }
    }

    fn host(self, place: &DaemonInfo) -> HostConfig {
        let bounded = |can: bool, value: i64| can.then_some(value);
        let memory = bounded(place.can_bound_memory, signed(self.limits.memory_bytes));
        let cpu_millis = self.limits.cpu_millis.min(place.cpu_millis);
        let size = self.limits.disk_bytes.to_string();
        let mut capabilities: Vec<String> = CAPABILITIES.map(str::to_owned).into();
        let network = match self.network {
            DockerNetwork::Gateway => {
                // To lead connections to the agent; given up before anybody else runs.
                capabilities.extend(["NET_ADMIN", "NET_RAW"].map(str::to_owned));
                "none"
            }
            DockerNetwork::Named(name) => name,
        };
        let mut security = Vec::new();
        if !self.has_new_privileges {
            security.push("no-new-privileges:true".to_owned());
        }
        security.extend(self.seccomp.map(|profile| format!("seccomp={profile}")));
        HostConfig {
            memory,
            // The same: nothing of it is swapped out.
            memory_swap: memory,
            nano_cpus: bounded(place.can_bound_cpu, i64::from(cpu_millis) * 1_000_000),
            pids_limit: bounded(place.can_bound_pids, i64::from(self.limits.pids) + OWN_PIDS),
            storage_opt: place
                .can_bound_disk
                .then(|| HashMap::from([("size".to_owned(), size)])),
            cap_drop: Some(vec!["ALL".to_owned()]),
            cap_add: Some(capabilities),
            security_opt: Some(security),
            readonly_paths: Some(READ_ONLY_PATHS.map(str::to_owned).into()),
            network_mode: Some(network.to_owned()),
            ipc_mode: Some("private".to_owned()),
            shm_size: Some(SHARED_MEMORY),
            runtime: self.runtime.map(str::to_owned),
            init: Some(false),
            privileged: Some(false),
            mounts: Some(self.mounts),
            log_config: Some(HostConfigLogConfig {
                typ: Some("none".to_owned()),
                config: None,
            }),
            restart_policy: Some(RestartPolicy {
                name: Some(RestartPolicyNameEnum::NO),
                maximum_retry_count: None,
            }),
            ..HostConfig::default()
        }
    }
}

/// A volume of Docker's in a container.
pub(super) fn volume(
    name: &str,
    path: &str,
    options: MountVolumeOptions,
    is_read_only: bool,
) -> DockerMount {
    DockerMount {
        typ: Some(MountType::VOLUME),
        source: Some(name.to_owned()),
        target: Some(path.to_owned()),
        read_only: Some(is_read_only),
        volume_options: Some(options),
        ..DockerMount::default()
    }
}

/// A volume that stays what it is, whatever the image has at that place.
pub(super) fn plain_volume(name: &str, path: &str, is_read_only: bool) -> DockerMount {
    let options = MountVolumeOptions {
        no_copy: Some(true),
        ..MountVolumeOptions::default()
    };
    volume(name, path, options, is_read_only)
}

/// A folder of the daemon's host in a container.
pub(super) fn folder(source: &str, path: &str) -> DockerMount {
    DockerMount {
        typ: Some(MountType::BIND),
        source: Some(source.to_owned()),
        target: Some(path.to_owned()),
        bind_options: Some(MountBindOptions {
            create_mountpoint: None,
            ..MountBindOptions::default()
        }),
        ..DockerMount::default()
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(can: bool) -> DaemonInfo {
        DaemonInfo {
            cpu_millis: 2000,
            can_bound_memory: can,
            can_bound_cpu: can,
            can_bound_pids: can,
            can_bound_disk: can,
            can_bound_volumes: can,
        }
    }

    fn host(network: &DockerNetwork, can: bool) -> HostConfig {
        let limits = Limits {
            cpu_millis: 4000,
            ..Limits::default()
        };
        let plan = Plan {
            image: "debian",
            hostname: "one",
            labels: HashMap::new(),
            limits: &limits,
            mounts: Vec::new(),
            options: Vec::new(),
            network,
            runtime: None,
            has_new_privileges: false,
            seccomp: None,
        };
        plan.body(&place(can)).host_config.expect("a host part")
    }

    #[test]
    fn limits_are_asked_for_where_they_hold() {
        let host = host(&DockerNetwork::Gateway, true);
        assert_eq!(host.memory, Some(2 << 30));
        assert_eq!(host.memory_swap, host.memory);
        // More than there are would be refused, and bounds nothing.
        assert_eq!(host.nano_cpus, Some(2_000_000_000));
        assert_eq!(host.pids_limit, Some(1024 + OWN_PIDS));
        let none = self::host(&DockerNetwork::Gateway, false);
        assert_eq!(
            (none.memory, none.nano_cpus, none.pids_limit),
            (None, None, None)
        );
        assert_eq!(none.storage_opt, None);
    }

    #[test]
    fn no_file_that_the_host_shares_can_be_written() {
        let host = host(&DockerNetwork::Gateway, true);
        let paths = host.readonly_paths.unwrap_or_default();
        for path in ["/proc/pressure", "/proc/sys", "/proc/sysrq-trigger"] {
            assert!(paths.iter().any(|known| known == path), "{path}");
        }
        // Left to the daemon.
        assert_eq!(host.masked_paths, None);
    }

    #[test]
    fn only_the_gateway_needs_rights_over_the_network() {
        let has = |host: &HostConfig| {
            let added = host.cap_add.as_deref().unwrap_or_default();
            added.iter().any(|name| name == "NET_ADMIN")
        };
        let gateway = host(&DockerNetwork::Gateway, true);
        assert!(has(&gateway));
        assert_eq!(gateway.network_mode.as_deref(), Some("none"));
        let named = host(&DockerNetwork::Named("bridge".to_owned()), true);
        assert!(!has(&named));
        assert_eq!(named.network_mode.as_deref(), Some("bridge"));
        let options = named.security_opt.unwrap_or_default();
        assert_eq!(options, ["no-new-privileges:true"]);
    }
}
