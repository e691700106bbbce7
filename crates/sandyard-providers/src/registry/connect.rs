//! Connecting a provider from the settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sandyard_config::Settings;
use sandyard_core::Clock;
use sandyard_core::network::{Flow, Target};
use sandyard_gateway::{FlowLimits, Gateway, GatewaySettings};
use sandyard_provider::layers::{LayerSettings, stack};
use sandyard_provider::{
    Capabilities, Pending, Provider, ProviderError, ProviderErrorKind, ProviderInfo, Result,
};
use tokio::sync::mpsc;

/// How long a server's start waits for a provider that is elsewhere.
const START_TIMEOUT: Duration = Duration::from_secs(5);

/// What a provider is connected with.
#[derive(Clone, Copy, Debug)]
pub struct ConnectContext<'a> {
    /// The settings; a provider reads its own section from [`Settings::values`].
    pub settings: &'a Settings,
    /// The installation whose sandboxes are ours.
    pub installation: &'a str,
    /// Seals what a provider stores outside this server.
    pub sealing_key: [u8; 32],
}

impl ConnectContext<'_> {
    /// The text of a setting; empty when it has none.
    pub fn text(&self, key: &str) -> String {
        self.maybe_text(key).unwrap_or_default()
    }

    /// The text of a setting, if it has one.
    pub fn maybe_text(&self, key: &str) -> Option<String> {
        self.settings.values.text(key).map(str::to_owned)
    }

    /// The content of the file that a setting names, if it names one.
    ///
    /// # Errors
    /// `Invalid` when it cannot be read.
    pub fn maybe_file(&self, key: &str) -> Result<Option<String>> {
        let path = self.settings.values.path(key);
        path.map(|path| read(&path)).transpose()
    }

    /// The program that is installed in sandboxes which others create.
    ///
    /// # Errors
    /// `Failed` when this program cannot be found.
    pub fn program(&self) -> Result<PathBuf> {
        match &self.settings.sandbox.agent_program {
            Some(program) => Ok(program.clone()),
            None => std::env::current_exe().map_err(|error| {
                let message = "failed to find the file of this program";
                ProviderError::new(ProviderErrorKind::Failed, message).source(error)
            }),
        }
    }

    /// Settings of a gateway for the provider's sandboxes. One that is off denies everything, so that programs fail at once instead of
    /// waiting.
    pub fn gateway_settings(&self) -> GatewaySettings {
        let gateway = &self.settings.gateway;
        GatewaySettings {
            reachable: gateway.reachable.clone(),
            denied: match gateway.is_enabled {
                true => gateway.denied.clone(),
                false => vec![Target::everything()],
            },
            nameservers: gateway.nameservers.clone(),
            proxy: gateway.proxy.as_ref().map(|url| url.expose().to_owned()),
            trusted_ca: gateway.trusted_ca.clone(),
            sandbox_ca: self.settings.sandbox.ca_certificates.clone(),
            limits: FlowLimits {
                connections: gateway.max_connections,
                connections_per_second: gateway.connections_per_second,
                queries_per_second: gateway.queries_per_second,
                bytes_per_second: gateway.bytes_per_second,
            },
            max_connections: gateway.max_connections_total,
            ..GatewaySettings::new(self.settings.data_dir.join("gateway"))
        }
    }

    /// The info of a provider that was not reached yet.
    pub fn placeholder(&self, name: &str, template: &str) -> ProviderInfo {
        let (default_limits, max_limits) = self.settings.limits.remote_provider_limits();
        ProviderInfo {
            name: name.to_owned(),
            // Not known before it has answered.
            location: String::new(),
            capabilities: Capabilities::default(),
            default_limits,
            max_limits,
            default_template: template.to_owned(),
            limitations: Vec::new(),
        }
    }
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| {
        let message = format!("failed to read `{}`", path.display());
        ProviderError::new(ProviderErrorKind::Invalid, message).source(error)
    })
}

/// Starts a gateway. Each provider has its own: a gateway knows the sandboxes of one provider.
pub(crate) fn start_gateway(settings: GatewaySettings) -> Result<(Gateway, mpsc::Receiver<Flow>)> {
    Gateway::start(settings).map_err(|error| {
        let message = "failed to start the gateway";
        ProviderError::new(ProviderErrorKind::Failed, message).source(error)
    })
}

/// Puts the default layers around a provider.
pub fn layered(provider: impl Provider) -> Arc<dyn Provider> {
    let layers = LayerSettings::default();
    stack(Arc::new(provider), layers, Clock::System)
}

/// Connects a provider that is elsewhere, now or later: the server starts without it, and its sandboxes are not lost.
pub async fn connect_later<F>(
    placeholder: ProviderInfo,
    connect: impl Fn() -> F + Send + Sync + 'static,
) -> Arc<dyn Provider>
where
    F: Future<Output = Result<Arc<dyn Provider>>> + Send + 'static,
{
    let name = placeholder.name.clone();
    let pending = Pending::new(placeholder, &Clock::System, None, connect);
    let provider = layered(pending);
    let problem = match tokio::time::timeout(START_TIMEOUT, provider.check_health()).await {
        Ok(Ok(())) => return provider,
        Ok(Err(error)) => error,
        Err(_) => ProviderError::new(ProviderErrorKind::TimedOut, "it does not answer"),
    };
    let hint = problem.hint.as_deref();
    let hint = hint.unwrap_or("the server keeps trying to connect");
    tracing::warn!(provider = name, error = %problem, hint, "Provider `{name}` cannot be reached; the server starts without it");
    provider
}
