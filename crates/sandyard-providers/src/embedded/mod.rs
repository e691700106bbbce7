//! Sandboxes of this host's own engine.
//!
//! Whatever is made here carries two labels: the sandbox it is for, and the installation it belongs to. Only such are
//! listed, so that the sandboxes of `sandyard run` and of other servers on the same data directory are left alone.

mod backend;
mod config;
mod convert;
mod error;
mod registration;
mod usage_meter;
mod volume_helper;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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

/// How this provider is called in settings and answers.
pub const NAME: &str = "embedded";

/// The engine of this host as a provider.
#[derive(Debug)]
pub struct Embedded {
    engine: Engine,
    info: ProviderInfo,
    /// The installation whose sandboxes are ours.
    installation: String,
    timeouts: CallTimeouts,
    /// Tells the attempts to make an instance apart, those of earlier processes too.
    attempts: AtomicU64,
    since_ms: i64,
    /// The ways to volumes' files.
    keepers: VolumeHelpers,
    /// What its sandboxes used of late.
    history: UsageHistory,
    /// The way out of its sandboxes; none: nothing leaves them.
    gateway: Option<Gateway>,
    flows: Mutex<Option<mpsc::Receiver<Flow>>>,
}

impl Embedded {
    /// Reaches the engine's launcher, starting one if none runs.
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
                "the engine could not write down the name of its data directory",
            )
            .hint(Some("make room on its disk".to_owned())));
        }
        let installation = config
            .installation
            .unwrap_or_else(|| hello.installation_id.clone());
        let (default, most) = config.limits.resolve(&hello.max_limits);
        let hard = hello.hard_limits.clone().unwrap_or(Limits::DEFAULT_MAX);
        let mut info = info(hello);
        info.max_limits = most.least_of(&hard);
        info.default_limits = default.least_of(&info.max_limits);
        Ok(Self {
            keepers: VolumeHelpers::new(
                EngineVolumeHelpers::new(&engine, &info.default_limits),
                config.timeouts,
            ),
            history: UsageHistory::begin(EngineMeter::new(&engine)),
            engine,
            info,
            installation,
            timeouts: config.timeouts,
            attempts: AtomicU64::new(0),
            since_ms: Clock::System.now_ms(),
            gateway: None,
            flows: Mutex::default(),
        })
    }

    /// Lets sandboxes out by this gateway, whose records are handed on.
    #[must_use]
    pub fn with_gateway(mut self, gateway: Gateway, flows: mpsc::Receiver<Flow>) -> Self {
        self.gateway = Some(gateway);
        self.flows = Mutex::new(Some(flows));
        self
    }

    /// Takes an instance's way out away.
    fn close_way_out(&self, id: &str) {
        if let Some(gateway) = &self.gateway {
            gateway.detach(id);
        }
    }

    /// Bounds a request in time. What it was doing may still be done.
    async fn within<T>(
        &self,
        verb: Verb,
        work: impl Future<Output = Result<T, EngineError>>,
    ) -> Result<T> {
        within(verb, self.timeouts.of(verb), work).await
    }

    /// What is written on the next instance.
    fn marks(&self, sandbox_id: &sandyard_core::SandboxId) -> InstanceLabels {
        let number = self.attempts.fetch_add(1, Ordering::Relaxed);
        InstanceLabels {
            sandbox_id: sandbox_id.clone(),
            installation: self.installation.clone(),
            attempt: format!("{}-{}-{number}", std::process::id(), self.since_ms),
        }
    }

    /// Makes an instance; when the answer got lost, looks whether it is there.
    ///
    /// The process that serves a request holds the connection to its end. So a lost connection means that nothing is
    /// under way any more: either it is on record with our mark, or it is not and asking again makes no second one.
    async fn make<F>(
        &self,
        marks: &InstanceLabels,
        ask: impl Fn() -> F,
    ) -> Result<Instance, EngineError>
    where
        F: Future<Output = Result<SandboxInfo, EngineError>>,
    {
        let made = match ask().await {
            Err(error) if error.kind == sandyard_engine::ErrorKind::Unavailable => {
                tracing::warn!(sandbox.id = %marks.sandbox_id, "Lost the launcher while making an instance");
                match self.find(marks).await? {
                    Some(info) => info,
                    None => ask().await?,
                }
            }
            other => other?,
        };
        Ok(convert::instance(made))
    }

    /// Finds what exactly this attempt has made.
    async fn find(&self, marks: &InstanceLabels) -> Result<Option<SandboxInfo>, EngineError> {
        let all = self.engine.list().await?;
        Ok(all.into_iter().find(|info| marks.are_on(info)))
    }
}

async fn within<T>(
    verb: Verb,
    most: Duration,
    work: impl Future<Output = Result<T, EngineError>>,
) -> Result<T> {
    match tokio::time::timeout(most, work).await {
        Ok(done) => done.map_err(|error| error::provider_error(verb, error)),
        Err(_) => Err(error::timed_out(verb, most)),
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
