//! Responses of the data plane itself, for requests that reach no sandbox: JSON whose texts E2B's clients compare.

use axum::Json;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, CACHE_CONTROL, HeaderValue, RETRY_AFTER,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use sandyard_preview::names::E2B_TOKEN_HEADER;
use serde_json::json;

use super::signature::Refusal;

/// Longest part, in characters, of a sandbox id that a response repeats.
const MAX_ID: usize = 64;

/// Why a sandbox does not answer a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The sandbox does not exist or does not run. COMPAT(e2b): clients compare the text.
    NotFound,
    /// No program listens on the port. COMPAT(e2b): clients compare the text.
    PortClosed(u16),
    /// The sandbox's ports require a token, and the request has none.
    TokenMissing,
    /// The sandbox's ports require a token, and the request has another one.
    TokenInvalid,
    /// Any other failure.
    Other(StatusCode, String),
}

/// The response of a request for a sandbox.
pub(crate) fn sandbox_response(sandbox: &str, outcome: &Outcome) -> Response {
    let (status, message) = match outcome {
        Outcome::NotFound => (
            StatusCode::BAD_GATEWAY,
            "The sandbox was not found".to_owned(),
        ),
        Outcome::PortClosed(_) => (
            StatusCode::BAD_GATEWAY,
            "The sandbox is running but port is not open".to_owned(),
        ),
        Outcome::TokenMissing => (
            StatusCode::FORBIDDEN,
            format!(
                "Sandbox is secured with traffic access token. Token header '{E2B_TOKEN_HEADER}' is missing"
            ),
        ),
        Outcome::TokenInvalid => (
            StatusCode::FORBIDDEN,
            "Sandbox is secured with traffic access token. Provided token is invalid.".to_owned(),
        ),
        Outcome::Other(status, message) => (*status, message.clone()),
    };
    let sandbox: String = sandbox.chars().take(MAX_ID).collect();
    let mut body = json!({"sandboxId": sandbox, "message": message, "code": status.as_u16()});
    if let Outcome::PortClosed(port) = outcome {
        body["port"] = (*port).into();
    }
    with_headers((status, Json(body)).into_response())
}

/// The header that names the port has no port.
pub(super) fn bad_port(sandbox: &str) -> Response {
    let message = "E2b-Sandbox-Port must be a number from 1 to 65535".to_owned();
    sandbox_response(sandbox, &Outcome::Other(StatusCode::BAD_REQUEST, message))
}

/// The request names no sandbox.
pub(super) fn no_sandbox_named() -> Response {
    plain(
        StatusCode::BAD_REQUEST,
        "the request names no sandbox: send the headers E2b-Sandbox-Id and E2b-Sandbox-Port",
    )
}

/// The host or the path of the request is malformed.
pub(super) fn malformed() -> Response {
    plain(
        StatusCode::BAD_REQUEST,
        "the host or path is malformed: send `Host` once, with a name or address and an optional port",
    )
}

/// No sandbox has made the signature or has the token, or the client may not ask now.
pub(super) fn refused(refusal: Refusal) -> Response {
    match refusal {
        // The agent answers the same text.
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
            "cannot look up sandboxes: try again in a moment",
        ),
    }
}

/// A failure in the form of the agent's plain routes.
pub(super) fn plain(status: StatusCode, message: &str) -> Response {
    let body = json!({"code": status.as_u16(), "message": message});
    with_headers((status, Json(body)).into_response())
}

/// Answers a CORS preflight: pages of any origin may send requests, as to the agent.
pub(super) fn preflight() -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    allow_browsers(response.headers_mut());
    response
}

fn with_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    allow_browsers(headers);
    response
}

/// Allows every origin: the token protects a sandbox, not the origin. Pages may read failures too.
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
