//! Errors on the way to another server, and those that it reports.

use std::error::Error;

use http::StatusCode;
use sandyard_provider::{ProviderError, ProviderErrorKind};

/// The status of an answer that carries a provider's error.
pub(super) const FAILED: StatusCode = StatusCode::UNPROCESSABLE_ENTITY;

/// No answer arrived, or not all of it.
pub(super) fn unsent(what: &str, error: reqwest::Error) -> ProviderError {
    let (kind, how) = if error.is_timeout() {
        (ProviderErrorKind::TimedOut, "took too long to answer")
    } else {
        (ProviderErrorKind::Unavailable, "could not be reached for")
    };
    ProviderError::new(kind, format!("the node {how} `{what}`")).source(error)
}

/// A request that cannot be written, or an answer that cannot be read.
pub(super) fn unreadable(
    what: &str,
    error: impl Into<Box<dyn Error + Send + Sync>>,
) -> ProviderError {
    let message = format!("failed to write the request or read the answer of `{what}` of a node");
    ProviderError::new(ProviderErrorKind::Failed, message).source(error)
}

/// The error of an answer that is not a success.
pub(super) fn refused(what: &str, status: StatusCode, body: &[u8]) -> ProviderError {
    if status == FAILED {
        return serde_json::from_slice(body).unwrap_or_else(|error| unreadable(what, error));
    }
    let kind = match status {
        StatusCode::NOT_FOUND => ProviderErrorKind::Unsupported,
        StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE => ProviderErrorKind::Invalid,
        // Another installation's, shutting down, or an answer of something in between.
        _ => ProviderErrorKind::Unavailable,
    };
    ProviderError::new(kind, format!("the node answered `{what}` with {status}"))
}
