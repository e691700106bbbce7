//! Sandboxes of E2B, or of whoever speaks its API.
//!
//! ```text
//! calls ──▶ backend ──▶ api ──▶ https://api.<domain>                one request and its answer, within bounds
//! agent, ports ───────▶ proxy ─▶ https://<port>-<id>.<domain>       E2B's proxy, by name or by headers
//! ```
//!
//! What is ours there is known by its metadata: the installation, the sandbox, the call that made it; a snapshot by its name.
//! Nothing else is changed or removed. Every sandbox is paused when its time is over, never killed; while this server lives its
//! time is put off. Its ports are closed to whoever has no token, so that this server decides who sees them.
//!
//! | file | holds |
//! |---|---|
//! | `backend` | the calls |
//! | `making` | making one, once, whatever happens to the answer |
//! | `api`, `model` | requests and answers |
//! | `convert`, `network` | its words and ours |
//! | `known` | tokens and the like, in memory |
//! | `listing` | what lists do not tell |
//! | `keep` | puts off the end of what runs |
//! | `templates`, `sources` | snapshots and templates; which of them a sandbox may start from |
//! | `marks`, `passing` | whose a snapshot is; snapshots that are only there for a copy |
//! | `proxy` | the way to agents and ports |

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

use api::{Api, NOTHING};
use extend_timeouts::TimeoutExtender;
use model::{Connect, Sandbox};
use proxy::{AgentDialler, Proxy};
use sandbox_cache::{Keys, SandboxCache};
use sources::Seen;
use temporary_snapshots::TemporarySnapshots;

use crate::cloud_tools::{ToolServer, ToolServerInstaller};

/// How this provider is called in settings and answers.
pub const NAME: &str = "e2b";

/// Whom an agent acts for that has no default user.
const USER: &str = "user";

