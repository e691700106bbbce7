//! Sandboxes as containers of a Docker daemon, here or elsewhere.
//!
//! | file | holds |
//! |---|---|
//! | `config`, `connect`, `line`, `place` | where the daemon is, the way to it, what it can and cannot |
//! | `backend`, `steps` | the calls; from one state to another |
//! | `make`, `plan`, `body`, `check`, `targets`, `output` | a container from a wish: nothing is left when it fails |
//! | `program` | the agent's program in a volume, so that any image will do |
//! | `link/`, `exec` | the way to the agent of a container |
//! | `labels`, `sealed` | what is written on whatever is made; what of it nobody may read |
//! | `image`, `names`, `pull`, `templates`, `copies` | images: fetched, named, imported, made of containers |
//! | `volumes`, `house` | volumes of users, and the hidden containers through which they are opened |
//! | `meter` | what containers use |
//! | `sweep`, `workspaces` | take away what servers that died have left |
//! | `convert`, `changes`, `error`, `kind`, `date`, `tar` | the daemon's words and ours |
//!
//! Everything that has to be remembered is on the daemon, in labels and names: another server of the same installation goes on
//! with it, and nothing that limitations our labels is ever touched.

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

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

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

/// How this provider is called in settings and answers.
pub const NAME: &str = "docker";

/// How long what is new at the daemon's is left alone by the sweep.
const GRACE: Duration = Duration::from_secs(120);

/// A Docker daemon as a provider.
pub struct Docker {
    shared: Arc<Shared>,
    info: ProviderInfo,
    /// The ways to agents.
    links: Links,
    /// The ways to volumes' files.
    keepers: VolumeHelpers,
    /// What its sandboxes used of late.
    history: UsageHistory,
    sizes: Sizes,
    sweeper: Sweeper,
    /// The way out of its sandboxes; none: nothing leaves them.
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
    /// Reaches a daemon.
    ///
    /// # Errors
    /// `Unavailable` when none answers there, `NotFound` when it does not know the runtime, `Invalid` when the settings make no
    /// sense.
    pub async fn connect(config: DockerConfig) -> Result<Self> {
        let seccomp = read_filter(&config)?;
        let reach = async {
            let (daemon, line) = connect::reach(&config).await?;
            let said = daemon.info().await?;
            let can_bound = volumes::can_bound_volumes(&daemon, &config.installation).await;
            Ok((daemon, line, said, can_bound))
        };
        let verb = Verb::CheckHealth;
        let (daemon, line, said, can_bound) = within(verb, config.timeouts.of(verb), reach).await?;
        let place = DaemonInfo::new(&said, can_bound);
        let info = daemon_info::provider_info(&config, &said, &place)?;
        for lack in &info.limitations {
            tracing::warn!("Docker: {lack}");
        }
        let timeouts = config.timeouts;
        let shared = Arc::new(Shared {
            seal: Seal::new(&config.sealing_key),
            daemon,
            line,
            config,
            place,
            seccomp,
            authority: OnceLock::new(),
            agent: OnceCell::new(),
            fillings: Fillings::default(),
            pulls: Pulls::default(),
        });
        let links = Links::new(Arc::new(Opener(shared.clone())));
        let sizes = Sizes::default();
        let house = DockerVolumeHelpers {
            shared: shared.clone(),
            links: links.clone(),
        };
        let meter = DockerMeter {
            shared: shared.clone(),
            sizes: sizes.clone(),
        };
        Ok(Self {
            keepers: VolumeHelpers::new(house, timeouts),
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

    /// Lets sandboxes out by this gateway, whose records are handed on.
    #[must_use]
    pub fn with_gateway(mut self, gateway: Gateway, flows: mpsc::Receiver<Flow>) -> Self {
        // Set once: nothing was made without it so far.
        let _ = self
            .shared
            .authority
            .set(gateway.authority_pem().to_owned());
        self.gateway = Some(gateway);
        self.flows = Mutex::new(Some(flows));
        // Not before: the certificate goes with it. Whoever asks for the first container finds it done, or waits for the rest.
        let shared = self.shared.clone();
        tokio::spawn(async move {
            if let Err(fault) = shared.agent_volume().await {
                tracing::warn!(
                    "The agent's program is not at Docker's yet: {}",
                    fault.text()
                );
            }
        });
        self
    }

    /// Leaves what is new at the daemon's alone for so long: two minutes when nobody says.
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.sweeper = Sweeper::new(grace);
        self
    }

    /// Keeps what is in `/workspace` for so long when somebody else removes a container: a week when nobody says.
    #[must_use]
    pub fn with_lost_kept(mut self, keep: Duration) -> Self {
        self.sweeper.keep_lost(keep);
        self
    }

    /// Bounds a call in time. What it was doing may still be done.
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
    most: Duration,
    work: impl Future<Output = DaemonResult<T>>,
) -> Result<T> {
    match tokio::time::timeout(most, work).await {
        Ok(done) => done.map_err(|fault: Fault| fault.into_error(verb)),
        Err(_) => Err(error::timed_out(verb, most)),
    }
}

/// The system call filter that is to be used instead of Docker's own.
fn read_filter(config: &DockerConfig) -> Result<Option<String>> {
    let Some(path) = &config.seccomp else {
        return Ok(None);
    };
    let bad = |error: Box<dyn std::error::Error + Send + Sync>| {
        let message = "the system call filter for containers cannot be read";
        let hint = format!(
            "`{}` must be a seccomp profile of Docker's, in JSON",
            path.display()
        );
        let error = ProviderError::new(ProviderErrorKind::Invalid, message).source(error);
        error.hint(Some(hint))
    };
    let text = std::fs::read_to_string(path).map_err(|error| bad(error.into()))?;
    let profile: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| bad(error.into()))?;
    // Without what is there for people's eyes: it goes with every container.
    Ok(Some(profile.to_string()))
}
