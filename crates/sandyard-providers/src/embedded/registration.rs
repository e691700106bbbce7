//! The embedded engine in the registry, and how it is connected from the settings.

use std::sync::Arc;

use sandyard_config::{ProviderSettings, Settings};
use sandyard_core::size::Size;
use sandyard_core::{Clock, Limits};
use sandyard_provider::layers::{LayerSettings, stack};
use sandyard_provider::{Capabilities, Provider, ProviderInfo};

use super::{Embedded, EmbeddedConfig, NAME};
use crate::registry::{ConnectContext, Connecting, Registration, start_gateway};

/// The embedded engine in the registry. It has no section: the server's general settings apply to it.
pub static REGISTRATION: Registration = Registration {
    settings: ProviderSettings {
        name: NAME,
        summary: "on this host, without Docker",
        section: None,
    },
    capabilities: Capabilities {
        has_external_templates: false,
        ..Capabilities::ALL
    },
    connect,
};

/// The engine must be available when the server starts: it runs on this host.
fn connect(context: ConnectContext<'_>) -> Connecting<'_> {
    Box::pin(async move {
        let settings = context.settings;
        // Before the engine: sandboxes trust the certificate authority that the gateway creates.
        let (gateway, flows) = start_gateway(context.gateway_settings())?;
        let mut config = EmbeddedConfig {
            installation: Some(context.installation.to_owned()),
            limits: settings.limits.policy.clone(),
            ..EmbeddedConfig::new(&settings.data_dir)
        };
        config.engine.tools_port = Some(settings.sandbox.mcp_port);
        config.engine.memory_reserve = settings.limits.memory_reserve;
        config.engine.replaces_other = true;
        let provider = Embedded::connect(config).await?;
        log_lowered_defaults(settings, provider.info());
        // It bounds its own calls, and there is no network in between. What remains is tracing, and noticing that the engine does
        // not answer.
        let layers = LayerSettings {
            breaker: LayerSettings::default().breaker,
            ..LayerSettings::none()
        };
        let provider = Arc::new(provider.with_gateway(gateway, flows));
        Ok(stack(provider, layers, Clock::System))
    })
}

/// Logs default limits that are lower than documented.
fn log_lowered_defaults(settings: &Settings, info: &ProviderInfo) {
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
