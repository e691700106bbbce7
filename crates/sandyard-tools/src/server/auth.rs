//! Who may.
//!
//! Connections handed over by the agent come from the server, which knows its callers. Whoever comes over TCP is some program in
//! the sandbox, or a page in its browser, and must show the token. Where the sandbox is in somebody's cloud the server comes over
//! TCP too, by a name of that cloud; it shows a token that nobody else has.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::listen::Door;
use crate::workshop::Workshop;

/// The header with the sandbox's access token.
const ACCESS_TOKEN: &str = "x-access-token";

/// Lets a request pass whose sender may use the tools.
pub(super) async fn check(
    State(workshop): State<Arc<Workshop>>,
    request: Request,
    next: Next,
) -> Response {
    if request.extensions().get::<Door>() == Some(&Door::HandedOver) {
        return next.run(request).await;
    }
    if has_token(&workshop, request.headers()) {
        return next.run(request).await;
    }
    let body = json!({
        "error": "unauthorized",
        "detail": "the tools need the sandbox's access token",
        "hint": "send it as 'Authorization: Bearer TOKEN' or 'X-Access-Token: TOKEN'",
    });
    let refused = (
        StatusCode::UNAUTHORIZED,
        [(header::WWW_AUTHENTICATE, "Bearer")],
        Json(body),
    );
    refused.into_response()
}

/// Refuses names of others and pages: a browser in the sandbox must not be a way in for what it shows. What it shows has no
/// token, so whoever has one may come by any name.
pub(super) async fn check_host(
    State(workshop): State<Arc<Workshop>>,
    request: Request,
    next: Next,
) -> Response {
    if request.extensions().get::<Door>() == Some(&Door::HandedOver)
        || has_token(&workshop, request.headers())
    {
        return next.run(request).await;
    }
    let host = request
        .headers()
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let is_page = request.headers().contains_key(header::ORIGIN);
    if is_page || !host.is_some_and(is_local) {
        let body = json!({"error": "forbidden", "detail": "only programs on this machine are answered here, by its own name"});
        return (StatusCode::FORBIDDEN, Json(body)).into_response();
    }
    next.run(request).await
}

fn has_token(workshop: &Workshop, headers: &HeaderMap) -> bool {
    let token = workshop.options.token.as_ref();
    token
        .zip(shown_token(headers))
        .is_some_and(|(token, shown)| token.matches(shown))
}

fn shown_token(headers: &HeaderMap) -> Option<&str> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text(header::AUTHORIZATION.as_str()).and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    text(ACCESS_TOKEN).or(bearer)
}

fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    matches!(name, "localhost" | "127.0.0.1" | "::1") || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_local() {
        for good in [
            "localhost",
            "localhost:6060",
            "127.0.0.1:6060",
            "[::1]:6060",
            "tools.localhost",
        ] {
            assert!(is_local(good), "{good}");
        }
        for bad in [
            "",
            "example.com",
            "localhost.example.com",
            "127.0.0.1.example.com:6060",
            "[::2]:1",
        ] {
            assert!(!is_local(bad), "{bad}");
        }
    }
}
