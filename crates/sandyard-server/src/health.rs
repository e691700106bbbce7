//! `GET /health`: whether this server can do its work.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::app::App;
use crate::need::Need;
use crate::providers::ProviderHealth;
use crate::router::{Mounted, mount};

/// How long the store may take. Whoever asks has a time of his own; this is for a store that is stuck, not for one that is busy.
const PATIENCE: Duration = Duration::from_secs(10);

/// How the server is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// `healthy`; `degraded` while a provider cannot be reached; `stopping` or `unhealthy`.
    status: &'static str,
    version: &'static str,
    /// Where sandboxes run unless another one is asked for.
    provider: String,
    /// All providers of this server, the default first.
    providers: Vec<ProviderHealth>,
    /// What is remembered where: `sqlite` or `postgres`.
    store: &'static str,
    /// The queue of what is due: `database` or `redis`.
    timers: &'static str,
    /// How many sandboxes stand where.
    sandboxes: BTreeMap<&'static str, i64>,
}

/// The route.
pub(crate) fn routes() -> Vec<Mounted> {
    vec![mount(Need::Nothing, routes!(get_health))]
}

/// Says whether this server can do its work. It can also while a provider cannot be reached: the others go on.
#[utoipa::path(
    get, path = "/health", operation_id = "get_health", tag = "operations",
    responses(
        (status = 200, description = "It can, perhaps not with every provider.", body = Health),
        (status = 503, description = "It cannot, yet or any more.", body = Health),
    )
)]
pub(crate) async fn get_health(State(app): State<App>) -> (StatusCode, Json<Health>) {
    let counts = tokio::time::timeout(PATIENCE, app.service().counts()).await;
    let providers = app.service().providers();
    let is_whole = providers.iter().all(|one| one.condition.is_reachable);
    let (status, word, sandboxes) = match counts {
        _ if !app.is_ready() => (StatusCode::SERVICE_UNAVAILABLE, "stopping", BTreeMap::new()),
        Ok(Ok(counts)) if is_whole => (StatusCode::OK, "healthy", counts),
        Ok(Ok(counts)) => (StatusCode::OK, "degraded", counts),
        _ => (
            StatusCode::SERVICE_UNAVAILABLE,
            "unhealthy",
            BTreeMap::new(),
        ),
    };
    let health = Health {
        status: word,
        version: env!("CARGO_PKG_VERSION"),
        provider: app.service().provider_info().name,
        providers: providers.iter().map(ProviderHealth::from).collect(),
        store: app.store().kind(),
        timers: app.timers().kind(),
        sandboxes,
    };
    (status, Json(health))
}
