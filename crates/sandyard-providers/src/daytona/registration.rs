//! Daytona in the registry: its settings, and how it is connected from them.

use std::sync::Arc;

use sandyard_config::kind::{DAY, MINUTE};
use sandyard_config::{Kind, ProviderSettings, Section, Setting};
use sandyard_provider::{Capabilities, Provider};

use super::{Daytona, DaytonaConfig, NAME};
use crate::CallTimeouts;
use crate::registry::{ConnectContext, Connecting, Registration, connect_later};

/// Daytona in the registry.
pub static REGISTRATION: Registration = Registration {
    settings: ProviderSettings {
        name: NAME,
        summary: "in Daytona's cloud",
        section: Some(SECTION),
    },
    capabilities: CAPABILITIES,
    connect,
};

/// Only machines can be paused; see [`Daytona::connect`].
pub(super) const CAPABILITIES: Capabilities = Capabilities {
    can_pause: true,
    can_stop: true,
    can_snapshot: true,
    can_manage_templates: true,
    has_external_templates: true,
    ..Capabilities::NONE
};

const SECTION: Section = Section {
    name: "daytona",
    doc: "Sandboxes at Daytona, if the provider `daytona` is enabled.",
    settings: &[
        Setting::new("daytona.api_key", Kind::Text)
            .doc("API key of the Daytona account.")
            .env(&["DAYTONA_API_KEY"])
            .secret()
            .required()
            .example("dtn_0123456789abcdef"),
        Setting::new("daytona.server_url", Kind::Text)
            .default("https://app.daytona.io/api")
            .doc("URL of the API.")
            .env(&["DAYTONA_SERVER_URL", "DAYTONA_API_URL"]),
        Setting::new("daytona.target", Kind::Text)
            .doc("Region of sandboxes.")
            .env(&["DAYTONA_TARGET"])
            .when_unset("the account's default region")
            .example("eu"),
        Setting::new("daytona.snapshot", Kind::Text)
            .doc("Daytona snapshot of a sandbox, if the create request names no template.")
            .when_unset("Daytona's default snapshot")
            .example("python-tools"),
        Setting::new("daytona.auto_stop", Kind::Duration(MINUTE, 30 * DAY))
            .default("1h")
            .doc("Idle time after which Daytona pauses a sandbox, or stops it if it cannot be paused, if this server is down, 1 minute \
             to 30 days. Rounded up to minutes."),
        Setting::new("daytona.auto_archive", Kind::Duration(MINUTE, 30 * DAY))
            .default("7d")
            .doc("Time after which Daytona archives a stopped sandbox, 1 minute to 30 days. An archived sandbox costs less and takes longer \
             to start. Rounded up to minutes."),
        Setting::new("daytona.trusted_ca", Kind::File)
            .doc("Path of a PEM file with certificate authorities to trust in addition to the host's.")
            .example("/etc/sandyard/daytona-ca.pem"),
    ],
};

fn connect(context: ConnectContext<'_>) -> Connecting<'_> {
    Box::pin(async move {
        let config = config(context)?;
        let template = config.snapshot.as_deref().unwrap_or("default");
        let placeholder = context.placeholder(NAME, template);
        let connect = move || {
            let config = config.clone();
            async move { Ok(Arc::new(Daytona::connect(config).await?) as Arc<dyn Provider>) }
        };
        Ok(connect_later(placeholder, connect).await)
    })
}

fn config(context: ConnectContext<'_>) -> sandyard_provider::Result<DaytonaConfig> {
    let values = &context.settings.values;
    Ok(DaytonaConfig {
        api_key: context.text("daytona.api_key"),
        server_url: context.text("daytona.server_url"),
        target: context.maybe_text("daytona.target"),
        snapshot: context.maybe_text("daytona.snapshot"),
        trusted_ca: context.maybe_file("daytona.trusted_ca")?,
        installation: context.installation.to_owned(),
        program: context.program()?,
        tools_port: context.settings.sandbox.mcp_port,
        auto_stop: values.duration("daytona.auto_stop"),
        auto_archive: values.duration("daytona.auto_archive"),
        limits: context.settings.limits.remote_provider_limits(),
        timeouts: CallTimeouts::default(),
    })
}
