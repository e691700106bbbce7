//! One line and two metrics for every request. Never its query: there may be a token in it.

use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;

use super::gate::CallerName;
use super::request_id::RequestId;
use crate::noted_sandbox::with_noted_sandbox;

/// Longest path in a line, for requests that no route answers.
const MAX_PATH: usize = 120;

/// Logs and counts a request when its answer begins.
pub(crate) async fn log(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = method_label(request.method().as_str());
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map(|route| route.as_str().to_owned());
    let path = match &route {
        Some(route) => route.clone(),
        None => request.uri().path().chars().take(MAX_PATH).collect(),
    };
    let id = request.extensions().get::<RequestId>().cloned();
    let (response, sandbox) = with_noted_sandbox(next.run(request)).await;
    let elapsed = started.elapsed();
    let status = response.status().as_u16();
    let caller = response.extensions().get::<CallerName>();
    tracing::info!(
        %path,
        status,
        ms = (elapsed.as_secs_f64() * 10_000.0).round() / 10.0,
        user = caller.map(|caller| display(&caller.name)),
        via = caller.map(|caller| display(&caller.via)),
        sandbox = sandbox.map(display),
        request = id.map(|id| display(id.0)),
        "{method}"
    );
    let route = route.unwrap_or_else(|| "-".to_owned());
    let route = route.strip_suffix('/').unwrap_or(&route).to_owned();
    metrics::counter!(
        "sandyard_http_requests_total",
        "method" => method, "route" => route.clone(), "status" => status.to_string()
    )
    .increment(1);
    metrics::histogram!("sandyard_http_request_duration_seconds", "method" => method, "route" => route)
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
