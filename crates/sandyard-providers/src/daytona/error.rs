//! Errors of the API by kind.

use std::error::Error;
use std::time::Duration;

use http::StatusCode;
use sandyard_provider::{ProviderError, ProviderErrorKind, Retry};
use serde::Deserialize;

use crate::cloud_connector::RetryAdvice;

/// Maximum number of characters of Daytona's message that is passed on.
const MAX_MESSAGE: usize = 300;

/// No answer, or an incomplete one.
pub(super) fn unsent(what: &str, error: reqwest::Error) -> ProviderError {
    let (kind, how) = if error.is_timeout() && !error.is_connect() {
        (ProviderErrorKind::TimedOut, "took too long to answer")
    } else {
        (ProviderErrorKind::Unavailable, "could not be reached for")
    };
    ProviderError::new(kind, format!("Daytona {how} `{what}`"))
        .hint(Some(
            "check that DAYTONA_SERVER_URL can be reached".to_owned(),
        ))
        .source(error.without_url())
}

/// An answer that cannot be read.
pub(super) fn unreadable(
    what: &str,
    error: impl Into<Box<dyn Error + Send + Sync>>,
) -> ProviderError {
    let message = format!("Daytona's answer to `{what}` is invalid");
    ProviderError::new(ProviderErrorKind::Failed, message).source(error)
}

/// A call that took too long.
pub(super) fn timed_out(what: &str, timeout: Duration) -> ProviderError {
    let message = format!("Daytona took longer than {timeout:?} for `{what}`");
    ProviderError::new(ProviderErrorKind::TimedOut, message)
}

/// There is no such instance of this installation.
pub(super) fn absent() -> ProviderError {
    ProviderError::new(ProviderErrorKind::NotFound, "no such instance at Daytona")
}

/// The instance's state does not allow the call.
pub(super) fn conflict(message: impl Into<String>) -> ProviderError {
    ProviderError::new(ProviderErrorKind::Conflict, message)
}

/// Not possible at Daytona at all.
pub(super) fn unsupported(what: &str) -> ProviderError {
    let message = format!("sandboxes at Daytona cannot {what}");
    ProviderError::new(ProviderErrorKind::Unsupported, message)
}

/// The body of a failed answer: the text is in `message`, `error` or `errors`.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Refusal {
    message: serde_json::Value,
    error: serde_json::Value,
    errors: serde_json::Value,
}

/// A failed answer.
pub(super) fn refused(
    what: &str,
    status: StatusCode,
    advice: RetryAdvice,
    body: &[u8],
) -> ProviderError {
    let detail = parse_message(body);
    let kind = kind(what, status, &detail);
    let suffix = match detail.is_empty() {
        true => String::new(),
        false => format!(": {detail}"),
    };
    let message = format!("Daytona answered `{what}` with {}{suffix}", status.as_u16());
    let is_about_key = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
        && kind != ProviderErrorKind::NoCapacity;
    let mut error = ProviderError::new(kind, message);
    if is_about_key {
        error.retry = Retry::Never;
        error.hint = Some("check that DAYTONA_API_KEY is valid and has the permission".to_owned());
    }
    let mut error = advice.on(error);
    if let Some(wait) = error.retry_after.filter(|_| error.hint.is_none()) {
        error.hint = Some(format!("try again in {} seconds", wait.as_secs()));
    }
    error
}

fn kind(what: &str, status: StatusCode, detail: &str) -> ProviderErrorKind {
    let mentions = |word| detail.to_ascii_lowercase().contains(word);
    match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::PAYMENT_REQUIRED => {
            ProviderErrorKind::NoCapacity
        }
        // Exceeding the account's quota is refused in the same way as missing permissions.
        StatusCode::BAD_REQUEST | StatusCode::FORBIDDEN
            if mentions("quota") || mentions("limit exceeded") || mentions("no available") =>
        {
            ProviderErrorKind::NoCapacity
        }
        StatusCode::NOT_FOUND | StatusCode::GONE => ProviderErrorKind::NotFound,
        StatusCode::CONFLICT | StatusCode::LOCKED => ProviderErrorKind::Conflict,
        StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT => ProviderErrorKind::TimedOut,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => not_allowed(what, status),
        status if status.is_client_error() => ProviderErrorKind::Invalid,
        _ => ProviderErrorKind::Unavailable,
    }
}

