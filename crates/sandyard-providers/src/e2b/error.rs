//! Errors of the connection to the API, and those that the API reports.

use std::error::Error;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use sandyard_provider::{ProviderError, ProviderErrorKind, Retry, Verb};
use serde::Deserialize;

use crate::cloud_connector::RetryAdvice;

/// Maximum length of the API's message that is passed on.
const MAX_MESSAGE: usize = 300;

/// The body of a failed answer.
#[derive(Default, Deserialize)]
struct ErrorBody {
    #[serde(default)]
    message: String,
}

/// No answer, or an incomplete one.
pub(super) fn unsent(verb: Verb, error: reqwest::Error) -> ProviderError {
    let (kind, problem) = if error.is_timeout() {
        (ProviderErrorKind::TimedOut, "took too long to answer")
    } else {
        (ProviderErrorKind::Unavailable, "could not be reached for")
    };
    // Addresses may contain secrets.
    let error = error.without_url();
    ProviderError::new(kind, format!("E2B {problem} `{verb}`")).source(error)
}

/// An answer that cannot be read.
pub(super) fn unreadable(
    verb: Verb,
    error: impl Into<Box<dyn Error + Send + Sync>>,
) -> ProviderError {
    let message = format!("E2B's answer to `{verb}` is invalid");
    ProviderError::new(ProviderErrorKind::Failed, message).source(error)
}

/// There is no such instance of this installation.
pub(super) fn no_instance() -> ProviderError {
    ProviderError::new(
        ProviderErrorKind::NotFound,
        "there is no such sandbox at E2B",
    )
}

/// Not supported by E2B.
pub(super) fn unsupported(what: &str) -> ProviderError {
    ProviderError::new(ProviderErrorKind::Unsupported, format!("E2B cannot {what}"))
}

/// A failed answer.
pub(super) fn refused(
    verb: Verb,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> ProviderError {
    let detail = serde_json::from_slice::<ErrorBody>(body).unwrap_or_default();
    let detail = printable(&detail.message);
    let lowercase = detail.to_ascii_lowercase();
    let kind = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if !is_about_template(&lowercase) => {
            return not_allowed(verb, status, &detail);
        }
        // COMPAT(e2b): the status of a missing template has changed over time.
        StatusCode::NOT_FOUND => ProviderErrorKind::NotFound,
        _ if status.is_client_error() && is_about_template(&lowercase) => {
            ProviderErrorKind::NotFound
        }
        StatusCode::CONFLICT => ProviderErrorKind::Conflict,
        // Too many sandboxes or too many requests: no capacity now, but everything else continues to work.
        StatusCode::TOO_MANY_REQUESTS | StatusCode::INSUFFICIENT_STORAGE => {
            ProviderErrorKind::NoCapacity
        }
        StatusCode::GATEWAY_TIMEOUT | StatusCode::REQUEST_TIMEOUT => ProviderErrorKind::TimedOut,
        _ if status.is_server_error() => ProviderErrorKind::Unavailable,
        _ => ProviderErrorKind::Invalid,
    };
    let message = match detail.is_empty() {
        true => format!("E2B answered `{verb}` with {status}"),
        false => format!("E2B answered `{verb}` with {}: {detail}", status.as_u16()),
    };
    RetryAdvice::of(status, headers).on(ProviderError::new(kind, message))
}

/// The key is wrong: a retry cannot help, and no sandbox of the account can be reached.
fn not_accepted() -> ProviderError {
    let message = "E2B does not accept the API key";
    let mut error = ProviderError::new(ProviderErrorKind::Unavailable, message);
    error.retry = Retry::Never;
    error.hint(Some("set E2B_API_KEY to a valid key".to_owned()))
}

/// The key lacks a permission. A key without the permissions that every key has is invalid. All else depends on the call, on the
/// key's permissions or on the account's plan, and says nothing about other calls.
fn not_allowed(verb: Verb, status: StatusCode, detail: &str) -> ProviderError {
    let kind = match verb {
        Verb::CheckHealth | Verb::List => return not_accepted(),
        Verb::SetNetwork
        | Verb::Snapshot
        | Verb::Fork
        | Verb::Pause
        | Verb::Usage
        | Verb::UsageHistory
        | Verb::Templates
        | Verb::RemoveTemplate => ProviderErrorKind::Unsupported,
        _ if status == StatusCode::UNAUTHORIZED => return not_accepted(),
        _ => ProviderErrorKind::Failed,
    };
    let separator = if detail.is_empty() { "" } else { ": " };
    let message = format!("E2B does not allow this key to do `{verb}`{separator}{detail}");
    let hint = "check the permissions of E2B_API_KEY and the account's plan";
    ProviderError::new(kind, message).hint(Some(hint.to_owned()))
}

fn is_about_template(text: &str) -> bool {
    text.contains("template")
        && ["not found", "no template", "does not exist", "not exist"]
            .iter()
            .any(|phrase| text.contains(phrase))
}

/// The API's message, in a form that can be shown.
fn printable(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control())
        .take(MAX_MESSAGE)
        .collect()
}

