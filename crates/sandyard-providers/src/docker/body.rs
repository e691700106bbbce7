//! The body of a container: privileges, mounts, limits and program.

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigLogConfig, Mount as DockerMount,
    MountBindOptions, MountType, MountVolumeOptions, RestartPolicy, RestartPolicyNameEnum,
};
use sandyard_core::Limits;

use super::config::DockerNetwork;
use super::daemon_info::DaemonInfo;
use super::labels;

/// Folder of the agent's program in every container.
pub(super) const AGENT_FOLDER: &str = "/.sandyard";
/// Path of the agent's program.
pub(super) const AGENT_PATH: &str = "/.sandyard/agent";
/// The users' working directory.
pub(super) const WORKSPACE_PATH: &str = "/workspace";

/// Processes of the agent: its threads, and the programs of links.
const OWN_PIDS: i64 = 32;
/// Size of `/dev/shm` in bytes.
const SHARED_MEMORY: i64 = 64 << 20;

/// Capabilities that the agent needs to serve users other than root.
const CAPABILITIES: [&str; 9] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    // With these the agent drops the others before any command runs.
    "SETPCAP",
    "NET_BIND_SERVICE",
];

/// Paths that are read-only in a container: Docker's defaults, and `/proc/pressure`, through which a user could make the host's
/// kernel measure. Masked paths are left to Docker, because newer daemons mask more.
const READ_ONLY_PATHS: [&str; 6] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/pressure",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

/// Everything that a container is created from.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) image: &'a str,
    pub(super) hostname: &'a str,
    pub(super) labels: HashMap<String, String>,
    pub(super) limits: &'a Limits,
    pub(super) mounts: Vec<DockerMount>,
    /// Options of the agent's role `contained`.
    pub(super) options: Vec<String>,
    pub(super) network: &'a DockerNetwork,
    pub(super) runtime: Option<&'a str>,
    pub(super) has_new_privileges: bool,
    /// A seccomp profile, as JSON.
    pub(super) seccomp: Option<&'a str>,
}

impl Plan<'_> {
    /// The request to the daemon.
    pub(super) fn body(self, daemon: &DaemonInfo) -> ContainerCreateBody {
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
            // An image's own health check would run beside the agent, as root.
            healthcheck: Some(HealthConfig {
                test: Some(vec!["NONE".to_owned()]),
                ..HealthConfig::default()
            }),
            stop_signal: Some("SIGTERM".to_owned()),
            host_config: Some(self.host(daemon)),
            ..ContainerCreateBody::default()
        }
    }

    fn host(self, daemon: &DaemonInfo) -> HostConfig {
        let bounded = |can: bool, value: i64| can.then_some(value);
        let memory = bounded(daemon.can_bound_memory, signed(self.limits.memory_bytes));
        let cpu_millis = self.limits.cpu_millis.min(daemon.cpu_millis);
        let size = self.limits.disk_bytes.to_string();
        let mut capabilities: Vec<String> = CAPABILITIES.map(str::to_owned).into();
        let network = match self.network {
            DockerNetwork::Gateway => {
                // Needed to redirect connections to the agent; dropped before any command runs.
                capabilities.extend(["NET_ADMIN", "NET_RAW"].map(str::to_owned));
                "none"
            }
            DockerNetwork::Existing(name) => name,
        };
        let mut security = Vec::new();
        if !self.has_new_privileges {
            security.push("no-new-privileges:true".to_owned());
        }
        security.extend(self.seccomp.map(|profile| format!("seccomp={profile}")));
        HostConfig {
            memory,
            // Equal to the memory limit, so that nothing is swapped.
            memory_swap: memory,
            nano_cpus: bounded(daemon.can_bound_cpu, i64::from(cpu_millis) * 1_000_000),
            pids_limit: bounded(
                daemon.can_bound_pids,
                i64::from(self.limits.pids) + OWN_PIDS,
            ),
            storage_opt: daemon
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

/// A Docker volume in a container.
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

/// A volume that does not get the image's files at its path.
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

    fn daemon(is_able: bool) -> DaemonInfo {
        DaemonInfo {
            cpu_millis: 2000,
            can_bound_memory: is_able,
            can_bound_cpu: is_able,
            can_bound_pids: is_able,
            can_bound_disk: is_able,
            can_bound_volumes: is_able,
        }
    }

    fn host(network: &DockerNetwork, is_able: bool) -> HostConfig {
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
        plan.body(&daemon(is_able))
            .host_config
            .expect("a host part")
    }

    #[test]
    fn limits_are_set_where_the_daemon_enforces_them() {
        let host = host(&DockerNetwork::Gateway, true);
        assert_eq!(host.memory, Some(2 << 30));
        assert_eq!(host.memory_swap, host.memory);
        // The daemon refuses more processors than the host has.
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
    fn files_that_the_host_shares_are_read_only() {
        let host = host(&DockerNetwork::Gateway, true);
        let paths = host.readonly_paths.unwrap_or_default();
        for path in ["/proc/pressure", "/proc/sys", "/proc/sysrq-trigger"] {
            assert!(paths.iter().any(|existing| existing == path), "{path}");
        }
        // Left to the daemon.
        assert_eq!(host.masked_paths, None);
    }

    #[test]
    fn only_the_gateway_needs_network_capabilities() {
        let has = |host: &HostConfig| {
            let added = host.cap_add.as_deref().unwrap_or_default();
            added.iter().any(|name| name == "NET_ADMIN")
        };
        let gateway = host(&DockerNetwork::Gateway, true);
        assert!(has(&gateway));
        assert_eq!(gateway.network_mode.as_deref(), Some("none"));
        let named = host(&DockerNetwork::Existing("bridge".to_owned()), true);
        assert!(!has(&named));
        assert_eq!(named.network_mode.as_deref(), Some("bridge"));
        let options = named.security_opt.unwrap_or_default();
        assert_eq!(options, ["no-new-privileges:true"]);
    }
}
