//! `GET /health`: whether this server can do its work.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;

use crate::app::{App, AuthMode};
use crate::listen::Listener;
use crate::model::provider::ProviderHealth;
use crate::prelude::*;

/// How long the store may take. Clients have timeouts of their own; this detects a store that is stuck, not one that is busy.
const STORE_TIMEOUT: Duration = Duration::from_secs(10);

/// Less free space on the data disk counts as full; on a small disk, less than a part of it.
const FULL_BELOW_BYTES: u64 = 64 << 20;
const FULL_BELOW_PART: u64 = 16;

/// Health of the server.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// `healthy`; `degraded` while a provider is unreachable or the data disk is full; `stopping`; `unhealthy` while
    /// the database cannot be read or written.
    status: &'static str,
    /// Causes of a status other than `healthy`, for example `data disk full: 3 MB free`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<String>,
    /// Version of the server.
    version: &'static str,
    /// Name of the default provider.
    provider: String,
    /// Health of all providers, the default first.
    providers: Vec<ProviderHealth>,
    /// Kind of database: `sqlite` or `postgres`.
    store: &'static str,
    /// Kind of timer queue: `database` or `redis`.
    timers: &'static str,
    /// Number of sandboxes by status.
    sandboxes: BTreeMap<&'static str, i64>,
}

/// Check the health of the server
///
/// Tells whether the server can do its work. The server stays healthy enough to answer 200 while a single provider is
/// unreachable: the status is then `degraded`. Requires no credentials.
#[utoipa::path(
    get, path = "/health", tag = "operations",
    responses(
        (status = 200, description = "Server works; if `status` is `degraded`, `problems` tells what does not.", body = Health),
        (status = 503, description = "Server is starting or stopping, or its database cannot be read or written.", body = Health),
    )
)]
pub(crate) async fn get_health(
    State(app): State<App>,
    listener: Option<Extension<Listener>>,
) -> (StatusCode, Json<Health>) {
    let (counts, write_failure) = tokio::join!(
        tokio::time::timeout(STORE_TIMEOUT, app.service().counts()),
        app.write_check().failure(),
    );
    let providers = app.service().providers();
    // Everybody may ask, so only this host's own programs learn a path.
    let is_open = listener.is_some_and(|Extension(listener)| listener.is_loopback())
        && app.settings().auth_mode == AuthMode::Auto;
    let mut problems = Vec::new();
    problems.extend(disk_problem(app.settings().data_dir.as_deref(), is_open));
    let unreachable = providers.iter().filter(|one| !one.condition.is_reachable);
    problems
        .extend(unreachable.map(|one| format!("provider `{}` cannot be reached", one.info.name)));
    let store_failure = match &counts {
        Ok(Ok(_)) => write_failure.map(|why| format!("the database does not take writes: {why}")),
        Ok(Err(error)) => Some(error.message.clone()),
        Err(_) => Some(format!(
            "the database does not answer within {} s",
            STORE_TIMEOUT.as_secs()
        )),
    };
    let (status, word) = match &store_failure {
        _ if !app.is_ready() => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
        Some(_) => (StatusCode::SERVICE_UNAVAILABLE, "unhealthy"),
        None if problems.is_empty() => (StatusCode::OK, "healthy"),
        None => (StatusCode::OK, "degraded"),
    };
    problems.extend(store_failure);
    let health = Health {
        status: word,
        problems,
        version: env!("CARGO_PKG_VERSION"),
        provider: app.service().provider_info().name,
        providers: providers.iter().map(ProviderHealth::from).collect(),
        store: app.store().kind(),
        timers: app.timers().kind(),
        sandboxes: match counts {
            Ok(Ok(counts)) => counts,
            _ => BTreeMap::new(),
        },
    };
    (status, Json(health))
}

/// Says that the data disk is full, and where if the caller may know.
fn disk_problem(data_dir: Option<&Path>, shows_path: bool) -> Option<String> {
    let data_dir = data_dir?;
    let (free, size) = crate::metrics::host::disk_space(data_dir)?;
    if free >= FULL_BELOW_BYTES.min(size / FULL_BELOW_PART) {
        return None;
    }
    let place = match shows_path {
        true => format!(" in {}", data_dir.display()),
        false => String::new(),
    };
    Some(format!(
        "data disk full: {} MB free{place}",
        free / 1_000_000
    ))
}
