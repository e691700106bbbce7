//! What every handler can reach.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::http::Extensions;
use sandyard_auth::Auth;
use sandyard_config::Network;
use sandyard_service::{Service, ServiceResult};
use sandyard_store::{Store, Timers};
use tokio::sync::Semaphore;

use crate::audit::Audit;
use crate::rate_limit::RateLimit;
use crate::url_client::UrlClient;
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
    /// Tools that it lists for clients that do not say.
    pub mcp_tools: String,
    /// Directory for the files of projects, where it is not `/workspace`.
    pub workdir: Option<String>,
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
            mcp_tools: String::new(),
            workdir: None,
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
    request_slots: Arc<Semaphore>,
    is_ready: AtomicBool,
    /// Created for the first URL that a caller names.
    url_client: OnceLock<UrlClient>,
    /// State of modules above this one, by type.
    module_states: Mutex<Extensions>,
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
            request_slots: Arc::new(Semaphore::new(
                settings.max_requests.min(Semaphore::MAX_PERMITS),
            )),
            is_ready: AtomicBool::new(true),
            url_client: OnceLock::new(),
            module_states: Mutex::default(),
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

    /// Whether a port is that of the tool server or of VS Code. Access to one of them is full control of the sandbox, so neither is
    /// ever public. The tool server's default port is always included: sandboxes that were created before the setting changed still
    /// have theirs there.
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

    /// The client for URLs that callers name.
    pub(crate) fn url_client(&self) -> ServiceResult<&UrlClient> {
        if let Some(client) = self.0.url_client.get() {
            return Ok(client);
        }
        let settings = &self.0.settings;
        let client = UrlClient::new(&settings.url_hosts, &settings.denied)?;
        Ok(self.0.url_client.get_or_init(|| client))
    }

    /// The state that a module keeps for the lifetime of the server, created on first use. A module owns its type, so that
    /// this one need not know the modules above it.
    pub(crate) fn state<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut states = self
            .0
            .module_states
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        states.get_or_insert_default::<Arc<T>>().clone()
    }

    /// Slots for requests in progress.
    pub(crate) fn request_slots(&self) -> &Arc<Semaphore> {
        &self.0.request_slots
    }
}
