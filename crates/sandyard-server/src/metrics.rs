//! `GET /metrics`, for Prometheus.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use sandyard_core::{SandboxStatus, Scope};
use utoipa_axum::routes;

use crate::app::App;
use crate::error::ApiError;
use crate::need::Need;
use crate::router::{Mounted, mount};

/// Seconds that requests are sorted by.
const BUCKETS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0,
];

/// How often measurements are sorted.
const REQUESTS_BETWEEN_TIDYING: u64 = 4096;

/// The route.
pub(crate) fn routes() -> Vec<Mounted> {
    vec![mount(Need::Admin(Scope::Read), routes!(get_metrics))]
}

/// Starts counting; the process counts once, however many servers it has.
pub(crate) fn recorder() -> &'static PrometheusHandle {
    static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();
    RECORDER.get_or_init(|| {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKETS)
            .expect("there are buckets")
            .build_recorder();
        let handle = recorder.handle();
        if metrics::set_global_recorder(recorder).is_err() {
            tracing::warn!("Somebody else counts in this process; /metrics stays empty");
        }
        handle
    })
}

/// Sorts what was measured since the last time. Without this, measurements that nobody asks for would pile up.
pub(crate) fn tidy() {
    static REQUESTS: AtomicU64 = AtomicU64::new(0);
    let before = REQUESTS.fetch_add(1, Ordering::Relaxed);
    if before.is_multiple_of(REQUESTS_BETWEEN_TIDYING) {
        recorder().run_upkeep();
    }
}

/// All counters, in Prometheus' text form.
#[utoipa::path(
    get, path = "/metrics", operation_id = "get_metrics", tag = "operations",
    responses((status = 200, description = "They.", body = String, content_type = "text/plain"))
)]
pub(crate) async fn get_metrics(State(app): State<App>) -> Result<Response, ApiError> {
    let counts = app.service().counts().await?;
    for status in SandboxStatus::ALL {
        let count = counts.get(status.as_str()).copied().unwrap_or(0);
        metrics::gauge!("sandboxes", "status" => status.as_str()).set(count as f64);
    }
    note_providers(&app).await?;
    let dead = app.service().dead_timers().await?.len();
    metrics::gauge!("timers_dead").set(dead as f64);
    let checks = app.auth().password_checks();
    metrics::counter!("password_checks_total").absolute(checks);
    let text = recorder().render();
    let kind = (header::CONTENT_TYPE, "text/plain; version=0.0.4");
    Ok(([kind], text).into_response())
}

/// How each provider is, and what it has.
async fn note_providers(app: &App) -> Result<(), ApiError> {
    let mut counts = app.service().counts_by_provider().await?;
    for provider in app.service().providers() {
        let name = provider.info.name;
        let up = f64::from(u8::from(provider.condition.is_reachable));
        metrics::gauge!("provider_up", "provider" => name.clone()).set(up);
        let calls = provider.condition.calls as f64;
        metrics::gauge!("provider_calls", "provider" => name.clone()).set(calls);
        counts.entry(name).or_default();
    }
    for (name, counts) in counts {
        for status in SandboxStatus::ALL {
            let count = counts.get(status.as_str()).copied().unwrap_or(0);
            metrics::gauge!("provider_sandboxes", "provider" => name.clone(), "status" => status.as_str())
                .set(count as f64);
        }
    }
    Ok(())
}
