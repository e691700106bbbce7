//! Sandboxes as containers of a Docker daemon, here or elsewhere.
//!
//! | file | contents |
//! |---|---|
//! | `config`, `connect`, `connection`, `daemon_info` | the daemon's address, connections to it, what it supports |
//! | `backend`, `transitions` | the calls; changes of state |
//! | `create`, `plan`, `body`, `check`, `mount_targets`, `output` | creates a container from a spec; a failed create leaves nothing
//! |
//! | `program` | the agent's program in a volume, so that any image works |
//! | `link/`, `exec` | connections to the agent of a container |
//! | `labels`, `sealed` | labels of everything that is created; the encrypted one |
//! | `image`, `names`, `pull`, `templates`, `copies` | images: pulled, named, imported, created from containers |
//! | `volumes`, `volume_helper` | users' volumes, and the hidden containers through which they are opened |
//! | `usage_meter` | usage of containers |
//! | `sweep`, `workspaces` | removes what crashed servers left behind |
//! | `convert`, `changes`, `error`, `error_kind`, `tar` | translate the daemon's types |
//!
//! All state is on the daemon, in labels and names: another server of the same installation can continue with it, and objects
//! without the labels are never changed.

mod backend;
mod body;
mod changes;
mod check;
mod config;
mod connect;
mod connection;
mod convert;
mod copies;
mod create;
mod daemon;
mod daemon_info;
mod error;
mod error_kind;
mod exec;
mod image;
mod labels;
mod link;
mod mount_targets;
mod names;
mod output;
mod plan;
mod program;
mod pull;
mod registration;
mod sealed;
mod sweep;
mod tar;
mod templates;
mod transitions;
mod unstarted;
mod usage_meter;
mod volume_helper;
mod volumes;
mod workspaces;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use sandyard_core::network::Flow;
use sandyard_gateway::Gateway;
use sandyard_provider::{ProviderError, ProviderErrorKind, ProviderInfo, Result, Verb};
use tokio::sync::{OnceCell, mpsc};

use crate::usage_history::UsageHistory;
use crate::volume_helper::VolumeHelpers;
pub use config::{DockerConfig, DockerNetwork, Pull, Workspace};
use daemon::Shared;
use daemon_info::DaemonInfo;
use error::{DaemonResult, Fault};
use exec::Opener;
use link::Links;
use program::Fillings;
use pull::Pulls;
pub use registration::REGISTRATION;
use sealed::Seal;
use sweep::Sweeper;
use usage_meter::{DockerMeter, Sizes};
use volume_helper::DockerVolumeHelpers;

/// Name of this provider in settings and answers.
pub const NAME: &str = "docker";

/// How long the sweep ignores new objects.
const GRACE: Duration = Duration::from_secs(120);

/// A Docker daemon as a provider.
pub struct Docker {
    shared: Arc<Shared>,
    info: ProviderInfo,
    /// Connections to agents.
    links: Links,
    /// Access to the files of volumes.
    volume_helpers: VolumeHelpers,
    /// Recent usage of its sandboxes.
    history: UsageHistory,
    sizes: Sizes,
    sweeper: Sweeper,
    /// Egress of its sandboxes; `None` when they have none.
    gateway: Option<Gateway>,
    flows: Mutex<Option<mpsc::Receiver<Flow>>>,
}

impl std::fmt::Debug for Docker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Docker")
            .field("location", &self.info.location)
            .finish_non_exhaustive()
    }
}

