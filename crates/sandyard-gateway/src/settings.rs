//! The operator's settings.

use std::net::SocketAddr;
use std::path::PathBuf;

use sandyard_core::network::Target;
use sandyard_tls::AuthorityError;

/// Settings of the gateway.
#[derive(Clone)]
pub struct GatewaySettings {
    /// The folder of the certificate authority's files; they are created when they are missing.
    pub folder: PathBuf,
    /// Closed addresses, and addresses of this host, that sandboxes may reach anyway.
    pub reachable: Vec<Target>,
    /// Targets that no sandbox may reach.
    pub denied: Vec<Target>,
    /// DNS servers; empty: those of the host.
    pub nameservers: Vec<SocketAddr>,
    /// A proxy for all connections (`http://…`, `socks5://…`). `None`: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` apply.
    pub proxy: Option<String>,
    /// A PEM file of additional certificates to trust where the gateway itself uses TLS.
    pub trusted_ca: Option<PathBuf>,
    /// A PEM file of certificates that sandboxes trust, and so does the gateway.
    pub sandbox_ca: Option<PathBuf>,
    /// Limits of one sandbox.
    pub limits: FlowLimits,
    /// Maximum number of open connections of all sandboxes.
    pub max_connections: usize,
}

/// Limits of one sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowLimits {
    /// Maximum number of open connections.
    pub connections: usize,
    /// New connections per second; bursts may be ten times as many.
    pub connections_per_second: u32,
    /// DNS queries per second; bursts may be ten times as many.
    pub queries_per_second: u32,
    /// Bytes per second in both directions together; `None`: no limit.
    pub bytes_per_second: Option<u64>,
}

impl Default for FlowLimits {
    fn default() -> Self {
        Self {
            connections: 2048,
            connections_per_second: 500,
            queries_per_second: 200,
            bytes_per_second: None,
        }
    }
}

impl GatewaySettings {
    /// Default settings: the public internet, with the host's DNS servers.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            reachable: Vec::new(),
            denied: Vec::new(),
            nameservers: Vec::new(),
            proxy: None,
            trusted_ca: None,
            sandbox_ca: None,
            limits: FlowLimits::default(),
            max_connections: 16 * 1024,
        }
    }
}

// A proxy's URL may hold a password.
sandyard_core::debug_fields!(GatewaySettings: folder, reachable, denied, nameservers, limits);

/// Why the gateway cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// The file of trusted certificates cannot be used.
    #[error("cannot use `{path}`")]
    File {
        /// The file.
        path: PathBuf,
        /// Why it cannot be used.
        #[source]
        source: std::io::Error,
    },
    /// The certificate authority cannot be opened.
    #[error("cannot use the gateway's certificate authority: {0}")]
    Authority(#[from] AuthorityError),
    /// The authority's key cannot be used for TLS.
    #[error("cannot use the key of the gateway's certificates")]
    Key(#[source] rustls::Error),
    /// The proxy cannot be used.
    #[error("`{url}` is not a valid proxy URL: {problem}")]
    Proxy {
        /// The URL, without a password.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The threads cannot be started.
    #[error("cannot start the gateway's threads")]
    Threads(#[source] std::io::Error),
    /// The DNS resolver cannot be set up.
    #[error("cannot set up the resolver: {0}")]
    Resolver(String),
}
