//! E2B in the registry: its settings, and how it is connected from them.

use std::sync::Arc;

use sandyard_config::kind::{HOUR, MINUTE};
use sandyard_config::{Kind, ProviderSettings, Section, Setting};
use sandyard_provider::{Capabilities, Provider};

use super::{E2b, E2bConfig, NAME};
use crate::CallTimeouts;
use crate::registry::{ConnectContext, Connecting, Registration, connect_later};

/// E2B in the registry.
pub static REGISTRATION: Registration = Registration {
    settings: ProviderSettings {
        name: NAME,
        summary: "in E2B's cloud, or another server that speaks its API",
        section: Some(SECTION),
    },
    capabilities: CAPABILITIES,
    connect,
};

pub(super) const CAPABILITIES: Capabilities = Capabilities {
    can_pause: true,
    can_stop: true,
    can_snapshot: true,
    can_fork: true,
    can_manage_templates: true,
    has_external_templates: true,
    can_recall_usage: true,
    ..Capabilities::NONE
};

const SECTION: Section = Section {
    name: "e2b_cloud",
    doc: "Sandboxes at E2B, or at another server with its API, if the provider `e2b` is enabled.",
    settings: &[
        Setting::new("e2b_cloud.api_key", Kind::Text)
            .doc("API key of the E2B account.")
            .env(&["E2B_API_KEY"])
            .secret()
            .required()
            .example("e2b_0123456789abcdef0123456789abcdef01234567"),
        Setting::new("e2b_cloud.domain", Kind::Text)
            .default("e2b.app")
            .doc("Domain of E2B. The API is at `api.<domain>`, sandboxes are at `{port}-{id}.<domain>`.")
            .env(&["E2B_DOMAIN"]),
        Setting::new("e2b_cloud.api_url", Kind::Text)
            .doc("URL of the API.")
            .env(&["E2B_API_URL"])
            .when_unset("`https://api.<domain>`")
            .example("http://127.0.0.1:8101"),
        Setting::new("e2b_cloud.sandbox_url", Kind::Text)
            .doc("URL at which all sandboxes are reached. Headers select the sandbox.")
            .env(&["E2B_SANDBOX_URL"])
            .when_unset("`https://{port}-{id}.<domain>`")
            .example("http://127.0.0.1:8101"),
        Setting::new("e2b_cloud.template", Kind::Text)
            .default("base")
            .doc("E2B template of a sandbox, if the create request names none."),
        Setting::new("e2b_cloud.timeout", Kind::Duration(MINUTE, 24 * HOUR))
            .default("1h")
            .doc("Time after which E2B pauses a sandbox if this server is down, 1 minute to 24 hours. While the server runs, it extends the time."),
        Setting::new("e2b_cloud.trusted_ca", Kind::File)
            .doc("Path of a PEM file with certificate authorities to trust in addition to the host's.")
            .example("/etc/sandyard/e2b-ca.pem"),
    ],
};

fn connect(context: ConnectContext<'_>) -> Connecting<'_> {
    Box::pin(async move {
        let config = config(context)?;
        let placeholder = context.placeholder(NAME, &config.template);
        let connect = move || {
            let config = config.clone();
            async move { Ok(Arc::new(E2b::connect(config).await?) as Arc<dyn Provider>) }
        };
        Ok(connect_later(placeholder, connect).await)
    })
}

fn config(context: ConnectContext<'_>) -> sandyard_provider::Result<E2bConfig> {
    let settings = context.settings;
    // A variable of E2B's own tools, unless the setting itself is set.
    let template = settings.sandbox.template_of(NAME);
    let template = template.filter(|_| !settings.values.is_given("e2b_cloud.template"));
    Ok(E2bConfig {
        api_key: context.text("e2b_cloud.api_key"),
        domain: context.text("e2b_cloud.domain"),
        api_url: context.maybe_text("e2b_cloud.api_url"),
        sandbox_url: context.maybe_text("e2b_cloud.sandbox_url"),
        trusted_ca: context.maybe_file("e2b_cloud.trusted_ca")?,
        template: template.map_or_else(|| context.text("e2b_cloud.template"), str::to_owned),
        program: Some(context.program()?),
        tools_port: settings.sandbox.mcp_port,
        installation: context.installation.to_owned(),
        timeout: settings.values.duration("e2b_cloud.timeout"),
        resolve_to: None,
        limits: settings.limits.remote_provider_limits(),
        timeouts: CallTimeouts::default(),
    })
}
