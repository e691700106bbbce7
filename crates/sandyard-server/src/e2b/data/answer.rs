//! What is said when nothing of a sandbox can be: JSON whose words E2B's clients look for.

use axum::Json;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, CACHE_CONTROL, HeaderValue, RETRY_AFTER,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use sandyard_preview::names::E2B_TOKEN_HEADER;
use serde_json::json;

use super::signed::Refusal;

/// Longest name of a sandbox that is repeated.
const MAX_NAME: usize = 64;

/// What there is to tell about a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// There is none, or it does not run. COMPAT(e2b): clients look for these very words.
    NotFound,
    /// Nothing listens. COMPAT(e2b): clients look for these very words.
    PortClosed(u16),
    /// Its ports open with a token, and there is none.
    TokenMissing,
    /// Its ports open with a token, and this is not it.
    TokenInvalid,
    /// Something else.
    Other(StatusCode, String),
}

/// Tells something about a sandbox.
pub(crate) fn about(sandbox: &str, told: &Told) -> Response {
    let (status, message) = match told {
        Told::NotFound => (
            StatusCode::BAD_GATEWAY,
            "The sandbox was not found".to_owned(),
        ),
        Told::PortClosed(_) => (
            StatusCode::BAD_GATEWAY,
            "The sandbox is running but port is not open".to_owned(),
        ),
        Told::TokenMissing => (
            StatusCode::FORBIDDEN,
            format!(
                "Sandbox is secured with traffic access token. Token header '{E2B_TOKEN_HEADER}' is missing"
            ),
        ),
        Told::TokenInvalid => (
            StatusCode::FORBIDDEN,
            "Sandbox is secured with traffic access token. Provided token is invalid.".to_owned(),
        ),
        Told::Other(status, message) => (*status, message.clone()),
    };
    let sandbox: String = sandbox.chars().take(MAX_NAME).collect();
    let mut body = json!({"sandboxId": sandbox, "message": message, "code": status.as_u16()});
    if let Told::PortClosed(port) = told {
        body["port"] = (*port).into();
    }
    ours((status, Json(body)).into_response())
}

/// Says that a port is none.
pub(super) fn bad_port(sandbox: &str) -> Response {
    let message = "E2b-Sandbox-Port is not a port: it is a number from 1 to 65535".to_owned();
    about(sandbox, &Told::Other(StatusCode::BAD_REQUEST, message))
}

/// Says that a request names no sandbox.
pub(super) fn nobody() -> Response {
    plain(
        StatusCode::BAD_REQUEST,
        "no sandbox is named: send the headers E2b-Sandbox-Id and E2b-Sandbox-Port",
    )
}

/// Says that a request cannot be read.
pub(super) fn unreadable() -> Response {
    plain(
        StatusCode::BAD_REQUEST,
        "the host or path cannot be read: send `Host` once, with a name or address and no more than a port after it",
    )
}

/// Says that a signature is of no sandbox, or that too many were not.
pub(super) fn refused(refusal: Refusal) -> Response {
    match refusal {
        // The agent's words: whoever is wrong about a signature hears the same everywhere.
        Refusal::Unknown => plain(StatusCode::UNAUTHORIZED, "invalid signature"),
        Refusal::TooMany => {
            let message = "too many invalid signatures: try again in a moment";
            let mut response = plain(StatusCode::TOO_MANY_REQUESTS, message);
            let headers = response.headers_mut();
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            response
        }
        Refusal::Failed => plain(
            StatusCode::SERVICE_UNAVAILABLE,
            "sandboxes cannot be looked up: try again in a moment",
        ),
    }
}

/// Fails as the agent's plain routes do.
pub(super) fn plain(status: StatusCode, message: &str) -> Response {
    let body = json!({"code": status.as_u16(), "message": message});
    ours((status, Json(body)).into_response())
}

/// Lets a page of any origin ask, as the agent does.
pub(super) fn preflight() -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    allow_browsers(response.headers_mut());
    response
}

fn ours(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    allow_browsers(headers);
    response
}

/// What protects a sandbox is its token, not the origin; and a page that may ask may read why not.
fn allow_browsers(headers: &mut HeaderMap) {
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (
            ACCESS_CONTROL_ALLOW_METHODS,
            "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
        ),
        (ACCESS_CONTROL_ALLOW_HEADERS, "*, Authorization"),
        (ACCESS_CONTROL_EXPOSE_HEADERS, "*"),
        (ACCESS_CONTROL_MAX_AGE, "7200"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