/// Sandboxes of E2B.
pub struct E2b {
    api: Arc<Api>,
    door: Arc<Proxy>,
    known: SandboxCache,
    seen: Seen,
    keeper: TimeoutExtender,
    passing: Arc<TemporarySnapshots>,
    /// What the names of snapshots begin with there that this installation keeps.
    mark: String,
    /// None where sandboxes have only what their templates have.
    kit: Option<Arc<ToolServerInstaller>>,
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
    /// Sees whether the API answers. One that does not for now may later, so that is no reason to fail.
    ///
    /// # Errors
    /// `Invalid` for addresses or a certificate that are none; `Unavailable` when the key is not accepted.
    pub async fn connect(config: E2bConfig) -> Result<Self> {
        let api = Arc::new(Api::new(&config)?);
        for lack in config.open_ways() {
            tracing::warn!("E2B: {lack}");
        }
        let tools_port = config.tools_port;
        let kit = |program| ToolServerInstaller::new(program, tools_port).map(Arc::new);
        let provider = Self {
            door: Arc::new(Proxy::new(&config)?),
            known: SandboxCache::default(),
            seen: Seen::default(),
            keeper: TimeoutExtender::default(),
            passing: Arc::new(TemporarySnapshots::new(
                &config.installation,
                config.timeouts.copy,
            )),
            mark: snapshot_names::mark(&config.installation),
            info: info(&api, &config),
            kit: config.program.and_then(kit),
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

    /// Looks at a sandbox; none: there is none of ours.
    async fn look(&self, verb: Verb, id: &str) -> Result<Option<Sandbox>> {
        if !convert::is_id(id) {
            return Ok(None);
        }
        let asked = self
            .api
            .ask(verb, Method::GET, &["sandboxes", id], NOTHING)
            .await;
        let found: Sandbox = match asked {
            Err(error) if error.kind == ProviderErrorKind::NotFound => {
                self.known.forget(id);
                return Ok(None);
            }
            other => other?.read()?,
        };
        if found.sandbox_id != id || !self.api.is_ours(&found) {
            return Ok(None);
        }
        self.known.note(&found);
        Ok(Some(found))
    }

    /// The same for one that must be there.
    async fn own(&self, verb: Verb, id: &str) -> Result<Sandbox> {
        let found = self.look(verb, id).await?;
        found.ok_or_else(error::no_instance)
    }

    /// Sees that a sandbox is ours; nothing is asked if that is known.
    async fn check_own(&self, verb: Verb, id: &str) -> Result<()> {
        if self.known.keys(id).is_some() {
            return Ok(());
        }
        self.own(verb, id).await.map(drop)
    }

    /// What a sandbox is after something was done to it.
    async fn settled(&self, verb: Verb, id: &str) -> Result<Instance> {
        let found = self.own(verb, id).await?;
        Ok(self.instance(&found))
    }

    fn instance(&self, sandbox: &Sandbox) -> Instance {
        convert::instance(sandbox, self.info.default_limits.pids)
    }

    /// Makes a sandbox run, if it does not, and gives it its time.
    async fn wake(&self, verb: Verb, id: &str, memory: Option<bool>) -> Result<()> {
        let ask = async || {
            let connect = Connect {
                timeout: self.api.timeout(),
                auto_pause: true,
                memory,
            };
            let path = ["sandboxes", id, "connect"];
            self.api
                .ask(verb, Method::POST, &path, Some(&connect))
                .await
        };
        let mut asked = ask().await;
        if let Err(error) = &asked
            && self.api.shorten(error)
        {
            asked = ask().await;
        }
        let woken: Sandbox = asked?.read()?;
        if woken.sandbox_id == id {
            self.known.note(&woken);
        }
        Ok(())
    }

    /// What opens a sandbox: as known, or asked for. A sandbox that rests is not woken for it.
    async fn keys(&self, id: &str) -> Result<Keys> {
        let is_whole = |keys: &Keys| keys.agent_token.is_some() && keys.traffic_token.is_some();
        if let Some(keys) = self.known.keys(id).filter(is_whole) {
            return Ok(keys);
        }
        let found = self.own(Verb::Agent, id).await?;
        let keys = self.known.keys(id).unwrap_or_default();
        if !is_whole(&keys) && convert::state(&found) == SandboxState::Running {
            // Only this tells what opens ports.
            self.wake(Verb::Agent, id, None).await?;
            return Ok(self.known.keys(id).unwrap_or_default());
        }
        Ok(keys)
    }

    /// A client of a sandbox's agent; the same each time, so that connections are used again.
    async fn client(&self, id: &str, access_token: &str) -> Result<AgentClient> {
        if let Some(client) = self.known.client(id, access_token) {
            return Ok(client);
        }
        let keys = self.keys(id).await?;
        let (is_whole, needs_user) = (keys.traffic_token.is_some(), keys.needs_user);
        let way = AgentDialler::new(self.door.clone(), &self.info.location, id, keys)?;
        let client = |way: AgentDialler| {
            // Sandboxes are paused with streams open.
            let client = AgentClient::patient(Endpoint::Custom(Arc::new(way)));
            match needs_user {
                true => client.as_user(USER),
                false => client,
            }
        };
        let way = match &self.kit {
            Some(kit) => {
                let (agent, memory) = (client(way.clone()), self.known.tools(id));
                let tools = ToolServer::new(kit.clone(), agent, id, access_token, memory);
                way.with_tools(tools)
            }
            None => way,
        };
        let client = client(way);
        if is_whole {
            self.known.keep_client(id, access_token, &client);
        }
        Ok(client)
    }
}

fn info(api: &Api, config: &E2bConfig) -> ProviderInfo {
    let (default, most) = config.limits.clone();
    let limitations = [
        "limits: they are the template's, whatever is asked for",
        "records of what sandboxes reach, and secrets that they use without seeing them",
        "a root that no template of E2B's has: templates are built with E2B's own tools",
    ];
    ProviderInfo {
        name: NAME.to_owned(),
        location: format!("{NAME}:{}", api.host()),
        capabilities: CAPABILITIES,
        default_limits: default.least_of(&most),
        max_limits: most,
        default_template: config.template.clone(),
        limitations: limitations
            .map(str::to_owned)
            .into_iter()
            .chain(config.open_ways())
            .collect(),
    }
}
