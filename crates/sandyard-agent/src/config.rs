//! The agent's configuration.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use crate::tools::Tools;

/// The user commands run as when a request names none.
pub const DEFAULT_USER: &str = "user";

/// The port the protocol's clients expect the agent on.
pub const DEFAULT_PORT: u16 = 49983;

/// How much output of one process the agent keeps for late readers, in bytes.
pub const DEFAULT_RING_BYTES: usize = 1024 * 1024;

/// The configuration of an agent; [`Default`] is a stand-alone agent without listeners.
#[derive(Debug)]
pub struct AgentConfig {
    /// A bound and listening Unix socket for the host. Its callers are trusted, need no token and may use the
    /// host-only routes.
    pub host_listener: Option<OwnedFd>,
    /// A bound and listening TCP socket, for a creator that needs to know the port before the agent runs.
    pub tcp_listener: Option<OwnedFd>,
    /// The TCP address to listen on. Its callers need the access token if one is set; host-only routes do not exist.
    pub tcp: Option<SocketAddr>,
    /// The agent writes the byte `1` here and closes it when it is ready to serve.
    pub ready: Option<OwnedFd>,
    /// The user of requests that name none.
    pub default_user: String,
    /// The working directory of commands that name none; `None`: the user's home.
    pub default_workdir: Option<String>,
    /// The egress listeners; `None`: the sandbox has no network.
    pub egress: Option<EgressListeners>,
    /// Environment variables of every command.
    pub env: BTreeMap<String, String>,
    /// Environment variables of every command that an init request does not remove; it may override one by its name.
    pub lasting_env: BTreeMap<String, String>,
    /// The token that TCP callers must send as `X-Access-Token`.
    pub access_token: Option<String>,
    /// Whether TCP callers are refused while no access token is set; otherwise they are all accepted then.
    pub needs_token: bool,
    /// Whether the agent is the first process of a PID namespace and so adopts and reaps every orphan.
    pub is_init: bool,
    /// Whether `SIGTERM` and `SIGINT` end the agent though it is the first process, as container engines expect.
    pub ends_by_signal: bool,
    /// Where the template's start program and services are; `None`: the agent starts none.
    pub start: Option<StartFiles>,
    /// The tool server, which the host reaches by its port; `None`: there is none.
    pub tools: Option<Tools>,
    /// The tool server's working folder; it is created for its user when it is missing.
    pub workspace: PathBuf,
    /// The `oom_score_adj` of commands, so that the kernel kills them before the agent.
    pub oom_score_adj: Option<i32>,
    /// How much output of one process the agent keeps, in bytes.
    pub ring_bytes: usize,
}

/// The folders of a template's start program, services and their logs; [`Default`] is where templates put them.
#[derive(Debug, Clone)]
pub struct StartFiles {
    /// The folder of `start`, `start.user` and `start.ports`, and of `services`.
    pub folder: PathBuf,
    /// The beginning of log paths: the agent appends `start.log`, `service-80.log` or `tools.log`.
    pub logs: PathBuf,
}

impl StartFiles {
    /// The log file of one program.
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

/// The sockets of egress, bound by the creator of the network namespace.
#[derive(Debug, Default)]
pub struct EgressListeners {
    /// TCP listeners that all connections are redirected to.
    pub redirected: Vec<OwnedFd>,
    /// UDP sockets for DNS queries. Queries over TCP arrive at `redirected` (any address, port 53) or at `dns_tcp`.
    pub dns_udp: Vec<OwnedFd>,
    /// TCP listeners for DNS queries only, where nothing is redirected.
    pub dns_tcp: Vec<OwnedFd>,
    /// A TCP listener for programs that use a proxy (`CONNECT`, whole URLs, SOCKS 5), where nothing is redirected; its address
    /// goes into the proxy variables of every command.
    pub proxy: Option<OwnedFd>,
    /// Raw ICMP and ICMPv6 sockets. The kernel answers blocked packets with ICMP errors, which these sockets see.
    pub blocked_packets: Vec<OwnedFd>,
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
