//! One line and two metrics for every request. Never its query: there may be a token in it.

use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;

use super::gate::CallerName;
use super::request_id::RequestId;

/// Logs and counts a request when its answer begins.
pub(crate) async fn log(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = method_label(request.method().as_str());
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or("-", MatchedPath::as_str)
        .to_owned();
    let id = request.extensions().get::<RequestId>().cloned();
    let response = next.run(request).await;
    let elapsed = started.elapsed();
    let status = response.status().as_u16();
    let caller = response.extensions().get::<CallerName>();
    tracing::info!(
        http.method = method,
        http.route = %route,
        http.status = status,
        duration_ms = elapsed.as_secs_f64() * 1000.0,
        request.id = id.as_ref().map_or("-", |id| &id.0),
        caller = caller.map_or("-", |caller| &caller.0),
        "{method} {route} {status}"
    );
    let route = route.strip_suffix('/').unwrap_or(&route).to_owned();
    metrics::counter!(
        "http_requests_total",
        "method" => method, "route" => route.clone(), "status" => status.to_string()
    )
    .increment(1);
    metrics::histogram!("http_request_duration_seconds", "method" => method, "route" => route)
        .record(elapsed.as_secs_f64());
    crate::metrics::upkeep();
    response
}

/// Clients can make methods up, and each would be a metric of its own.
fn method_label(method: &str) -> &'static str {
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
        .into_iter()
        .find(|known| *known == method)
        .unwrap_or("OTHER")
}
