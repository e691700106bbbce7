//! What is sent to us says that it is JSON.
//!
//! Pages of others can make a browser send forms and plain text anywhere, with whatever lets the browser's owner in. JSON they
//! cannot send without being allowed to, and nobody here allows it.

use axum::Json;
use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Refuses bodies that say to be something else, or nothing.
pub(super) async fn check(request: Request, next: Next) -> Response {
    let has_body = request.method() == Method::POST && !request.body().is_end_stream();
    if !has_body || is_json(request.headers()) {
        return next.run(request).await;
    }
    let body = json!({
        "success": false,
        "error": "requests need the header 'Content-Type: application/json'",
        "hint": "with curl: -H 'content-type: application/json'",
    });
    (StatusCode::UNSUPPORTED_MEDIA_TYPE, Json(body)).into_response()
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    kind.and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| {
            let kind = kind.split(';').next().unwrap_or_default().trim();
            kind.eq_ignore_ascii_case("application/json")
        })
}
