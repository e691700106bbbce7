//! The engine of this host.
//!
//! Every sandbox carries two labels: the sandbox id and the installation. Only labelled sandboxes are listed, so that those of
//! `sandyard run` and of other servers on the same data directory are left alone.

mod backend;
mod config;
mod convert;
mod error;
mod registration;
mod usage_meter;
mod volume_helper;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use sandyard_core::network::Flow;
use sandyard_core::{Clock, Limits};
use sandyard_engine::{DEFAULT_TEMPLATE, Engine, EngineError, Hello, SandboxInfo};
use sandyard_gateway::Gateway;
use sandyard_provider::{
    Capabilities, Instance, ProviderError, ProviderErrorKind, ProviderInfo, Result, Verb,
};
use tokio::sync::mpsc;

use crate::CallTimeouts;
use crate::usage_history::UsageHistory;
use crate::volume_helper::VolumeHelpers;
pub use config::EmbeddedConfig;
use convert::InstanceLabels;
pub use registration::REGISTRATION;
use usage_meter::EngineMeter;
use volume_helper::EngineVolumeHelpers;

/// Name of this provider in settings and answers.
pub const NAME: &str = "embedded";

/// The engine of this host as a provider.
#[derive(Debug)]
pub struct Embedded {
    engine: Engine,
    info: ProviderInfo,
    /// The installation whose sandboxes are listed.
    installation: String,
    timeouts: CallTimeouts,
    /// Makes attempts to create an instance unique, also across processes.
    attempts: AtomicU64,
    started_ms: i64,
    /// Access to the files of volumes.
    volume_helpers: VolumeHelpers,
    /// Recent usage of its sandboxes.
    history: UsageHistory,
    /// Egress of its sandboxes; `None` when they have none.
    gateway: Option<Gateway>,
    flows: Mutex<Option<mpsc::Receiver<Flow>>>,
}

impl Embedded {
    /// Connects to the engine's launcher, and starts one if none runs.
    ///
    /// # Errors
    /// `Unavailable` when there is none and none can be started.
    pub async fn connect(config: EmbeddedConfig) -> Result<Self> {
        let reach = async {
            let engine = Engine::connect(config.engine).await?;
            let hello = engine.hello().await?;
            Ok((engine, hello))
        };
        let (engine, hello) = within(Verb::CheckHealth, config.timeouts.connect, reach).await?;
        if hello.installation_id.is_empty() {
            return Err(ProviderError::new(
                ProviderErrorKind::Unavailable,
                "the engine could not store the id of its data directory",
            )
            .hint(Some("free some space on its disk".to_owned())));
        }
        let installation = config
            .installation
            .unwrap_or_else(|| hello.installation_id.clone());
        let (default, max_limits) = config.limits.resolve(&hello.max_limits);
        let hard = hello.hard_limits.clone().unwrap_or(Limits::DEFAULT_MAX);
        let mut info = info(hello);
        info.max_limits = max_limits.least_of(&hard);
        info.default_limits = default.least_of(&info.max_limits);
        Ok(Self {
            volume_helpers: VolumeHelpers::new(
                EngineVolumeHelpers::new(&engine, &info.default_limits),
                config.timeouts,
            ),
            history: UsageHistory::begin(EngineMeter::new(&engine)),
            engine,
            info,
            installation,
            timeouts: config.timeouts,
            attempts: AtomicU64::new(0),
            started_ms: Clock::System.now_ms(),
            gateway: None,
            flows: Mutex::default(),
        })
    }

    /// Gives sandboxes egress through a gateway; its flow records are passed on.
    #[must_use]
    pub fn with_gateway(mut self, gateway: Gateway, flows: mpsc::Receiver<Flow>) -> Self {
        self.gateway = Some(gateway);
        self.flows = Mutex::new(Some(flows));
        self
    }

    /// Closes an instance's egress.
    fn close_egress(&self, id: &str) {
        if let Some(gateway) = &self.gateway {
            gateway.detach(id);
        }
    }

    /// Bounds a request in time. Its work may continue.
    async fn within<T>(
        &self,
        verb: Verb,
        work: impl Future<Output = Result<T, EngineError>>,
    ) -> Result<T> {
        within(verb, self.timeouts.of(verb), work).await
    }

    /// Labels of the next instance.
    fn labels(&self, sandbox_id: &sandyard_core::SandboxId) -> InstanceLabels {
        let number = self.attempts.fetch_add(1, Ordering::Relaxed);
        InstanceLabels {
            sandbox_id: sandbox_id.clone(),
            installation: self.installation.clone(),
            attempt: format!("{}-{}-{number}", std::process::id(), self.started_ms),
        }
    }

    /// Creates an instance; if the answer is lost, checks whether it exists.
    ///
    /// The process that serves a request holds the connection until its end. So a lost connection means that nothing is in
    /// progress: either the sandbox exists with these labels, or a second request creates no second one.
    async fn create_once<F>(
        &self,
        labels: &InstanceLabels,
        send: impl Fn() -> F,
    ) -> Result<Instance, EngineError>
    where
        F: Future<Output = Result<SandboxInfo, EngineError>>,
    {
        let info = match send().await {
            Err(error) if error.kind == sandyard_engine::ErrorKind::Unavailable => {
                tracing::warn!(sandbox.id = %labels.sandbox_id, "Lost the connection to the launcher during a create");
                match self.find(labels).await? {
                    Some(info) => info,
                    None => send().await?,
                }
            }
            other => other?,
        };
        Ok(convert::instance(info))
    }

    /// Finds the sandbox that this attempt created.
    async fn find(&self, labels: &InstanceLabels) -> Result<Option<SandboxInfo>, EngineError> {
        let all = self.engine.list().await?;
        Ok(all.into_iter().find(|info| labels.match_sandbox(info)))
    }
}

async fn within<T>(
    verb: Verb,
    timeout: Duration,
    work: impl Future<Output = Result<T, EngineError>>,
) -> Result<T> {
    match tokio::time::timeout(timeout, work).await {
        Ok(done) => done.map_err(|error| error::provider_error(verb, error)),
        Err(_) => Err(error::timed_out(verb, timeout)),
    }
}

fn info(hello: Hello) -> ProviderInfo {
    let capabilities = Capabilities {
        can_limit: hello.can_limit,
        ..REGISTRATION.capabilities
    };
    ProviderInfo {
        name: NAME.to_owned(),
        location: format!("{NAME}:{}", hello.installation_id),
        capabilities,
        default_limits: hello.default_limits,
        max_limits: hello.max_limits,
        default_template: DEFAULT_TEMPLATE.to_owned(),
        limitations: hello.limitations,
    }
}
