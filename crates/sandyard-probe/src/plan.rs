//! The plan of a probe: what the host planted, and what the sandbox promises.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Everything that a probe reaches for.
///
/// What is left out makes the checks that need it inconclusive, never held.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Plan {
    /// World-readable files of the host, each with a marker in it.
    pub secrets: Vec<SecretFile>,
    /// A process of the host.
    pub process: Option<HostProcess>,
    /// TCP on the host's loopback.
    pub loopback_tcp: Option<NetTarget>,
    /// UDP on the host's loopback; answers any datagram with its greeting.
    pub loopback_udp: Option<NetTarget>,
    /// TCP on an address of the host that its local network sees.
    pub lan_tcp: Option<NetTarget>,
    /// An abstract Unix socket in the host's network namespace.
    pub abstract_socket: Option<SocketTarget>,
    /// A Unix socket in the host's file system.
    pub path_socket: Option<SocketTarget>,
    /// System V shared memory of the host.
    pub shared_memory: Option<HostSegment>,
    /// A System V message queue of the host with one message in it.
    pub message_queue: Option<HostSegment>,
    /// A POSIX message queue of the host with one message in it.
    pub posix_queue: Option<HostQueue>,
    /// A key in the host's user keyring that anyone may read.
    pub key: Option<HostKey>,
    /// Another sandbox that is running now.
    pub neighbour: Option<Neighbour>,
    /// The host's name.
    pub hostname: Option<String>,
    /// The host's boot id.
    pub boot_id: Option<String>,
    /// Folders of the host that hold sandboxes' data: their names must not be visible inside.
    pub host_folders: Vec<PathBuf>,
    /// An unused file name: the probe makes such files in system directories, and the host checks that none arrives there.
    pub footprint: Option<String>,
    /// Capabilities that may be in the bounding set, one bit each; `None`: only dangerous ones count as a breach.
    pub allowed_caps: Option<u64>,
    /// The sandbox has one id only (a rootless host without id ranges), so root and the user inside are the same.
    pub single_uid: bool,
    /// The host's user id of root inside, as seen from the host. In nested namespaces the map alone does not show it.
    pub root_on_host: Option<u32>,
}

/// A file of the host that a sandbox must not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretFile {
    /// Where it is on the host.
    pub path: PathBuf,
    /// Its content.
    pub marker: String,
    /// Its kernel file handle (type and bytes), which opens it with no path at all where that is allowed.
    pub handle: Option<(i32, Vec<u8>)>,
    /// Its device number: the disk to make a device node of.
    pub device: u64,
}

/// A process of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostProcess {
    /// Its id in the host's pid namespace.
    pub pid: i32,
    /// Field 22 of its stat file, which with the pid identifies the process.
    pub start_time: u64,
    /// A word in its environment.
    pub marker: String,
}

/// A port that answers with a greeting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetTarget {
    /// The address as the host knows it.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
    /// What it sends to every client.
    pub greeting: String,
}

/// A Unix socket that sends a greeting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketTarget {
    /// Path, or abstract name without the leading NUL.
    pub name: String,
    /// What it sends to every client.
    pub greeting: String,
}

/// A System V object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSegment {
    /// The key it was made with.
    pub key: i32,
    /// The id the kernel gave it.
    pub id: i32,
    /// What is in it.
    pub marker: String,
}

/// A POSIX message queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostQueue {
    /// Its name without the leading slash, as the kernel wants it.
    pub name: String,
    /// The message in it.
    pub marker: String,
}

/// A key in a kernel keyring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostKey {
    /// Its serial number.
    pub serial: i32,
    /// Its description.
    pub description: String,
    /// Its payload.
    pub marker: String,
}

/// Another sandbox, with a [`crate::GreetingServer`] in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbour {
    /// TCP on its loopback.
    pub tcp: NetTarget,
    /// An abstract Unix socket in its network namespace.
    pub abstract_socket: SocketTarget,
    /// A file in its file system, by the path it has there.
    pub file: Option<SecretFile>,
}

/// A plan that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to read the probe's plan")]
pub struct PlanError {
    #[source]
    source: serde_json::Error,
}

impl Plan {
    /// Reads a plan from JSON.
    ///
    /// # Errors
    /// When it is not the JSON of a plan.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        serde_json::from_str(text).map_err(|source| PlanError { source })
    }

    /// The plan as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a plan has only string keys and plain values")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_survives_its_json() {
        let plan = Plan {
            hostname: Some("h".into()),
            allowed_caps: Some(u64::MAX),
            ..Plan::default()
        };
        assert_eq!(Plan::from_json(&plan.to_json()).unwrap(), plan);
    }

    #[test]
    fn an_unknown_field_is_refused() {
        assert!(Plan::from_json(r#"{"secret":[]}"#).is_err());
    }
}
