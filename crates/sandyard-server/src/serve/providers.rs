//! The providers that the settings name, each with its layers around it.
//!
//! The embedded engine must be there when the server starts: it is this host. All others may come later, since they are elsewhere:
//! [`Pending`] reaches them when it can, and until then sandboxes there cannot be used and are not lost.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sandyard_config::Settings;
use sandyard_config::settings::{Provider as Name, PullWhen};
use sandyard_core::size::Size;
use sandyard_core::{Clock, Limits};
use sandyard_gateway::Gateway;
use sandyard_provider::fake::{FakeConfig, FakeProvider};
use sandyard_provider::layers::{LayerSettings, stack};
use sandyard_provider::{Pending, Provider, ProviderError, ProviderErrorKind, ProviderInfo};
use sandyard_providers::daytona::{Daytona, DaytonaConfig};
use sandyard_providers::docker::{Docker, DockerConfig, DockerNetwork, Pull, Workspace};
use sandyard_providers::e2b::{E2b, E2bConfig};
use sandyard_providers::{Embedded, EmbeddedConfig, Times};

use super::settings as convert;
use super::{ServeError, sealing_key};

/// How long a start waits for one that is elsewhere.
const PATIENCE: Duration = Duration::from_secs(5);

/// Reaches all providers, the default one first.
pub(super) async fn connect(
    settings: &Settings,
    installation: &str,
) -> Result<Vec<Arc<dyn Provider>>, ServeError> {
    let mut providers = Vec::new();
    for name in &settings.sandbox.providers {
        let provider = match name {
            Name::Embedded => embedded(settings, installation).await?,
            Name::Docker => docker(settings, installation).await?,
            Name::E2b => e2b(settings, installation).await?,
            Name::Daytona => daytona(settings, installation).await?,
            Name::Fake => fake(settings)?,
        };
        providers.push(provider);
    }
    Ok(providers)
}

async fn embedded(
    settings: &Settings,
    installation: &str,
) -> Result<Arc<dyn Provider>, ServeError> {
    // Before the engine: sandboxes trust the authority that the gateway makes.
    let (gateway, flows) = Gateway::start(convert::gateway(settings))?;
    let mut config = EmbeddedConfig {
        installation: Some(installation.to_owned()),
        limits: settings.limits.policy.clone(),
        ..EmbeddedConfig::new(&settings.data_dir)
    };
    config.engine.tools_port = Some(settings.sandbox.mcp_port);
    config.engine.memory_reserve = settings.limits.memory_reserve;
    config.engine.replaces_other = true;
    let provider = Embedded::connect(config).await;
    let provider = provider.map_err(ServeError::Provider)?;
    note_small_defaults(settings, provider.info());
    // It bounds its own calls, and no network lies between: what is left is to tell of calls, and of an engine that is gone.
    let layers = LayerSettings {
        breaker: LayerSettings::default().breaker,
        ..LayerSettings::none()
    };
    let provider = Arc::new(provider.with_gateway(gateway, flows));
    Ok(stack(provider, layers, Clock::System))
}

/// Says so when a sandbox gets less by default than the documentation says.
fn note_small_defaults(settings: &Settings, info: &ProviderInfo) {
    let documented = settings.limits.policy.default.or(&Limits::default());
    let limits = &info.default_limits;
    if *limits != documented {
        tracing::info!(
            memory = Size(limits.memory_bytes).readable(),
            cpu_millis = limits.cpu_millis,
            pids = limits.pids,
            disk = Size(limits.disk_bytes).readable(),
            "Default limits of a sandbox are lowered to the maxima of this host; `limits.max_*` raises those"
        );
    }
}

async fn docker(settings: &Settings, installation: &str) -> Result<Arc<dyn Provider>, ServeError> {
    let docker = &settings.docker;
    let config = DockerConfig {
        host: docker.host.clone(),
        cert_path: docker
            .is_tls
            .then(|| docker.cert_path.clone().unwrap_or_else(usual_certificates)),
        installation: installation.to_owned(),
        tools_port: settings.sandbox.mcp_port,
        sealing_key: sealing_key::sealing_key(settings)?,
        program: program(settings)?,
        image: docker.image.clone(),
        pull: match docker.pull {
            PullWhen::Missing => Pull::Missing,
            PullWhen::Always => Pull::Always,
            PullWhen::Never => Pull::Never,
        },
        runtime: docker.runtime.clone(),
        network: match &docker.network {
            Some(name) => DockerNetwork::Named(name.clone()),
            None => DockerNetwork::Gateway,
        },
        user: docker.user.clone(),
        has_new_privileges: !docker.is_no_new_privileges,
        seccomp: docker.seccomp.clone(),
        workspace: match docker.has_workspace_volume {
            true => Workspace::Volume,
            false => Workspace::Layer,
        },
        projects: docker.projects.clone(),
        limits: settings.limits.elsewhere(),
        times: Times::default(),
    };
    let unknown = unknown(settings, Name::Docker, &docker.image);
    // One of its own: a gateway knows the sandboxes of one place.
    let gateway = convert::gateway(settings);
    let grace = settings.lifecycle.stranger_grace;
    let connect = move || {
        let (config, gateway) = (config.clone(), gateway.clone());
        async move {
            let docker = Docker::connect(config).await?;
            let (gateway, flows) = Gateway::start(gateway).map_err(no_gateway)?;
            let docker = docker.with_gateway(gateway, flows).with_grace(grace);
            Ok(Arc::new(docker) as Arc<dyn Provider>)
        }
    };
    Ok(pending(unknown, connect).await)
}

