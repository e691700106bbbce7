//! What no value can tell alone: settings that do not go together.

use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::Report;
use crate::binding::check_binding;
use crate::kind::Kind;
use crate::problem::Problem;
use crate::setting::{ProviderSettings, Setting};
use crate::settings::{E2bPort, Settings, Tls};
use crate::source::Origin;
use crate::table::Table;
use crate::values::Values;

/// Checks how settings fit together. Each value on its own is valid already.
pub(super) fn check(settings: &Settings, table: &Table, report: &mut Report) {
    let values = &settings.values;
    let used: Vec<(&ProviderSettings, &Setting)> = provider_settings(settings, table).collect();
    let mut errors = vec![];
    for (small, large) in PAIRS {
        errors.extend(order(values, small, large));
    }
    errors.extend(
        used.iter()
            .filter_map(|(provider, setting)| missing(values, provider, setting)),
    );
    errors.extend(tls(values));
    errors.extend(e2b_port(settings));
    errors.extend(e2b_domain(settings));
    errors.extend(files(settings, values, &used));
    errors.extend(check_binding(settings).err().map(|problem| *problem));
    report.errors.extend(
        errors
            .into_iter()
            .filter_map(|problem| located(problem, values)),
    );
    let warnings = [
        clear_text(settings),
        lone_redis(values),
        idle_gateway(settings, values),
        lone_sealing_key(settings),
        store_of_another(values),
    ];
    report.warnings.extend(
        warnings
            .into_iter()
            .flatten()
            .filter_map(|problem| located(problem, values)),
    );
}

/// Adds where the value comes from. Drops the problem if the setting's own value is invalid: that is reported already, and a
/// problem that follows from the default in its place would only confuse.
fn located(problem: Problem, values: &Values) -> Option<Problem> {
    let Some(key) = &problem.key else {
        return Some(problem);
    };
    let origin = values.origin(key).clone();
    (!values.is_faulty(key)).then(|| problem.at(origin))
}

/// A `.env` file is often an app's, whose own database must not be taken for the store without a word.
fn store_of_another(values: &Values) -> Option<Problem> {
    const KEY: &str = "database.url";
    let Origin::EnvFile { name, .. } = values.origin(KEY) else {
        return None;
    };
    (!name.starts_with("SANDYARD_")).then(|| {
        Problem::new("this database comes from a variable that other programs use as well")
            .about(KEY)
            .hint("if it belongs to another program, start the server in another directory; if it is meant for this server, set SANDYARD_DATABASE_URL")
    })
}

/// What is given by default, and the most that may be asked for.
const PAIRS: [(&str, &str); 8] = [
    ("lifecycle.default_timeout", "lifecycle.max_timeout"),
    ("lifecycle.command_timeout", "lifecycle.max_command_timeout"),
    ("auth.token_ttl", "auth.refresh_ttl"),
    ("limits.memory", "limits.max_memory"),
    ("limits.cpu", "limits.max_cpu"),
    ("limits.pids", "limits.max_pids"),
    ("limits.disk", "limits.max_disk"),
    ("gateway.max_connections", "gateway.max_connections_total"),
];

/// The smaller one was said and is larger. One that nobody said is brought down instead: see [`Settings`].
fn order(values: &Values, small: &str, large: &str) -> Option<Problem> {
    let is_wrong = values.is_given(small)
        && !values.is_faulty(large)
        && values
            .amount(large)
            .is_some_and(|max| values.amount(small) > Some(max));
    is_wrong.then(|| {
        let (text, max) = (values.masked_text(small), values.masked_text(large));
        Problem::new(format!("`{text}` exceeds `{large}`, which is `{max}`"))
            .about(small)
            .hint(format!("raise `{large}` as well"))
    })
}

/// The settings of all enabled providers. Settings of a provider that is not enabled are not checked.
fn provider_settings<'a>(
    settings: &'a Settings,
    table: &'a Table,
) -> impl Iterator<Item = (&'a ProviderSettings, &'a Setting)> {
    let providers = table.providers().iter().copied();
    let used = providers.filter(|provider| settings.sandbox.has(provider.name));
    used.flat_map(|provider| {
        let sections = provider.section.iter();
        let settings = sections.flat_map(|section| section.settings);
        settings.map(move |setting| (provider, setting))
    })
}

/// A provider cannot be used without this setting: a cloud requires an API key.
fn missing(values: &Values, provider: &ProviderSettings, setting: &Setting) -> Option<Problem> {
    if !setting.required || values.text(setting.key).is_some() {
        return None;
    }
    let (key, name) = (setting.key, provider.name);
    let own = setting.own_variable();
    let variable = setting.env.first().map_or(own.as_str(), |name| name);
    let problem = Problem::new(format!(
        "`{key}` is required, because the provider `{name}` is enabled"
    ));
    let hint = format!("set {variable}, or do not enable `{name}`");
    Some(problem.about(key).hint(hint))
}

