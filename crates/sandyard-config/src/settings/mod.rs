//! The typed result: what the server works with.
//!
//! A default that is larger than its maximum is brought down to it, so that lowering the maximum alone is enough. One that
//! somebody wrote down is a problem instead.

mod auth;
mod e2b;
mod gateway;
mod lifecycle;
mod sandbox;
mod server;
mod stores;

use std::path::PathBuf;

use sandyard_core::{LimitPolicy, Limits, PartialLimits};

pub use auth::{AuthMode, AuthSettings};
pub use e2b::{E2bPort, E2bSettings};
pub use gateway::GatewaySettings;
pub use lifecycle::LifecycleSettings;
pub use sandbox::SandboxSettings;
pub use server::{ServerSettings, Tls};

use crate::kind::sealing_key::SealingKey;
use crate::secret::Secret;
use crate::values::Values;

/// Everything an operator decides.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Where everything is kept; absolute.
    pub data_dir: PathBuf,
    /// Where the server listens and what it bears.
    pub server: ServerSettings,
    /// What E2B's own clients are offered.
    pub e2b: E2bSettings,
    /// Who may come in.
    pub auth: AuthSettings,
    /// URL of the database, without a driver's name: `sqlite:///…` or `postgres://…`. May hold a password.
    pub database_url: Secret,
    /// URL of the Redis server for timers, put together from its parts if need be. May hold a password.
    pub redis_url: Option<Secret>,
    /// What sandboxes are made of.
    pub sandbox: SandboxSettings,
    /// When they pause and go.
    pub lifecycle: LifecycleSettings,
    /// How much they may use and how many there may be.
    pub limits: LimitSettings,
    /// What they reach.
    pub gateway: GatewaySettings,
    /// Seals the values of secrets; `None` for one that is kept in the data directory.
    pub sealing_key: Option<SealingKey>,
    /// How other servers on the same store reach this one; without it they do not.
    pub node_url: Option<String>,
    /// What is written to the log.
    pub log: LogSettings,
    /// How much of the output of commands is kept.
    pub logs: OutputSettings,
    /// Every setting by key, with its origin: providers read their own sections from it.
    pub values: Values,
}

/// `[logs]`: how much of the output of commands is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputSettings {
    /// Bytes kept of one sandbox.
    pub max_per_sandbox: u64,
    /// Bytes kept of all sandboxes.
    pub max_total: u64,
}

/// `[limits]`: how much a sandbox may use, and how many there may be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitSettings {
    /// What was decided about one sandbox; the rest follows from where it runs.
    pub policy: LimitPolicy,
    /// Memory to keep free for this host, in bytes; `None` for a share of its memory.
    pub memory_reserve: Option<u64>,
    /// Sandboxes one user may have; `None` for no bound.
    pub sandboxes_per_user: Option<u64>,
    /// Sandboxes in all; `None` for no bound.
    pub sandboxes: Option<u64>,
}

/// `[log]`: what is written, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogSettings {
    /// A level, or levels by module, as `tracing_subscriber::EnvFilter` reads them.
    pub level: String,
    /// Whether each line is a JSON object.
    pub is_json: bool,
}

impl Settings {
    /// Makes settings of values. Where one is faulty its default stands in, so that checking can go on.
    pub(crate) fn build(all: Values) -> Self {
        let values = &all;
        let server = ServerSettings::build(values);
        Self {
            data_dir: values.path("data_dir").unwrap_or_default(),
            e2b: E2bSettings::build(values, &server),
            server,
            auth: AuthSettings::build(values),
            database_url: stores::database_url(values),
            redis_url: stores::redis_url(values),
            sandbox: SandboxSettings::build(values),
            lifecycle: LifecycleSettings::build(values),
            limits: LimitSettings::build(values),
            gateway: GatewaySettings::build(values),
            sealing_key: values.sealing_key("secrets.key").cloned(),
            node_url: values.text("node.url").map(str::to_owned),
            logs: OutputSettings {
                max_per_sandbox: values.number("logs.max_per_sandbox"),
                max_total: values.number("logs.max_total"),
            },
            log: LogSettings {
                level: values.text("log.level").unwrap_or("info").to_owned(),
                is_json: values.text("log.format") == Some("json"),
            },
            values: all,
        }
    }
}

impl LimitSettings {
    fn build(values: &Values) -> Self {
        let small = |number: Option<u64>| number.and_then(|number| u32::try_from(number).ok());
        let read = |names: [&str; 4]| {
            let [memory, cpu, pids, disk] = names.map(|name| values.given_number(name));
            PartialLimits {
                memory_bytes: memory,
                cpu_millis: small(cpu),
                pids: small(pids),
                disk_bytes: disk,
            }
        };
        Self {
            policy: LimitPolicy {
                default: read(["limits.memory", "limits.cpu", "limits.pids", "limits.disk"]),
                max: read([
                    "limits.max_memory",
                    "limits.max_cpu",
                    "limits.max_pids",
                    "limits.max_disk",
                ]),
            },
            memory_reserve: values.given_number("limits.memory_reserve"),
            sandboxes_per_user: values.count("limits.sandboxes_per_user"),
            sandboxes: values.count("limits.sandboxes"),
        }
    }

    /// The default and maximum limits at a provider that is elsewhere, whose size is not known.
    pub fn elsewhere(&self) -> (Limits, Limits) {
        self.policy.resolve(&Limits::DEFAULT_MAX)
    }
}
