//! Sandboxes of E2B, or of another server with its API.
//!
//! ```text
//! calls ──▶ backend ──▶ api ──▶ https://api.<domain>                one request and its answer, within bounds
//! agent, ports ───────▶ proxy ─▶ https://<port>-<id>.<domain>       E2B's proxy, by name or by headers
//! ```
//!
//! Sandboxes of this installation are identified by their metadata: installation, sandbox, call; snapshots by their names. Nothing
//! else is changed or removed. A sandbox is paused at the end of its timeout, never killed; while this server runs, it extends the
//! timeout. Ports require a token, so that this server decides who has access.
//!
//! | file | contents |
//! |---|---|
//! | `backend` | the calls |
//! | `create` | creates a sandbox exactly once |
//! | `api`, `model` | requests and answers |
//! | `convert`, `network` | translate types and policies |
//! | `sandbox_cache` | tokens and other facts, in memory |
//! | `listing` | completes list entries |
//! | `extend_timeouts` | extends the timeouts of running sandboxes |
//! | `templates`, `sources` | snapshots and templates; which of them a sandbox may start from |
//! | `snapshot_names`, `temporary_snapshots` | owners of snapshots; snapshots that exist for a copy only |
//! | `proxy` | connections to agents and ports |

mod api;
mod backend;
mod config;
mod convert;
mod create;
mod error;
mod extend_timeouts;
mod listing;
mod model;
mod network;
mod proxy;
mod registration;
mod sandbox_cache;
mod snapshot_names;
mod sources;
mod templates;
mod temporary_snapshots;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use http::Method;
use sandyard_agent_client::{AgentClient, Endpoint};
use sandyard_core::{Clock, SandboxState};
use sandyard_provider::{Instance, Provider, ProviderErrorKind, ProviderInfo, Result, Retry, Verb};

pub use config::E2bConfig;
use registration::CAPABILITIES;
pub use registration::REGISTRATION;

use api::{Api, NO_BODY};
use extend_timeouts::TimeoutExtender;
use model::{Connect, Sandbox};
use proxy::{AgentDialler, Proxy};
use sandbox_cache::{Keys, SandboxCache};
use sources::SourceCache;
use temporary_snapshots::TemporarySnapshots;

use crate::cloud_tools::{ToolServer, ToolServerInstaller};

/// Name of this provider in settings and answers.
pub const NAME: &str = "e2b";

/// User of agents without a default user.
const USER: &str = "user";

/// The E2B provider.
pub struct E2b {
    api: Arc<Api>,
    proxy: Arc<Proxy>,
    cache: SandboxCache,
    source_cache: SourceCache,
    timeout_extender: TimeoutExtender,
    temporary_snapshots: Arc<TemporarySnapshots>,
    /// Prefix of the names of this installation's snapshots at E2B.
    snapshot_prefix: String,
    /// `None` when sandboxes have only what their templates contain.
    installer: Option<Arc<ToolServerInstaller>>,
    info: ProviderInfo,
    installation: String,
    attempts: AtomicU64,
    since_ms: i64,
}

impl fmt::Debug for E2b {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("E2b")
            .field("location", &self.info.location)
            .finish_non_exhaustive()
    }
}

impl E2b {
    /// Checks that the API answers. If it does not, it may do so later, so that is not an error.
    ///
    /// # Errors
    /// `Invalid` for invalid addresses or an invalid certificate; `Unavailable` when the key is not accepted.
    pub async fn connect(config: E2bConfig) -> Result<Self> {
        let api = Arc::new(Api::new(&config)?);
        for limitation in config.tls_limitations() {
            tracing::warn!("E2B: {limitation}");
        }
        let tools_port = config.tools_port;
        let installer = |program| ToolServerInstaller::new(program, tools_port).map(Arc::new);
        let provider = Self {
            proxy: Arc::new(Proxy::new(&config)?),
            cache: SandboxCache::default(),
            source_cache: SourceCache::default(),
            timeout_extender: TimeoutExtender::default(),
            temporary_snapshots: Arc::new(TemporarySnapshots::new(
                &config.installation,
                config.timeouts.copy,
            )),
            snapshot_prefix: snapshot_names::prefix(&config.installation),
            info: info(&api, &config),
            installer: config.program.and_then(installer),
            installation: config.installation,
            attempts: AtomicU64::new(0),
            since_ms: Clock::System.now_ms(),
            api,
        };
        match provider.check_health().await {
            Err(error) if error.retry == Retry::Later => {
                tracing::warn!(%error, "E2B does not answer yet");
            }
            other => other?,
        }
        Ok(provider)
    }

