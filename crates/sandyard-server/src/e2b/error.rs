//! Failures as this dialect's clients read them: `{"code": <status>, "message": …}`, and nothing else will do.
//!
//! The official SDKs distinguish failures by status and retry some of them automatically, so each status is chosen for the
//! SDK's reaction to it:
//!
//! | what | status | because |
//! |---|---|---|
//! | a field makes no sense, or cannot be done here | 400 | theirs is 400 for all of these |
//! | as many sandboxes as one may have | 429, `Should-Retry: false` | as the original answers; waiting alone helps nobody |
//! | too many requests | 429, `Retry-After` | tried again after that time |
//! | no room, busy, not ready | 503, `Retry-After` | "busy" to them, and tried again |
//! | a provider that took too long | 504 | tried again: nothing of the first try is left |
//! | a provider or an agent that failed | 500 | 502 is tried again, which would only repeat the failure |

use axum::Json;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sandyard_core::ErrorKind;
use sandyard_service::ServiceError;
use serde::Serialize;
use utoipa::ToSchema;

use super::dispatch::Plane;
use crate::error::ErrorBody;

/// Says to the SDKs whether they may try again, whatever the status is.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("should-retry");

/// Error response of the E2B-compatible API.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct E2bError {
    /// HTTP status of the response.
    pub(crate) code: u16,
    /// What went wrong, and what to do about it.
    pub(crate) message: String,
}

impl From<&ServiceError> for E2bError {
    fn from(error: &ServiceError) -> Self {
        Self {
            code: status_of(error.kind).as_u16(),
            message: message(&error.message, error.hint.as_deref()),
        }
    }
}

/// The status of each kind in this dialect.
pub(crate) fn status_of(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::BadRequest
        | ErrorKind::Invalid
        | ErrorKind::NotText
        | ErrorKind::Unsupported => StatusCode::BAD_REQUEST,
        ErrorKind::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorKind::Forbidden => StatusCode::FORBIDDEN,
        ErrorKind::SandboxNotFound | ErrorKind::FileNotFound | ErrorKind::NotFound => {
            StatusCode::NOT_FOUND
        }
        ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::QuotaExceeded | ErrorKind::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::NoSpace => StatusCode::INSUFFICIENT_STORAGE,
        ErrorKind::Internal | ErrorKind::ProviderFailed | ErrorKind::AgentFailed => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
        ErrorKind::PortClosed => StatusCode::BAD_GATEWAY,
        ErrorKind::Busy | ErrorKind::Unavailable | ErrorKind::NoCapacity => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        ErrorKind::TimedOut => StatusCode::GATEWAY_TIMEOUT,
    }
}

/// Says the failures of the control plane in its own way.
pub(crate) async fn translate(request: Request, next: Next) -> Response {
    if request.extensions().get::<Plane>() != Some(&Plane::Control) {
        return next.run(request).await;
    }
    let mut response = next.run(request).await;
    match response.extensions_mut().remove::<ErrorBody>() {
        Some(error) => reword(response, &error),
        None => response,
    }
}

fn reword(response: Response, error: &ErrorBody) -> Response {
    let kind = ErrorKind::ALL
        .into_iter()
        .find(|kind| kind.code() == error.code);
    let (mut parts, _) = response.into_parts();
    if let Some(kind) = kind {
        parts.status = status_of(kind);
    }
    if kind == Some(ErrorKind::QuotaExceeded) {
        let no = HeaderValue::from_static("false");
        parts.headers.insert(SHOULD_RETRY, no);
    }
    let body = E2bError {
        code: parts.status.as_u16(),
        message: message(&error.detail, error.hint.as_deref()),
    };
    let worded = Json(body).into_response();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.remove(header::CONTENT_TYPE);
    parts.headers.extend(worded.headers().clone());
    Response::from_parts(parts, worded.into_body())
}

/// What went wrong, and what to do about it, in one text.
fn message(detail: &str, hint: Option<&str>) -> String {
    match hint {
        Some(hint) => format!("{detail} ({hint})"),
        None => detail.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_sdks_try_again_is_what_may_go_better_then() {
        let retried: Vec<_> = ErrorKind::ALL
            .into_iter()
            .filter(|kind| matches!(status_of(*kind).as_u16(), 429 | 502 | 503 | 504))
            .collect();
        assert_eq!(
            retried,
            [
                ErrorKind::TimedOut,
                ErrorKind::Busy,
                ErrorKind::QuotaExceeded,
                ErrorKind::RateLimited,
                ErrorKind::PortClosed,
                ErrorKind::Unavailable,
                ErrorKind::NoCapacity,
            ]
        );
    }
}