impl Docker {
    /// Connects to a daemon.
    ///
    /// # Errors
    /// `Unavailable` when no daemon answers, `NotFound` when it does not know the runtime, `Invalid` for invalid settings.
    pub async fn connect(config: DockerConfig) -> Result<Self> {
        let seccomp = read_filter(&config)?;
        let connect = async {
            let (daemon, connection) = connect::connect_daemon(&config).await?;
            let system_info = daemon.info().await?;
            let can_bound_volumes = volumes::can_bound_volumes(&daemon, &config.installation).await;
            Ok((daemon, connection, system_info, can_bound_volumes))
        };
        let verb = Verb::CheckHealth;
        let (daemon, connection, system_info, can_bound_volumes) =
            within(verb, config.timeouts.of(verb), connect).await?;
        let daemon_info = DaemonInfo::new(&system_info, can_bound_volumes);
        let info = daemon_info::provider_info(&config, &system_info, &daemon_info)?;
        for limitation in &info.limitations {
            tracing::warn!("Docker: {limitation}");
        }
        let timeouts = config.timeouts;
        let shared = Arc::new(Shared {
            seal: Seal::new(&config.sealing_key),
            daemon,
            connection,
            config,
            daemon_info,
            seccomp,
            authority: OnceLock::new(),
            agent: OnceCell::new(),
            fillings: Fillings::default(),
            pulls: Pulls::default(),
        });
        let links = Links::new(Arc::new(Opener(shared.clone())));
        let sizes = Sizes::default();
        let backend = DockerVolumeHelpers {
            shared: shared.clone(),
            links: links.clone(),
        };
        let meter = DockerMeter {
            shared: shared.clone(),
            sizes: sizes.clone(),
        };
        Ok(Self {
            volume_helpers: VolumeHelpers::new(backend, timeouts),
            history: UsageHistory::begin(meter),
            sweeper: Sweeper::new(GRACE),
            shared,
            info,
            links,
            sizes,
            gateway: None,
            flows: Mutex::default(),
        })
    }

    /// Gives sandboxes egress through a gateway; its flow records are passed on.
    #[must_use]
    pub fn with_gateway(mut self, gateway: Gateway, flows: mpsc::Receiver<Flow>) -> Self {
        // Set once, before any container is created.
        let _ = self.shared.authority.set(gateway.sandbox_pem().to_owned());
        self.gateway = Some(gateway);
        self.flows = Mutex::new(Some(flows));
        // Uploads the program in advance, with the certificate. The first create waits for the rest of it.
        let shared = self.shared.clone();
        tokio::spawn(async move {
            if let Err(fault) = shared.agent_volume().await {
                tracing::warn!(
                    "Failed to upload the agent's program to Docker: {}",
                    fault.text()
                );
            }
        });
        self
    }

    /// Sets how long the sweep ignores new objects (default: two minutes).
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.sweeper = Sweeper::new(grace);
        self
    }

    /// Sets how long the files of `/workspace` are retained when someone else removed the container (default: one week).
    #[must_use]
    pub fn with_lost_retention(mut self, retention: Duration) -> Self {
        self.sweeper.set_lost_retention(retention);
        self
    }

    /// Bounds a call in time. Its work may continue.
    async fn within<T>(
        &self,
        verb: Verb,
        work: impl Future<Output = DaemonResult<T>>,
    ) -> Result<T> {
        within(verb, self.shared.config.timeouts.of(verb), work).await
    }
}

async fn within<T>(
    verb: Verb,
    timeout: Duration,
    work: impl Future<Output = DaemonResult<T>>,
) -> Result<T> {
    match tokio::time::timeout(timeout, work).await {
        Ok(done) => done.map_err(|fault: Fault| fault.into_error(verb)),
        Err(_) => Err(error::timed_out(verb, timeout)),
    }
}

/// The seccomp profile that replaces Docker's own.
fn read_filter(config: &DockerConfig) -> Result<Option<String>> {
    let Some(path) = &config.seccomp else {
        return Ok(None);
    };
    let bad = |error: Box<dyn std::error::Error + Send + Sync>| {
        let message = "the seccomp profile for containers cannot be read";
        let hint = format!(
            "`{}` must be a seccomp profile in Docker's JSON format",
            path.display()
        );
        let error = ProviderError::new(ProviderErrorKind::Invalid, message).source(error);
        error.hint(Some(hint))
    };
    let text = std::fs::read_to_string(path).map_err(|error| bad(error.into()))?;
    let profile: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| bad(error.into()))?;
    // Without formatting, because every container contains it.
    Ok(Some(profile.to_string()))
}
