//! What an operator decides.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use sandyard_core::network::Target;
use sandyard_tls::AuthorityError;

/// How the gateway works.
#[derive(Clone)]
pub struct GatewaySettings {
    /// Where the authority's key and certificate are kept; made when they are missing.
    pub folder: PathBuf,
    /// Closed addresses and own ones that sandboxes may reach all the same.
    pub reachable: Vec<Target>,
    /// What no sandbox may reach.
    pub denied: Vec<Target>,
    /// Whom to ask for names; the host's own resolvers when empty.
    pub nameservers: Vec<SocketAddr>,
    /// A proxy to go out by (`http://…`, `socks5://…`). None: as `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say.
    pub proxy: Option<String>,
    /// More authorities to trust where the gateway speaks TLS itself: a file of PEM certificates.
    pub trusted_ca: Option<PathBuf>,
    /// What one sandbox may do.
    pub limits: FlowLimits,
    /// Connections of all sandboxes at once.
    pub max_connections: usize,
}

/// What one sandbox may do at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowLimits {
    /// Connections open at once.
    pub connections: usize,
    /// New connections a second; ten times as many may come at once.
    pub connections_per_second: u32,
    /// Look-ups a second; ten times as many may come at once.
    pub queries_per_second: u32,
    /// Bytes a second, both ways together; no limit when none is given.
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
    /// The public internet, by the host's own resolvers.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            reachable: Vec::new(),
            denied: Vec::new(),
            nameservers: Vec::new(),
            proxy: None,
            trusted_ca: None,
            limits: FlowLimits::default(),
            max_connections: 16 * 1024,
        }
    }
}

impl fmt::Debug for GatewaySettings {
    /// A proxy's URL may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewaySettings")
            .field("folder", &self.folder)
            .field("reachable", &self.reachable)
            .field("denied", &self.denied)
            .field("nameservers", &self.nameservers)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// A gateway that cannot start.
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
    #[error("`{url}` is no proxy: {problem}")]
    Proxy {
        /// What was given, without a password.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// There are no threads to be had.
    #[error("cannot start the gateway's threads")]
    Threads(#[source] std::io::Error),
    /// There is nobody to ask for names.
    #[error("cannot set up the resolver: {0}")]
    Resolver(String),
}
