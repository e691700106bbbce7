//! What the Docker provider is told.

use std::fmt;
use std::path::PathBuf;

use sandyard_core::Limits;

use crate::CallTimeouts;

/// Everything the Docker provider needs to know.
#[derive(Clone)]
pub struct DockerConfig {
    /// Where the daemon is: `unix:///run/docker.sock`, `tcp://host:2376`. None: Docker's usual socket.
    pub host: Option<String>,
    /// The folder of `ca.pem`, `cert.pem` and `key.pem`; none: no TLS.
    pub cert_path: Option<PathBuf>,
    /// The installation whose containers are ours.
    pub installation: String,
    /// Seals what a container is to remember and nobody else is to read.
    pub sealing_key: [u8; 32],
    /// The program put into every container: this one, or one with its roles `contained` and `link`.
    pub program: PathBuf,
    /// What a container is made from when nothing is named.
    pub image: String,
    /// When images are fetched from a registry.
    pub pull: Pull,
    /// The runtime of containers, such as `runsc` or `kata`; none: the daemon's default.
    pub runtime: Option<String>,
    /// How containers are connected.
    pub network: DockerNetwork,
    /// Who commands run as; none: the image's user, or `user` where that is root.
    pub user: Option<String>,
    /// Whether programs inside can gain rights by being executed (`sudo`).
    pub has_new_privileges: bool,
    /// A system call filter instead of Docker's own.
    pub seccomp: Option<PathBuf>,
    /// Where `/workspace` is kept.
    pub workspace: Workspace,
    /// The folder of projects on the daemon's host: `<projects>/<project>` becomes `/workspace`.
    pub projects: Option<PathBuf>,
    /// The default limits and the most a caller may ask for.
    pub limits: (Limits, Limits),
    /// Where the tool server inside is found.
    pub tools_port: u16,
    /// How long calls may take.
    pub timeouts: CallTimeouts,
}

/// Leaves out the key, which must not reach logs.
impl fmt::Debug for DockerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DockerConfig")
            .field("host", &self.host)
            .field("cert_path", &self.cert_path)
            .field("installation", &self.installation)
            .field("program", &self.program)
            .field("image", &self.image)
            .field("pull", &self.pull)
            .field("runtime", &self.runtime)
            .field("network", &self.network)
            .field("user", &self.user)
            .field("has_new_privileges", &self.has_new_privileges)
            .field("seccomp", &self.seccomp)
            .field("workspace", &self.workspace)
            .field("projects", &self.projects)
            .field("limits", &self.limits)
            .field("tools_port", &self.tools_port)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

/// When images are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pull {
    /// When there is none of that name.
    Missing,
    /// Before every create.
    Always,
    /// Never.
    Never,
}

/// How containers are connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DockerNetwork {
    /// By nothing but the gateway of this server, which judges and records.
    Gateway,
    /// To a network of Docker's, which nobody judges.
    Named(String),
}

/// Where `/workspace` is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workspace {
    /// In a volume of its own, which goes with the sandbox.
    Volume,
    /// With the rest of the files.
    Layer,
}
