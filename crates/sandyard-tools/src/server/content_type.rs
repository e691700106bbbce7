//! Requires `Content-Type: application/json`.
//!
//! A web page can make a browser send forms and plain text to any server, with the user's cookies. It cannot send JSON without
//! permission through CORS, which this server does not give.

use axum::Json;
use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Refuses bodies with another content type, or without one.
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
    let content_type = headers.get(header::CONTENT_TYPE);
    content_type
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| {
            let media_type = value.split(';').next().unwrap_or_default().trim();
            media_type.eq_ignore_ascii_case("application/json")
        })
}
