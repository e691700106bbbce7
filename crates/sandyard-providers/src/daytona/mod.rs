//! Sandboxes of Daytona.
//!
//! Whatever is made here carries labels: the sandbox it is for, the installation it belongs to, the attempt that made it. Only
//! such are listed, changed and deleted. Daytona's own daemon inside is used to bring our agent in and to start it; from then on
//! everything goes to the agent through Daytona's proxy, as with any other provider.
//!
//! | file | what it is about |
//! |---|---|
//! | `api` | asking: key, bounds, failures |
//! | `model` | what is sent and answered |
//! | `life` | create, start, stop, delete, and waiting for them |
//! | `toolbox`, `program` | the daemon inside, and the program it is given |
//! | `agent`, `link`, `known` | the agent: started, found, reached |
//! | `network`, `snapshots`, `keep` | the way out; templates; not being stopped for want of use |
//! | `listing`, `limitations` | lists, page by page; what a sandbox has not got |

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

/// How this provider is called in settings and answers.
pub const NAME: &str = "daytona";

/// Sandboxes that can be paused with their memory are of this class.
const VM_CLASS: &str = "linux-vm";

/// Daytona as a provider.
#[derive(Debug)]
pub struct Daytona {
    info: ProviderInfo,
    shared: Arc<Shared>,
}

/// What the calls need, and the ways to agents, which outlive calls.
#[derive(Debug)]
struct Shared {
    api: Api,
    program: Program,
    /// None where the program has no tools.
    kit: Option<Arc<ToolServerInstaller>>,
    whose: Ownership,
    /// What the operator chose; others only by name.
    default_template: String,
    /// Whether what is made from that can be paused with its memory, and with it all that is.
    is_machine: bool,
    /// What the names of snapshots begin with there that this installation made.
    mark: String,
    target: Option<String>,
    /// Zero: never.
    auto_stop_minutes: u64,
    auto_archive_minutes: u64,
    timeouts: CallTimeouts,
    /// Told of every instance; nobody counts processes there.
    pids: u32,
    known: InstanceCache,
    /// Tells the attempts to make an instance apart, those of earlier processes too.
    attempts: AtomicU64,
    since_ms: i64,
    /// Tells what is in use.
    keeping: BackgroundBatches,
}

impl Daytona {
    /// Reaches the API and asks what sandboxes start from there.
    ///
    /// # Errors
    /// `Invalid` for an address, a key or a program that is none; `Unavailable` when the API cannot be reached or does not take
    /// the key.
    pub async fn connect(config: DaytonaConfig) -> Result<Self> {
        let most = config.timeouts.connect;
        let reached = tokio::time::timeout(most, Self::reach(config)).await;
        reached.unwrap_or_else(|_| Err(timed_out("connect", most)))
    }

    async fn reach(config: DaytonaConfig) -> Result<Self> {
        let api = Api::new(&config)?;
        let target = config.target.filter(|target| !target.is_empty());
        let place = match &target {
            Some(target) => format!("{NAME}:{}/{target}", api.host()),
            None => format!("{NAME}:{}", api.host()),
        };
        let program = Program::open(&config.program).await?;
        let mut shared = Shared {
            api,
            kit: ToolServerInstaller::of(program.clone(), config.tools_port).map(Arc::new),
            program,
            mark: snapshots::mark(&config.installation),
            whose: Ownership {
                installation: config.installation,
                place,
            },
            default_template: String::new(),
            is_machine: false,
            target,
            auto_stop_minutes: minutes(config.auto_stop),
            auto_archive_minutes: minutes(config.auto_archive),
            timeouts: config.timeouts,
            pids: config.limits.0.pids,
            known: InstanceCache::default(),
            attempts: AtomicU64::new(0),
            since_ms: Clock::System.now_ms(),
            keeping: BackgroundBatches::default(),
        };
        let template = match config.snapshot.filter(|name| !name.is_empty()) {
            Some(name) => name,
            None => shared.default_snapshot().await?,
        };
        let snapshot = shared.snapshot_by_name(&template).await?;
        let class = snapshot
            .as_ref()
            .and_then(|one| one.sandbox_class.as_deref());
        shared.is_machine = class == Some(VM_CLASS);
        shared.default_template.clone_from(&template);
        if let Some(lack) = shared.api.open_way() {
            tracing::warn!("Daytona: {lack}");
        }
        let info = shared.info(template, snapshot.as_ref(), &config.limits);
        Ok(Self {
            info,
            shared: Arc::new(shared),
        })
    }
}

impl Shared {
    /// What Daytona itself takes when nothing is named.
    async fn default_snapshot(&self) -> Result<String> {
        let asked = self.api.to(Method::GET, &["config"]);
        let told: Configuration = self.api.ask("config", asked).await?;
        let named = told.default_snapshot.filter(|name| !name.is_empty());
        named.ok_or_else(|| {
            let odd = error::odd("config", "it names no default snapshot");
            odd.hint(Some("name one with SANDYARD_DAYTONA_SNAPSHOT".to_owned()))
        })
    }

    fn info(
        &self,
        template: String,
        snapshot: Option<&Snapshot>,
        (default, most): &(Limits, Limits),
    ) -> ProviderInfo {
        let capabilities = Capabilities {
            can_pause: self.is_machine,
            ..CAPABILITIES
        };
        let default = match snapshot {
            Some(told) if told.cpu > 0.0 && told.mem > 0.0 && told.disk > 0.0 => {
                convert::limits(told.cpu, told.mem, told.disk, self.pids)
            }
            _ => default.clone(),
        };
        ProviderInfo {
            name: NAME.to_owned(),
            location: self.whose.place.clone(),
            capabilities,
            max_limits: Limits {
                memory_bytes: most.memory_bytes.max(default.memory_bytes),
                cpu_millis: most.cpu_millis.max(default.cpu_millis),
                pids: most.pids.max(default.pids),
                disk_bytes: most.disk_bytes.max(default.disk_bytes),
            },
            default_limits: default,
            default_template: template,
            limitations: [
                "memory, processors and disk of a sandbox are what its snapshot says".to_owned(),
                "the number of processes is not bounded".to_owned(),
            ]
            .into_iter()
            .chain(self.api.open_way())
            .collect(),
        }
    }

    fn next_attempt(&self) -> String {
        let number = self.attempts.fetch_add(1, Ordering::Relaxed);
        format!("{:x}-{}-{number}", self.since_ms, std::process::id())
    }
}

/// Whole minutes, as they count there.
fn minutes(time: Duration) -> u64 {
    time.as_secs().div_ceil(60)
}