    /// A sandbox by id; `None` if it does not exist or belongs to another installation.
    async fn find(&self, verb: Verb, id: &str) -> Result<Option<Sandbox>> {
        if !convert::is_id(id) {
            return Ok(None);
        }
        let answer = self
            .api
            .ask(verb, Method::GET, &["sandboxes", id], NO_BODY)
            .await;
        let found: Sandbox = match answer {
            Err(error) if error.kind == ProviderErrorKind::NotFound => {
                self.cache.forget(id);
                return Ok(None);
            }
            other => other?.read()?,
        };
        if found.sandbox_id != id || !self.api.is_owned(&found) {
            return Ok(None);
        }
        self.cache.record(&found);
        Ok(Some(found))
    }

    /// The same for a sandbox that must exist.
    async fn find_own(&self, verb: Verb, id: &str) -> Result<Sandbox> {
        let found = self.find(verb, id).await?;
        found.ok_or_else(error::no_instance)
    }

    /// Checks that a sandbox belongs to this installation, without a request if that is known.
    async fn check_owned(&self, verb: Verb, id: &str) -> Result<()> {
        if self.cache.keys(id).is_some() {
            return Ok(());
        }
        self.find_own(verb, id).await.map(drop)
    }

    /// The instance of a sandbox that must exist.
    async fn inspect_own(&self, verb: Verb, id: &str) -> Result<Instance> {
        let found = self.find_own(verb, id).await?;
        Ok(self.instance(&found))
    }

    fn instance(&self, sandbox: &Sandbox) -> Instance {
        convert::instance(sandbox, self.info.default_limits.pids)
    }

    /// Resumes a sandbox that is paused, and sets its timeout.
    async fn wake(&self, verb: Verb, id: &str, memory: Option<bool>) -> Result<()> {
        let send = |timeout| async move {
            let auto_pause = true;
            let connect = Connect {
                timeout,
                auto_pause,
                memory,
            };
            let path = ["sandboxes", id, "connect"];
            let answer = self.api.ask(verb, Method::POST, &path, Some(&connect));
            answer.await
        };
        let woken: Sandbox = self.api.with_timeout(send).await?.read()?;
        if woken.sandbox_id == id {
            self.cache.record(&woken);
        }
        Ok(())
    }

    /// The tokens of a sandbox, cached or requested. A paused sandbox is not resumed for them.
    async fn keys(&self, id: &str) -> Result<Keys> {
        let is_complete = |keys: &Keys| keys.agent_token.is_some() && keys.traffic_token.is_some();
        if let Some(keys) = self.cache.keys(id).filter(is_complete) {
            return Ok(keys);
        }
        let found = self.find_own(Verb::Agent, id).await?;
        let keys = self.cache.keys(id).unwrap_or_default();
        if !is_complete(&keys) && convert::state(&found) == SandboxState::Running {
            // Only this answer contains the token of the ports.
            self.wake(Verb::Agent, id, None).await?;
            return Ok(self.cache.keys(id).unwrap_or_default());
        }
        Ok(keys)
    }

    /// A client of a sandbox's agent; the same each time, so that connections are reused.
    async fn client(&self, id: &str, access_token: &str) -> Result<AgentClient> {
        if let Some(client) = self.cache.client(id, access_token) {
            return Ok(client);
        }
        let keys = self.keys(id).await?;
        let (is_complete, needs_user) = (keys.traffic_token.is_some(), keys.needs_user);
        let dialler = AgentDialler::new(self.proxy.clone(), &self.info.location, id, keys)?;
        let client = |dialler: AgentDialler| {
            // Sandboxes are paused with streams open.
            let client = AgentClient::patient(Endpoint::Custom(Arc::new(dialler)));
            match needs_user {
                true => client.as_user(USER),
                false => client,
            }
        };
        let dialler = match &self.installer {
            Some(installer) => {
                let (agent, state) = (client(dialler.clone()), self.cache.tools(id));
                let tools = ToolServer::new(installer.clone(), agent, id, access_token, state);
                dialler.with_tools(tools)
            }
            None => dialler,
        };
        let client = client(dialler);
        if is_complete {
            self.cache.set_client(id, access_token, &client);
        }
        Ok(client)
    }
}

fn info(api: &Api, config: &E2bConfig) -> ProviderInfo {
    let (default, max_limits) = config.limits.clone();
    let limitations = [
        "limits: the template decides them, whatever the request says",
        "network activity, and secrets that sandboxes use without seeing them",
        "imported templates: templates are built with E2B's own tools",
    ];
    ProviderInfo {
        name: NAME.to_owned(),
        location: format!("{NAME}:{}", api.host()),
        capabilities: CAPABILITIES,
        default_limits: default.least_of(&max_limits),
        max_limits,
        default_template: config.template.clone(),
        limitations: limitations
            .map(str::to_owned)
            .into_iter()
            .chain(config.tls_limitations())
            .collect(),
    }
}
