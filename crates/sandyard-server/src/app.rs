//! What every handler can reach.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use sandyard_auth::Auth;
use sandyard_config::Network;
use sandyard_service::{Service, ServiceResult};
use sandyard_store::{Store, Timers};
use tokio::sync::Semaphore;

use crate::e2b::data::DataPlane;
use crate::e2b::volumes::Places;
use crate::files::Outside;
use crate::mcp::Running;
use crate::middleware::audit::Audit;
use crate::middleware::rate_limit::RateLimit;
use crate::write_check::WriteCheck;

/// Whether credentials are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMode {
    /// On loopback the native and Docker-style dialects are open; everywhere else credentials are needed.
    Auto,
    /// Always.
    Required,
}

/// Where tool servers are unless the settings say otherwise.
const USUAL_MCP_PORT: u16 = 6060;

/// Settings of the HTTP side.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The data directory, whose free space `/health` watches.
    pub data_dir: Option<PathBuf>,
    /// Where clients reach this server, if that is not what their `Host` says.
    pub public_url: Option<String>,
    /// Previews are at `{port}-{id}.{domain}`.
    pub domain: String,
    /// Port of the tool server in every sandbox.
    pub mcp_port: u16,
    /// Port of VS Code in every sandbox.
    pub vscode_port: u16,
    /// Whether credentials are asked for.
    pub auth_mode: AuthMode,
    /// Largest JSON body.
    pub max_json_bytes: usize,
    /// Requests a second for one caller; 0: any number.
    pub rate_limit: u32,
    /// Requests worked on at the same time; more are answered 503.
    pub max_requests: usize,
    /// Largest streamed upload; none: as large as the sandbox's disk.
    pub upload_limit_bytes: Option<u64>,
    /// Hosts (`host` or `host:port`) that callers may name in URLs although their addresses are not public.
    pub url_hosts: Vec<String>,
    /// What no sandbox may reach; nor may the server for its callers.
    pub denied: Vec<sandyard_core::network::Target>,
    /// Proxies whose word on who is asking is believed.
    pub trusted_proxies: Vec<Network>,
    /// Whether a sandbox may reach what no entry of its policy names, when the policy does not say.
    pub allow_internet_access: bool,
    /// What E2B's clients put behind `{port}-{id}.` to reach a port, with the port of a listener where that is not the usual one.
    pub e2b_domain: String,
    /// Whether that domain is all that E2B's clients need: `https://api.{e2b_domain}` is this server.
    pub is_e2b_domain_enough: bool,
    /// Whether E2B's clients without a domain reach a listener of their own.
    pub has_e2b_listener: bool,
    /// Where that listener is, if not at the addresses of the others.
    pub e2b_address: Option<IpAddr>,
    /// Whether anybody may open the ports of sandboxes made by E2B's clients, unless their maker says otherwise.
    pub e2b_public_traffic: bool,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            data_dir: None,
            public_url: None,
            domain: "localhost".to_owned(),
            mcp_port: USUAL_MCP_PORT,
            vscode_port: 9000,
            auth_mode: AuthMode::Auto,
            // A file of some size may come inside JSON through write-file.
            max_json_bytes: 64 << 20,
            rate_limit: 0,
            max_requests: 8192,
            upload_limit_bytes: None,
            url_hosts: Vec::new(),
            denied: Vec::new(),
            trusted_proxies: Vec::new(),
            allow_internet_access: true,
            e2b_domain: "localhost".to_owned(),
            is_e2b_domain_enough: false,
            has_e2b_listener: false,
            e2b_address: None,
            e2b_public_traffic: true,
        }
    }
}

/// The socket a request came in by; an extension of every request.
#[derive(Clone, Copy, Debug)]
pub struct Listener {
    /// Its address.
    pub address: SocketAddr,
    /// Whether it speaks TLS.
    pub is_tls: bool,
    /// Whether it is the E2B dialect's own: there paths mean what they mean to E2B's clients.
    pub is_e2b: bool,
    /// Who is at the other end.
    pub peer: SocketAddr,
}

impl Listener {
    /// Says whether only this host can reach it.
    pub fn is_loopback(&self) -> bool {
        self.address.ip().is_loopback()
    }
}

