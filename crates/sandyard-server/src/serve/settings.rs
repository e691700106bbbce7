//! From what an operator decided to what each part needs.

use std::path::Path;
use std::time::Duration;

use sandyard_auth::AuthConfig;
use sandyard_config::settings::{SandboxSettings, Tls};
use sandyard_config::{Settings, is_open};
use sandyard_provider::Ready;
use sandyard_service::ServiceSettings;

use super::e2b;
use crate::app::{AuthMode, ServerSettings};
use crate::listen::{Bound, CertificateSource, ListenSettings};

/// For the HTTP side, once the ports of its `sockets` are known.
pub(crate) fn server(settings: &Settings, sockets: &[Bound]) -> ServerSettings {
    let e2b_domain = e2b::domain(settings, sockets);
    let listeners = settings.server.listeners();
    let is_any_open = listeners.iter().any(|at| is_open(settings, at.ip()));
    ServerSettings {
        data_dir: Some(settings.data_dir.clone()),
        public_url: settings.server.public_url.clone(),
        domain: settings.server.domain.clone(),
        mcp_port: settings.sandbox.mcp_port,
        mcp_tools: settings.sandbox.mcp_tools.clone(),
        workdir: settings.sandbox.workdir.clone(),
        vscode_port: settings.sandbox.code_server_port,
        // An open server has loopback listeners only, so one answer is good for all of them.
        auth_mode: if is_any_open {
            AuthMode::Auto
        } else {
            AuthMode::Required
        },
        max_json_bytes: at_most(settings.server.body_limit_bytes),
        trusted_proxies: settings.server.trusted_proxies.clone(),
        rate_limit: settings.server.rate_limit.map_or(0, at_most_32),
        max_requests: settings.server.max_requests,
        upload_limit_bytes: settings.server.upload_limit_bytes,
        url_hosts: settings.server.url_hosts.clone(),
        denied: settings.gateway.denied.clone(),
        allow_internet_access: settings.gateway.default_policy.allow_internet_access,
        is_e2b_domain_enough: e2b::is_domain_enough(settings, sockets, &e2b_domain),
        // Where a proxy is in front, only the operator knows how clients reach the listener, and tells so by a domain.
        has_e2b_listener: sockets.iter().any(|socket| socket.is_e2b)
            && (settings.server.public_url.is_none() || settings.e2b.domain.is_some()),
        e2b_address: settings
            .e2b
            .hosts
            .first()
            .filter(|host| !host.is_unspecified() && !settings.server.hosts.contains(host))
            .copied(),
        e2b_domain,
        e2b_public_traffic: settings.e2b.is_traffic_public,
    }
}

/// For the life of sandboxes. Secrets are sealed with `sealing_key`.
pub(crate) fn service(settings: &Settings, sealing_key: [u8; 32]) -> ServiceSettings {
    let lifecycle = &settings.lifecycle;
    ServiceSettings {
        default_template: settings.sandbox.template.clone(),
        fallback: settings.sandbox.fallback.clone(),
        template_providers: settings.sandbox.template_providers.clone(),
        user_providers: Some(settings.sandbox.user_providers.clone())
            .filter(|providers| !providers.is_empty()),
        user_templates: settings.sandbox.user_templates.clone(),
        default_timeout: lifecycle.default_timeout,
        max_timeout: lifecycle.max_timeout,
        retention: lifecycle.retention.unwrap_or(Duration::ZERO),
        max_sandboxes_per_user: settings.limits.sandboxes_per_user.map_or(0, at_most_32),
        max_sandboxes: settings.limits.sandboxes.map_or(0, at_most_32),
        command_timeout: lifecycle
            .command_timeout
            .unwrap_or(lifecycle.max_command_timeout),
        max_command_timeout: lifecycle.max_command_timeout,
        orphan_grace: lifecycle.orphan_grace,
        history: lifecycle.history_retention,
        workdir: settings.sandbox.workdir.clone(),
        log_folder: Some(settings.data_dir.join("logs")),
        log_bytes_per_sandbox: settings.logs.max_per_sandbox,
        log_bytes: settings.logs.max_total,
        ready: ready(&settings.sandbox),
        default_network: settings.gateway.default_policy.clone(),
        sealing_key: Some(sealing_key),
        output_bytes: at_most(settings.server.command_output_bytes),
        memory_bytes: settings
            .server
            .buffer_memory_bytes
            .map_or_else(buffer_memory, at_most),
        ..ServiceSettings::default()
    }
}

/// Memory for requests and answers where the operator sets none: a sixteenth of the host's.
fn buffer_memory() -> usize {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = meminfo.lines().find_map(|line| {
        let kib = line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?;
        kib.trim().parse::<u64>().ok()
    });
    let share = total.unwrap_or(0) * 1024 / 16;
    at_most(share.clamp(128 << 20, 512 << 20))
}

/// How many of which templates are kept ready: of the default one, and of others by name.
fn ready(sandbox: &SandboxSettings) -> Vec<Ready> {
    let default = Ready {
        template: None,
        count: sandbox.ready,
    };
    let named = sandbox.ready_templates.iter().map(|(name, count)| Ready {
        template: Some(name.clone()),
        count: *count,
    });
    std::iter::once(default).chain(named).collect()
}

/// For the authentication.
pub(crate) fn auth(settings: &Settings) -> AuthConfig {
    let auth = &settings.auth;
    AuthConfig {
        token_ttl: auth.token_ttl,
        refresh_ttl: auth.refresh_ttl,
        max_failures: auth.lockout_failures.map_or(u32::MAX, at_most_32),
        lock_for: auth.lockout_period,
        jwt_secret: auth
            .jwt_secret
            .as_ref()
            .map(|secret| secret.expose().to_owned()),
        ..AuthConfig::default()
    }
}

/// For the sockets.
pub(crate) fn listen(settings: &Settings) -> ListenSettings {
    ListenSettings {
        grace: settings.server.shutdown_grace,
        proxies: settings.server.trusted_proxies.clone(),
        ..ListenSettings::default()
    }
}

/// Where the certificate comes from; none without TLS.
pub(crate) fn certificate(settings: &Settings) -> Option<CertificateSource> {
    match &settings.server.tls {
        Tls::Off => None,
        Tls::Files { cert, key } => Some(CertificateSource::Files {
            certificate: cert.clone(),
            key: key.clone(),
        }),
        Tls::SelfSigned => Some(CertificateSource::SelfSigned {
            folder: tls_folder(&settings.data_dir),
            domain: settings.server.domain.clone(),
            addresses: [&settings.server.hosts[..], &settings.e2b.hosts].concat(),
        }),
    }
}

fn tls_folder(data_dir: &Path) -> std::path::PathBuf {
    data_dir.join("tls")
}

/// A number that fits, the largest one for those that do not.
fn at_most(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The same in 32 bits.
fn at_most_32(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