fn tls(values: &Values) -> Option<Problem> {
    let (cert, key) = ("server.tls_cert", "server.tls_key");
    let self_signed = "server.tls_self_signed";
    match (values.text(cert), values.text(key)) {
        (Some(_), Some(_)) if values.switch(self_signed) => Some(
            Problem::new(format!("conflicts with `{cert}`"))
                .about(self_signed)
                .hint("set only one of the two"),
        ),
        (Some(_), None) => Some(Problem::new(format!("requires `{key}`")).about(cert)),
        (None, Some(_)) => Some(Problem::new(format!("requires `{cert}`")).about(key)),
        _ => None,
    }
}

/// The server's own listeners have it.
fn e2b_port(settings: &Settings) -> Option<Problem> {
    let E2bPort::Chosen(port) = settings.e2b.port else {
        return None;
    };
    let own = settings.server.listeners();
    let is_taken = |at: &SocketAddr| port != 0 && own.contains(at);
    settings.e2b.listeners().iter().any(is_taken).then(|| {
        Problem::new(format!("`{port}` is also `server.port`"))
            .about("e2b.port")
            .hint("choose another port: E2B's API needs a listener of its own")
    })
}

/// Nothing would answer below another name.
fn e2b_domain(settings: &Settings) -> Option<Problem> {
    let domain = settings.e2b.domain.as_deref()?;
    let name = domain.split(':').next().unwrap_or(domain);
    let own = settings.server.domain.as_str();
    (name != own && name != "localhost").then(|| {
        Problem::new(format!(
            "`{name}` differs from `server.domain`, which is `{own}`"
        ))
        .about("e2b.domain")
        .hint(format!("set `server.domain` to `{name}`"))
    })
}

fn files(
    settings: &Settings,
    values: &Values,
    used: &[(&ProviderSettings, &Setting)],
) -> Vec<Problem> {
    let (cert, key) = match &settings.server.tls {
        Tls::Files { cert, key } => (Some(cert), Some(key)),
        Tls::Off | Tls::SelfSigned => (None, None),
    };
    let check = |name: &str, path: Option<&PathBuf>| {
        let error = File::open(path?).err()?;
        let text = values.masked_text(name);
        Some(Problem::new(format!("failed to open `{text}`: {error}")).about(name))
    };
    let agent_program = settings.sandbox.agent_program.as_ref();
    let own = [
        ("server.tls_cert", cert),
        ("server.tls_key", key),
        ("gateway.trusted_ca", settings.gateway.trusted_ca.as_ref()),
        ("sandbox.agent_program", agent_program),
    ];
    let own = own.into_iter().filter_map(|(name, path)| check(name, path));
    let files = used.iter().map(|(_, setting)| setting);
    let files = files.filter(|setting| setting.kind == Kind::File);
    let files = files.filter_map(|setting| check(setting.key, values.path(setting.key).as_ref()));
    own.chain(files).collect()
}

/// Keys and passwords would cross the network readable. A proxy in front may speak TLS, so this is no error.
fn clear_text(settings: &Settings) -> Option<Problem> {
    let server = &settings.server;
    let listeners = [server.listeners(), settings.e2b.listeners()].concat();
    let foreign = listeners
        .iter()
        .position(|at| !at.ip().to_canonical().is_loopback());
    let is_proxied = !server.trusted_proxies.is_empty()
        || server
            .public_url
            .as_deref()
            .is_some_and(|url| url.starts_with("https:"));
    let foreign = foreign.filter(|_| server.tls == Tls::Off && !is_proxied)?;
    let key = match foreign < server.listeners().len() {
        true => "server.host",
        false => "e2b.host",
    };
    Some(
        Problem::new("keys and passwords are sent unencrypted over the network, because TLS is off")
            .about(key)
            .hint("set `server.tls_cert` and `server.tls_key`, or `server.tls_self_signed`, or put a TLS proxy in front and name it in `server.trusted_proxies`"),
    )
}

fn lone_redis(values: &Values) -> Option<Problem> {
    let is_named = values.is_given("redis.url") || values.is_given("redis.host");
    let lone = ["redis.port", "redis.database", "redis.password"]
        .into_iter()
        .find(|key| values.is_given(key) && !is_named)?;
    Some(
        Problem::new("has no effect, because no Redis server is set")
            .about(lone)
            .hint("set `redis.host`"),
    )
}

/// Settings of a gateway that is off. What opens is worth a word: its writer expects something to be reached.
fn idle_gateway(settings: &Settings, values: &Values) -> Option<Problem> {
    let idle = ["gateway.reachable", "gateway.allow_out", "gateway.proxy"]
        .into_iter()
        .find(|key| values.is_given(key) && !settings.gateway.is_enabled)?;
    Some(
        Problem::new("has no effect, because `gateway.enabled` is `false`")
            .about(idle)
            .hint("set `gateway.enabled` to `true`"),
    )
}

/// Servers on one database with keys of their own cannot open each other's secrets.
fn lone_sealing_key(settings: &Settings) -> Option<Problem> {
    let is_shared =
        settings.node_url.is_some() && settings.database_url.expose().starts_with("postgres");
    (is_shared && settings.sealing_key.is_none()).then(|| {
        Problem::new(
            "`secrets.key` is not set, but servers that share a database need the same key to read each other's secrets",
        )
        .about("node.url")
        .hint("set `secrets.key` to the same value on all servers; `openssl rand -hex 32` creates one")
    })
}
