//! Daytona's cloud.
//!
//! Every sandbox carries labels: the sandbox id, the installation, and the attempt that created it. Only labelled sandboxes are
//! listed, changed and deleted. Daytona's daemon in the sandbox installs and starts the agent; from then on everything goes to the
//! agent through Daytona's proxy, as with any other provider.
//!
//! | file | contents |
//! |---|---|
//! | `api` | requests: key, bounds, failures |
//! | `model` | requests and answers |
//! | `lifecycle` | create, start, stop, delete, and waiting for them |
//! | `toolbox`, `program` | Daytona's daemon in a sandbox, and the program it is given |
//! | `agent`, `port_link`, `instance_cache` | the agent: started, found, reached |
//! | `network`, `snapshots`, `keep_alive` | egress; templates; activity reports that prevent Daytona from stopping sandboxes |
//! | `listing`, `limitations` | lists, page by page; limitations of a sandbox |

mod agent;
mod api;
mod backend;
mod backoff;
mod config;
mod convert;
mod error;
mod instance_cache;
mod keep_alive;
mod lifecycle;
mod limitations;
mod listing;
mod model;
mod network;
mod port_link;
mod program;
mod registration;
mod snapshots;
mod toolbox;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::Method;
use sandyard_core::{Clock, Limits};
use sandyard_provider::{Capabilities, ProviderInfo, Result};

use crate::CallTimeouts;
use crate::background_batches::BackgroundBatches;
use crate::cloud_tools::{Program, ToolServerInstaller};
use api::Api;
pub use config::DaytonaConfig;
use convert::Ownership;
use error::timed_out;
use instance_cache::InstanceCache;
use model::{Configuration, Snapshot};
use registration::CAPABILITIES;
pub use registration::REGISTRATION;

/// Name of this provider in settings and answers.
pub const NAME: &str = "daytona";

/// Class of sandboxes that can be paused with their memory.
const VM_CLASS: &str = "linux-vm";

/// Daytona as a provider.
#[derive(Debug)]
pub struct Daytona {
    info: ProviderInfo,
    shared: Arc<Shared>,
}

/// Shared by calls and agent diallers, which outlive calls.
#[derive(Debug)]
struct Shared {
    api: Api,
    program: Program,
    /// `None` when the program has no tools.
    installer: Option<Arc<ToolServerInstaller>>,
    owner: Ownership,
    /// The operator's choice, which may be restricted for users.
    default_template: String,
    /// Whether sandboxes of the default snapshot can be paused with their memory.
    is_vm: bool,
    /// Prefix of the names of this installation's snapshots at Daytona.
    name_prefix: String,
    target: Option<String>,
    /// Zero for never.
    auto_stop_minutes: u64,
    auto_archive_minutes: u64,
    timeouts: CallTimeouts,
    /// Reported for every instance; Daytona does not count processes.
    pids: u32,
    cache: InstanceCache,
    /// Makes attempts to create an instance unique, also across processes.
    attempts: AtomicU64,
    since_ms: i64,
    /// Reports sandboxes as active.
    activity_batches: BackgroundBatches,
}

impl Daytona {
    /// Connects to the API and reads the default snapshot.
    ///
    /// # Errors
    /// `Invalid` for an invalid address, key or program; `Unavailable` when the API cannot be reached or refuses the key.
    pub async fn connect(config: DaytonaConfig) -> Result<Self> {
        let timeout = config.timeouts.connect;
        let connected = tokio::time::timeout(timeout, Self::connect_now(config)).await;
        connected.unwrap_or_else(|_| Err(timed_out("connect", timeout)))
    }

    async fn connect_now(config: DaytonaConfig) -> Result<Self> {
        let api = Api::new(&config)?;
        let target = config.target.filter(|target| !target.is_empty());
        let location = match &target {
            Some(target) => format!("{NAME}:{}/{target}", api.host()),
            None => format!("{NAME}:{}", api.host()),
        };
        let program = Program::open(&config.program).await?;
        let mut shared = Shared {
            api,
            installer: ToolServerInstaller::of(program.clone(), config.tools_port).map(Arc::new),
            program,
            name_prefix: snapshots::name_prefix(&config.installation),
            owner: Ownership {
                installation: config.installation,
                location,
            },
            default_template: String::new(),
            is_vm: false,
            target,
            auto_stop_minutes: minutes(config.auto_stop),
            auto_archive_minutes: minutes(config.auto_archive),
            timeouts: config.timeouts,
            pids: config.limits.0.pids,
            cache: InstanceCache::default(),
            attempts: AtomicU64::new(0),
            since_ms: Clock::System.now_ms(),
            activity_batches: BackgroundBatches::default(),
        };
        let template = match config.snapshot.filter(|name| !name.is_empty()) {
            Some(name) => name,
            None => shared.default_snapshot().await?,
        };
        let snapshot = shared.snapshot_by_name(&template).await?;
        let class = snapshot
            .as_ref()
            .and_then(|snapshot| snapshot.sandbox_class.as_deref());
        shared.is_vm = class == Some(VM_CLASS);
        shared.default_template.clone_from(&template);
        if let Some(limitation) = shared.api.tls_limitation() {
            tracing::warn!("Daytona: {limitation}");
        }
        let info = shared.info(template, snapshot.as_ref(), &config.limits);
        Ok(Self {
            info,
            shared: Arc::new(shared),
        })
    }
}

impl Shared {
    /// Daytona's own default snapshot.
    async fn default_snapshot(&self) -> Result<String> {
        let request = self.api.to(Method::GET, &["config"]);
        let configuration: Configuration = self.api.ask("config", request).await?;
        let name = configuration
            .default_snapshot
            .filter(|name| !name.is_empty());
        name.ok_or_else(|| {
            let error = error::unreadable("config", "it names no default snapshot");
            error.hint(Some("set SANDYARD_DAYTONA_SNAPSHOT".to_owned()))
        })
    }

    fn info(
        &self,
        template: String,
        snapshot: Option<&Snapshot>,
        (default, max_limits): &(Limits, Limits),
    ) -> ProviderInfo {
        let capabilities = Capabilities {
            can_pause: self.is_vm,
            ..CAPABILITIES
        };
        let default = match snapshot {
            Some(snapshot) if snapshot.cpu > 0.0 && snapshot.mem > 0.0 && snapshot.disk > 0.0 => {
                convert::limits(snapshot.cpu, snapshot.mem, snapshot.disk, self.pids)
            }
            _ => default.clone(),
        };
        ProviderInfo {
            name: NAME.to_owned(),
            location: self.owner.location.clone(),
            capabilities,
            max_limits: Limits {
                memory_bytes: max_limits.memory_bytes.max(default.memory_bytes),
                cpu_millis: max_limits.cpu_millis.max(default.cpu_millis),
                pids: max_limits.pids.max(default.pids),
                disk_bytes: max_limits.disk_bytes.max(default.disk_bytes),
            },
            default_limits: default,
            default_template: template,
            limitations: [
                "memory, processors and disk of a sandbox are set by its snapshot".to_owned(),
                "the number of processes is not bounded".to_owned(),
            ]
            .into_iter()
            .chain(self.api.tls_limitation())
            .collect(),
        }
    }

    fn next_attempt(&self) -> String {
        let number = self.attempts.fetch_add(1, Ordering::Relaxed);
        format!("{:x}-{}-{number}", self.since_ms, std::process::id())
    }
}

/// Minutes, rounded up as at Daytona.
fn minutes(time: Duration) -> u64 {
    time.as_secs().div_ceil(60)
}
