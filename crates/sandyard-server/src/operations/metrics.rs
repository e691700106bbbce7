//! `GET /metrics`, for Prometheus.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use sandyard_core::SandboxStatus;

use crate::app::App;
use crate::error::ApiResult;
use crate::metrics::{host, recorder};

/// Get metrics for Prometheus
///
/// Returns all metrics of the server in the text format of Prometheus.
#[utoipa::path(
    get, path = "/metrics", tag = "operations",
    responses((status = 200, description = "Metrics returned.", body = String, content_type = "text/plain"))
)]
pub(crate) async fn get_metrics(State(app): State<App>) -> ApiResult<Response> {
    let counts = app.service().counts().await?;
    for status in SandboxStatus::ALL {
        let count = counts.get(status.as_str()).copied().unwrap_or(0);
        metrics::gauge!("sandyard_sandboxes", "status" => status.as_str()).set(count as f64);
    }
    note_providers(&app).await?;
    let dead = app.service().dead_timers().await?.len();
    metrics::gauge!("sandyard_dead_timers").set(dead as f64);
    let checks = app.auth().password_checks();
    metrics::counter!("sandyard_password_checks_total").absolute(checks);
    let (idle, used) = app.store().connections();
    for (state, count) in [("idle", idle), ("used", used)] {
        metrics::gauge!("sandyard_database_connections", "state" => state).set(count as f64);
    }
    host::note(app.settings().data_dir.as_deref());
    let text = recorder().render() + &host::cpu_time();
    let kind = (header::CONTENT_TYPE, "text/plain; version=0.0.4");
    Ok(([kind], text).into_response())
}

/// How each provider is, and what it has.
async fn note_providers(app: &App) -> ApiResult<()> {
    let mut counts = app.service().counts_by_provider().await?;
    for provider in app.service().providers() {
        let name = provider.info.name;
        let up = f64::from(u8::from(provider.condition.is_reachable));
        metrics::gauge!("sandyard_provider_up", "provider" => name.clone()).set(up);
        let calls = provider.condition.calls as f64;
        metrics::gauge!("sandyard_provider_calls_in_progress", "provider" => name.clone())
            .set(calls);
        counts.entry(name).or_default();
    }
    for (name, counts) in counts {
        for status in SandboxStatus::ALL {
            let count = counts.get(status.as_str()).copied().unwrap_or(0);
            metrics::gauge!("sandyard_provider_sandboxes", "provider" => name.clone(), "status" => status.as_str())
                .set(count as f64);
        }
    }
    Ok(())
}