/// A key without the permissions that every key has is invalid. All else depends on the call, on the key's permissions or on the
/// account's plan, and says nothing about other calls.
fn not_allowed(what: &str, status: StatusCode) -> ProviderErrorKind {
    match what {
        "health" | "list" | "config" => ProviderErrorKind::Unavailable,
        "network" | "snapshot" | "pause" | "metrics" => ProviderErrorKind::Unsupported,
        _ if status == StatusCode::UNAUTHORIZED => ProviderErrorKind::Unavailable,
        _ => ProviderErrorKind::Failed,
    }
}

/// Daytona's message, in a form that can be shown.
fn parse_message(body: &[u8]) -> String {
    let response: Refusal = serde_json::from_slice(body).unwrap_or_default();
    let parts = [response.message, response.errors, response.error];
    let texts = parts.iter().map(|part| match part {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(all) => {
            let texts: Vec<_> = all.iter().filter_map(|item| item.as_str()).collect();
            texts.join(", ")
        }
        _ => String::new(),
    });
    let text = texts.into_iter().find(|text| !text.is_empty());
    single_line(&text.unwrap_or_default())
}

/// One line of bounded length.
pub(super) fn single_line(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let short: String = plain.take(MAX_MESSAGE).collect();
    short.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEVEN: RetryAdvice = RetryAdvice::After(Duration::from_secs(7));

    fn error_of(status: u16, body: &str) -> ProviderError {
        let status = StatusCode::from_u16(status).expect("a status");
        refused("create", status, SEVEN, body.as_bytes())
    }

    #[test]
    fn statuses_become_kinds() {
        use ProviderErrorKind::*;
        for (status, body, kind) in [
            (400, r#"{"message": "name is taken"}"#, Invalid),
            (401, "", Unavailable),
            (
                403,
                r#"{"message": "Total CPU limit exceeded"}"#,
                NoCapacity,
            ),
            (404, "", NotFound),
            (409, "", Conflict),
            (429, "", NoCapacity),
            (500, "<html>", Unavailable),
            (504, "", TimedOut),
        ] {
            assert_eq!(error_of(status, body).kind, kind, "{status}");
        }
    }

    #[test]
    fn missing_permissions_do_not_make_the_provider_unavailable() {
        use ProviderErrorKind::*;
        for (what, status, kind) in [
            ("network", 401, Unsupported),
            ("network", 403, Unsupported),
            ("snapshot", 403, Unsupported),
            ("create", 403, Failed),
            ("inspect", 401, Unavailable),
            ("list", 403, Unavailable),
        ] {
            let status = StatusCode::from_u16(status).expect("a status");
            let error = refused(what, status, SEVEN, b"");
            assert_eq!(error.kind, kind, "{what} {status}");
            assert_eq!((error.retry, error.retry_after), (Retry::Never, None));
        }
    }

    #[test]
    fn hints_name_the_next_step() {
        assert!(
            error_of(401, "")
                .hint
                .expect("a hint")
                .contains("DAYTONA_API_KEY")
        );
        assert_eq!(error_of(401, "").retry, Retry::Never);
        assert!(
            error_of(429, "")
                .hint
                .expect("a hint")
                .contains("7 seconds")
        );
        assert_eq!(error_of(429, "").retry_after, Some(Duration::from_secs(7)));
    }

    #[test]
    fn messages_are_bounded_and_on_one_line() {
        let long = format!(r#"{{"message": ["a\nb", "{}"]}}"#, "x".repeat(5000));
        let message = error_of(422, &long).message;
        assert!(
            message.contains("a b, xxx") && message.len() < 400,
            "{message}"
        );
    }
}
