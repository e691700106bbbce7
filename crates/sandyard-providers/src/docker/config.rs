//! Configuration of the Docker provider.

use std::path::PathBuf;

use sandyard_core::Limits;

use crate::CallTimeouts;

/// Everything the Docker provider needs to know.
#[derive(Clone)]
pub struct DockerConfig {
    /// Address of the daemon: `unix:///run/docker.sock`, `tcp://host:2376`. `None` for Docker's default socket.
    pub host: Option<String>,
    /// Folder of `ca.pem`, `cert.pem` and `key.pem`; `None` for no TLS.
    pub cert_path: Option<PathBuf>,
    /// The installation whose containers the provider lists.
    pub installation: String,
    /// Encrypts the secret label of containers.
    pub sealing_key: [u8; 32],
    /// The program that is mounted in every container: this program, or one with its roles `contained` and `link`.
    pub program: PathBuf,
    /// The image of a container whose create request names none.
    pub image: String,
    /// When images are pulled from a registry.
    pub pull: Pull,
    /// The runtime of containers, such as `runsc` or `kata`; `None` for the daemon's default.
    pub runtime: Option<String>,
    /// The network of containers.
    pub network: DockerNetwork,
    /// User of commands; `None` for the image's user, or `user` where that is root.
    pub user: Option<String>,
    /// Whether programs in containers can gain privileges (`sudo`).
    pub has_new_privileges: bool,
    /// A seccomp profile instead of Docker's own.
    pub seccomp: Option<PathBuf>,
    /// Where `/workspace` is stored.
    pub workspace: Workspace,
    /// The folder of projects on the daemon's host: `<projects>/<project>` becomes `/workspace`.
    pub projects: Option<PathBuf>,
    /// The default limits, and the largest limits that a caller may request.
    pub limits: (Limits, Limits),
    /// Port of the tool server in a container.
    pub tools_port: u16,
    /// Timeouts of calls.
    pub timeouts: CallTimeouts,
}

// Leaves out the key, which must not reach logs.
sandyard_core::debug_fields!(DockerConfig:
    host, cert_path, installation, program, image, pull, runtime, network, user, has_new_privileges, seccomp, workspace, projects,
    limits, tools_port, timeouts);

/// When images are pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pull {
    /// When the image is missing.
    Missing,
    /// Before every create.
    Always,
    /// Never.
    Never,
}

/// The network of containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DockerNetwork {
    /// Only this server's gateway, which applies and records the policy.
    Gateway,
    /// A Docker network, without policy.
    Existing(String),
}

/// Where `/workspace` is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workspace {
    /// In a volume, which is deleted with the sandbox.
    Volume,
    /// In the container's file system.
    Layer,
}