/// What every handler can reach. Cheap to clone.
#[derive(Clone, Debug)]
pub struct App(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    service: Service,
    auth: Auth,
    store: Store,
    timers: Timers,
    settings: ServerSettings,
    audit: Audit,
    write_check: WriteCheck,
    rate_limit: RateLimit,
    places: Arc<Semaphore>,
    is_ready: AtomicBool,
    /// Made when the first URL is named.
    outside: OnceLock<Outside>,
    data_plane: DataPlane,
    listings: Places,
    mcp_calls: Running,
}

impl App {
    /// Puts the pieces together.
    pub fn new(
        service: Service,
        auth: Auth,
        store: Store,
        timers: Timers,
        settings: ServerSettings,
    ) -> Self {
        crate::metrics::recorder();
        Self(Arc::new(Inner {
            audit: Audit::new(store.clone()),
            write_check: WriteCheck::new(store.clone()),
            rate_limit: RateLimit::new(settings.rate_limit),
            places: Arc::new(Semaphore::new(
                settings.max_requests.min(Semaphore::MAX_PERMITS),
            )),
            is_ready: AtomicBool::new(true),
            outside: OnceLock::new(),
            data_plane: DataPlane::default(),
            listings: Places::default(),
            mcp_calls: Running::default(),
            service,
            auth,
            store,
            timers,
            settings,
        }))
    }

    /// The lifecycle.
    pub fn service(&self) -> &Service {
        &self.0.service
    }

    /// Who is asking.
    pub fn auth(&self) -> &Auth {
        &self.0.auth
    }

    /// What is remembered.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// The queue of what is due.
    pub fn timers(&self) -> &Timers {
        &self.0.timers
    }

    /// Settings in force.
    pub fn settings(&self) -> &ServerSettings {
        &self.0.settings
    }

    /// Says whether a port is that of the tool server or of VS Code. Whoever opens one of them can do everything in the sandbox, so
    /// neither is ever everybody's. The tool server's usual port is among them whatever the setting: sandboxes that were made before
    /// it was changed still have theirs there.
    pub(crate) fn is_guarded_port(&self, port: u16) -> bool {
        self.is_tools_port(port) || port == self.0.settings.vscode_port
    }

    /// Says whether a port is that of the tool server, now or of sandboxes made before it was changed.
    pub(crate) fn is_tools_port(&self, port: u16) -> bool {
        let settings = &self.0.settings;
        port != settings.vscode_port && [USUAL_MCP_PORT, settings.mcp_port].contains(&port)
    }

    /// Says in `/health` whether requests are welcome; while it ends, a server says no.
    pub fn set_ready(&self, is_ready: bool) {
        self.0.is_ready.store(is_ready, Ordering::SeqCst);
    }

    /// Whether requests are welcome.
    pub fn is_ready(&self) -> bool {
        self.0.is_ready.load(Ordering::SeqCst)
    }

    /// Waits until the audit is written, or a store that takes no writes has had its time; the last thing before the store is
    /// closed.
    pub async fn flush_audit(&self) {
        self.0.audit.flush_before_exit().await;
    }

    pub(crate) fn audit(&self) -> &Audit {
        &self.0.audit
    }

    pub(crate) fn write_check(&self) -> &WriteCheck {
        &self.0.write_check
    }

    pub(crate) fn rate_limit(&self) -> &RateLimit {
        &self.0.rate_limit
    }

    /// The way to URLs that callers name.
    pub(crate) fn outside(&self) -> ServiceResult<&Outside> {
        if let Some(outside) = self.0.outside.get() {
            return Ok(outside);
        }
        let settings = &self.0.settings;
        let made = Outside::new(&settings.url_hosts, &settings.denied)?;
        Ok(self.0.outside.get_or_init(|| made))
    }

    /// What the E2B dialect's data plane remembers.
    pub(crate) fn data_plane(&self) -> &DataPlane {
        &self.0.data_plane
    }

    /// Places for listings of volumes' folders.
    pub(crate) fn listings(&self) -> &Places {
        &self.0.listings
    }

    /// Calls of tools under way.
    pub(crate) fn mcp_calls(&self) -> &Running {
        &self.0.mcp_calls
    }

    /// Places for requests at work.
    pub(crate) fn places(&self) -> &Arc<Semaphore> {
        &self.0.places
    }
}
