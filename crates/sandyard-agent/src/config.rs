//! What the agent is told before it starts.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use crate::tools::Tools;

/// The user commands run as when a request names none.
pub const DEFAULT_USER: &str = "user";

/// The port the protocol's clients expect the agent on.
pub const DEFAULT_PORT: u16 = 49983;

/// How much output of one process is kept for readers that come late.
pub const DEFAULT_RING_BYTES: usize = 1024 * 1024;

/// Everything the agent needs to know at birth; [`Default`] is a stand-alone agent with no door at all.
#[derive(Debug)]
pub struct AgentConfig {
    /// A bound and listening Unix socket: the host's door. Whoever can reach it is trusted, needs no token and may use
    /// the host-only routes.
    pub host_listener: Option<OwnedFd>,
    /// A bound and listening TCP socket, for callers that want to know the port before the agent runs.
    pub tcp_listener: Option<OwnedFd>,
    /// Where to listen on TCP. The access token is needed here when one is set; host-only routes do not exist.
    pub tcp: Option<SocketAddr>,
    /// Gets one byte `1` and is closed once the agent serves.
    pub ready: Option<OwnedFd>,
    /// The user of requests that name none.
    pub default_user: String,
    /// The working directory of commands that name none; the user's home otherwise.
    pub default_workdir: Option<String>,
    /// The way out; none: there is none.
    pub egress: Option<EgressDoors>,
    /// Variables given to every command.
    pub env: BTreeMap<String, String>,
    /// Variables given to every command, whatever others an init request brings, unless it brings one of the same name.
    pub lasting_env: BTreeMap<String, String>,
    /// What callers on the TCP door must show in `X-Access-Token`.
    pub access_token: Option<String>,
    /// Whether nobody passes the TCP door while there is no access token; otherwise everybody does.
    pub needs_token: bool,
    /// Whether the agent is the first process of a PID namespace and so adopts and reaps every orphan.
    pub is_init: bool,
    /// Whether `SIGTERM` and `SIGINT` end the agent though it is the first process, as who stops a container expects.
    pub ends_by_signal: bool,
    /// What the template wants to have running; none: nothing is looked for.
    pub start: Option<StartFiles>,
    /// The tool server that the host finds on a port where nobody listens; none: there is none.
    pub tools: Option<Tools>,
    /// Where projects are: the tool server's folder, made for its user when it is missing.
    pub workspace: PathBuf,
    /// Written to the `oom_score_adj` of commands, so that the kernel ends them before the agent.
    pub oom_score_adj: Option<i32>,
    /// How much output of one process is kept.
    pub ring_bytes: usize,
}

/// Where a template's start program and services are looked for; [`Default`] is where templates put them.
#[derive(Debug, Clone)]
pub struct StartFiles {
    /// The folder of `start`, `start.user` and `start.ports`, and of `services`.
    pub folder: PathBuf,
    /// What the paths of logs begin with: `start.log`, `service-80.log` and `tools.log` are added to it.
    pub logs: PathBuf,
}

impl StartFiles {
    /// Where the output of one program goes.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        let mut path = self.logs.clone().into_os_string();
        path.push(format!("{name}.log"));
        path.into()
    }
}

impl Default for StartFiles {
    fn default() -> Self {
        Self {
            folder: "/etc/sandyard".into(),
            logs: "/var/log/sandyard-".into(),
        }
    }
}

/// What the way out needs, bound by whoever made the network namespace.
#[derive(Debug, Default)]
pub struct EgressDoors {
    /// TCP listeners that everything is redirected to.
    pub redirected: Vec<OwnedFd>,
    /// UDP sockets that look-ups come to. Look-ups over TCP come to `redirected` (for any address, port 53) or to `names_tcp`.
    pub names: Vec<OwnedFd>,
    /// TCP listeners of look-ups alone, where nothing is redirected.
    pub names_tcp: Vec<OwnedFd>,
    /// A TCP listener for programs that use a proxy (`CONNECT`, whole URLs, SOCKS 5), where nothing is redirected; its address
    /// goes into the proxy variables of every command.
    pub proxy: Option<OwnedFd>,
    /// Raw sockets of ICMP and ICMPv6: what nothing carries is refused, and that is how the sender is told.
    pub strays: Vec<OwnedFd>,
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            host_listener: None,
            tcp_listener: None,
            tcp: None,
            ready: None,
            default_user: DEFAULT_USER.to_owned(),
            default_workdir: None,
            egress: None,
            env: BTreeMap::new(),
            lasting_env: BTreeMap::new(),
            access_token: None,
            needs_token: false,
            is_init: false,
            ends_by_signal: false,
            start: None,
            tools: None,
            workspace: "/workspace".into(),
            oom_score_adj: Some(500),
            ring_bytes: DEFAULT_RING_BYTES,
        }
    }
}
