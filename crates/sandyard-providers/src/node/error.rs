//! Failures on the way to another server, and those it tells of.

use std::error::Error;

use http::StatusCode;
use sandyard_provider::{ProviderError, ProviderErrorKind};

/// What the other server's own failures are answered with.
pub(super) const FAILED: StatusCode = StatusCode::UNPROCESSABLE_ENTITY;

/// No answer, or not all of it.
pub(super) fn unsent(what: &str, error: reqwest::Error) -> ProviderError {
    let (kind, how) = if error.is_timeout() {
        (ProviderErrorKind::TimedOut, "took too long to answer")
    } else {
        (ProviderErrorKind::Unavailable, "could not be asked")
    };
    ProviderError::new(kind, format!("the node {how} `{what}`")).source(error)
}

/// An answer that is none.
pub(super) fn odd(what: &str, error: impl Into<Box<dyn Error + Send + Sync>>) -> ProviderError {
    let message = format!("`{what}` of a node could not be put into words or understood");
    ProviderError::new(ProviderErrorKind::Failed, message).source(error)
}

/// What is left to say of an answer that is a failure.
pub(super) fn refused(what: &str, status: StatusCode, body: &[u8]) -> ProviderError {
    if status == FAILED {
        return serde_json::from_slice(body).unwrap_or_else(|error| odd(what, error));
    }
    let kind = match status {
        StatusCode::NOT_FOUND => ProviderErrorKind::Unsupported,
        StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE => ProviderErrorKind::Invalid,
        // Not of its installation, going down, or something in between.
        _ => ProviderErrorKind::Unavailable,
    };
    ProviderError::new(kind, format!("the node answered `{what}` with {status}"))
}