/// The maximum timeout, if the API refused a longer one.
///
/// COMPAT(e2b): `timeout cannot be greater than 24 hours`.
pub(super) fn max_timeout(error: &ProviderError) -> Option<Duration> {
    let lowercase = error.message.to_ascii_lowercase();
    let (_, rest) = lowercase.split_once("greater than ")?;
    if !lowercase.contains("timeout") {
        return None;
    }
    let mut rest = rest.split_whitespace();
    let number: u64 = rest.next()?.parse().ok()?;
    let unit = match rest.next()?.get(..4)? {
        "hour" => 3600,
        "minu" => 60,
        "seco" => 1,
        _ => return None,
    };
    let seconds = number.checked_mul(unit).filter(|seconds| *seconds > 0)?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ProviderErrorKind::{
        Conflict, Failed, Invalid, NoCapacity, NotFound, TimedOut, Unavailable, Unsupported,
    };

    fn error_of(
        status: u16,
        headers: &[(&'static str, &'static str)],
        message: &str,
    ) -> ProviderError {
        let status = StatusCode::from_u16(status).unwrap();
        let headers = headers.iter().map(|(name, value)| {
            let name = http::HeaderName::from_static(name);
            (name, http::HeaderValue::from_static(value))
        });
        let body = serde_json::json!({"code": 1, "message": message}).to_string();
        refused(Verb::Create, status, &headers.collect(), body.as_bytes())
    }

    #[test]
    fn statuses_become_kinds() {
        for (status, message, kind) in [
            (400, "no", Invalid),
            (404, "", NotFound),
            (400, "Template 'x' not found", NotFound),
            (400, "the template is not ready", Invalid),
            (403, "template does not exist", NotFound),
            (401, "Invalid API key", Unavailable),
            (409, "", Conflict),
            (429, "slow down", NoCapacity),
            (
                429,
                "you have reached the maximum number of concurrent E2B sandboxes",
                NoCapacity,
            ),
            (500, "", Unavailable),
            (503, "", Unavailable),
            (504, "", TimedOut),
        ] {
            assert_eq!(
                error_of(status, &[], message).kind,
                kind,
                "{status} {message}"
            );
        }
        assert_eq!(error_of(429, &[], "").retry, Retry::Later);
        assert_eq!(error_of(401, &[], "").retry, Retry::Never);
    }

    #[test]
    fn missing_permissions_do_not_make_the_provider_unavailable() {
        let kind_of = |verb, status: u16| {
            let status = StatusCode::from_u16(status).unwrap();
            let error = refused(verb, status, &HeaderMap::new(), b"");
            assert_eq!(error.retry, Retry::Never);
            error.kind
        };
        for status in [401, 403] {
            assert_eq!(kind_of(Verb::SetNetwork, status), Unsupported);
            assert_eq!(kind_of(Verb::Snapshot, status), Unsupported);
            assert_eq!(kind_of(Verb::CheckHealth, status), Unavailable);
            assert_eq!(kind_of(Verb::List, status), Unavailable);
        }
        assert_eq!(kind_of(Verb::Create, 403), Failed);
    }

    #[test]
    fn a_retry_time_is_read_up_to_a_bound() {
        let after = |headers| {
            error_of(429, headers, "")
                .retry_after
                .map(|wait| wait.as_secs())
        };
        assert_eq!(after(&[("retry-after", "7")]), Some(7));
        assert_eq!(after(&[("ratelimit-reset", "3")]), Some(3));
        assert_eq!(after(&[("retry-after", "99999999")]), Some(300));
        assert_eq!(after(&[("retry-after", "tomorrow")]), None);
        assert_eq!(after(&[]), None);
        let date = "Thu, 31 Dec 2099 23:59:59 GMT";
        assert_eq!(after(&[("retry-after", date)]), Some(300));
        // The header overrides the status, which alone would allow a retry.
        let never = error_of(503, &[("should-retry", "false"), ("retry-after", "7")], "");
        assert_eq!((never.kind, never.retry), (Unavailable, Retry::Never));
        assert_eq!(never.retry_after, None);
        // A wait does not make a permanent error temporary.
        assert_eq!(
            error_of(400, &[("retry-after", "7")], "").retry,
            Retry::Never
        );
    }

    #[test]
    fn the_maximum_timeout_is_read_from_the_message() {
        let max_timeout =
            |text: &str| max_timeout(&error_of(400, &[], text)).map(|timeout| timeout.as_secs());
        assert_eq!(
            max_timeout("Timeout cannot be greater than 24 hours"),
            Some(86_400)
        );
        assert_eq!(
            max_timeout("timeout cannot be greater than 1 hour"),
            Some(3600)
        );
        assert_eq!(max_timeout("timeout cannot be greater than 0 hours"), None);
        assert_eq!(max_timeout("memory cannot be greater than 8 hours"), None);
        assert_eq!(max_timeout("timeout cannot be greater than"), None);
    }

    #[test]
    fn messages_of_the_api_are_sanitised() {
        let message = error_of(400, &[], &format!("a\u{1b}[31m{}", "x".repeat(9999))).message;
        assert!(
            !message.contains('\u{1b}') && message.len() < 400,
            "{message}"
        );
    }
}