async fn e2b(settings: &Settings, installation: &str) -> Result<Arc<dyn Provider>, ServeError> {
    let e2b = &settings.e2b_cloud;
    let config = E2bConfig {
        api_key: exposed(e2b.api_key.as_ref()),
        domain: e2b.domain.clone(),
        api_url: e2b.api_url.clone(),
        sandbox_url: e2b.sandbox_url.clone(),
        trusted_ca: e2b.trusted_ca.as_deref().map(read).transpose()?,
        template: e2b.template.clone(),
        program: Some(program(settings)?),
        tools_port: settings.sandbox.mcp_port,
        installation: installation.to_owned(),
        timeout: e2b.timeout,
        resolve_to: None,
        limits: settings.limits.elsewhere(),
        times: Times::default(),
    };
    let unknown = unknown(settings, Name::E2b, &e2b.template);
    let connect = move || {
        let config = config.clone();
        async move { Ok(Arc::new(E2b::connect(config).await?) as Arc<dyn Provider>) }
    };
    Ok(pending(unknown, connect).await)
}

async fn daytona(settings: &Settings, installation: &str) -> Result<Arc<dyn Provider>, ServeError> {
    let daytona = &settings.daytona;
    let config = DaytonaConfig {
        api_key: exposed(daytona.api_key.as_ref()),
        server_url: daytona.server_url.clone(),
        target: daytona.target.clone(),
        snapshot: daytona.snapshot.clone(),
        trusted_ca: daytona.trusted_ca.as_deref().map(read).transpose()?,
        installation: installation.to_owned(),
        program: program(settings)?,
        tools_port: settings.sandbox.mcp_port,
        auto_stop: daytona.auto_stop,
        auto_archive: daytona.auto_archive,
        limits: settings.limits.elsewhere(),
        times: Times::default(),
    };
    let unknown = unknown(
        settings,
        Name::Daytona,
        daytona.snapshot.as_deref().unwrap_or("default"),
    );
    let connect = move || {
        let config = config.clone();
        async move { Ok(Arc::new(Daytona::connect(config).await?) as Arc<dyn Provider>) }
    };
    Ok(pending(unknown, connect).await)
}

fn fake(settings: &Settings) -> Result<Arc<dyn Provider>, ServeError> {
    let config = FakeConfig {
        rules: settings.fake.rules.clone(),
        seed: settings.fake.seed,
    };
    let fake = FakeProvider::for_users(&config).map_err(ServeError::FakeRules)?;
    Ok(layered(Arc::new(fake)))
}

/// Reaches a provider that is elsewhere, now or later.
async fn pending<F>(
    unknown: ProviderInfo,
    connect: impl Fn() -> F + Send + Sync + 'static,
) -> Arc<dyn Provider>
where
    F: Future<Output = Result<Arc<dyn Provider>, ProviderError>> + Send + 'static,
{
    let name = unknown.name.clone();
    let provider = layered(Arc::new(Pending::new(
        unknown,
        &Clock::System,
        None,
        connect,
    )));
    let problem = match tokio::time::timeout(PATIENCE, provider.check_health()).await {
        Ok(Ok(())) => return provider,
        Ok(Err(error)) => error,
        Err(_) => ProviderError::new(ProviderErrorKind::TimedOut, "it does not answer"),
    };
    let hint = problem
        .hint
        .as_deref()
        .unwrap_or("it is tried again and again");
    tracing::warn!(provider = name, error = %problem, hint, "Provider cannot be reached; the server starts without it");
    provider
}

fn layered(provider: Arc<dyn Provider>) -> Arc<dyn Provider> {
    stack(provider, LayerSettings::default(), Clock::System)
}

/// What is said of a provider that was never reached.
fn unknown(settings: &Settings, name: Name, template: &str) -> ProviderInfo {
    let (default_limits, max_limits) = settings.limits.elsewhere();
    ProviderInfo {
        name: name.as_str().to_owned(),
        // Not known before it has answered.
        location: String::new(),
        capabilities: Default::default(),
        default_limits,
        max_limits,
        default_template: template.to_owned(),
        lacks: Vec::new(),
    }
}

/// What is put into sandboxes that others make.
fn program(settings: &Settings) -> Result<PathBuf, ServeError> {
    match &settings.sandbox.agent_program {
        Some(program) => Ok(program.clone()),
        None => std::env::current_exe().map_err(|source| ServeError::DataDir {
            path: "/proc/self/exe".into(),
            source,
        }),
    }
}

/// Where Docker's own programs look.
fn usual_certificates() -> PathBuf {
    let home = std::env::var_os("HOME").unwrap_or_default();
    Path::new(&home).join(".docker")
}

fn read(path: &Path) -> Result<String, ServeError> {
    std::fs::read_to_string(path).map_err(|source| ServeError::DataDir {
        path: path.to_owned(),
        source,
    })
}

fn exposed(secret: Option<&sandyard_config::Secret>) -> String {
    secret
        .map(|secret| secret.expose().to_owned())
        .unwrap_or_default()
}

fn no_gateway(error: sandyard_gateway::GatewayError) -> ProviderError {
    ProviderError::new(ProviderErrorKind::Failed, "the gateway cannot be opened").source(error)
}
