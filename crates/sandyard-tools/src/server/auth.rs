//! Access control.
//!
//! Connections from the agent come from the server, which has authenticated their clients. TCP connections come from programs in
//! the sandbox, or from pages in its browser, and need the token. For a sandbox of a cloud provider the server connects over TCP
//! too, with a host name of that cloud and a token of its own.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::listen::ConnectionSource;
use crate::tool_state::ToolState;

/// The header with the sandbox's access token.
const ACCESS_TOKEN: &str = "x-access-token";

/// Refuses requests without a valid token, unless they come from the agent.
pub(super) async fn check(
    State(tool_state): State<Arc<ToolState>>,
    request: Request,
    next: Next,
) -> Response {
    if request.extensions().get::<ConnectionSource>() == Some(&ConnectionSource::Agent) {
        return next.run(request).await;
    }
    if has_token(&tool_state, request.headers()) {
        return next.run(request).await;
    }
    let body = json!({
        "error": "unauthorized",
        "detail": "the tool server needs the sandbox's access token",
        "hint": "send it as 'Authorization: Bearer TOKEN' or 'X-Access-Token: TOKEN'",
    });
    let refused = (
        StatusCode::UNAUTHORIZED,
        [(header::WWW_AUTHENTICATE, "Bearer")],
        Json(body),
    );
    refused.into_response()
}

/// Refuses requests with a foreign host name, and requests from web pages, so that a page in the sandbox's browser cannot use the
/// tools. Pages do not have the token, so requests with the token may use any host name.
pub(super) async fn check_host(
    State(tool_state): State<Arc<ToolState>>,
    request: Request,
    next: Next,
) -> Response {
    if request.extensions().get::<ConnectionSource>() == Some(&ConnectionSource::Agent)
        || has_token(&tool_state, request.headers())
    {
        return next.run(request).await;
    }
    let host = request
        .headers()
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let is_from_page = request.headers().contains_key(header::ORIGIN);
    if is_from_page || !host.is_some_and(is_local) {
        let body = json!({"error": "forbidden", "detail": "this server accepts only programs in the sandbox, with the host name localhost"});
        return (StatusCode::FORBIDDEN, Json(body)).into_response();
    }
    next.run(request).await
}

fn has_token(tool_state: &ToolState, headers: &HeaderMap) -> bool {
    let token = tool_state.options.token.as_ref();
    token
        .zip(sent_token(headers))
        .is_some_and(|(token, sent)| token.matches(sent))
}

fn sent_token(headers: &HeaderMap) -> Option<&str> {
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
    fn only_loopback_names_are_local() {
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
