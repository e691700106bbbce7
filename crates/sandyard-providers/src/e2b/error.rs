//! Failures on the way to the API, and those it tells of.

use std::error::Error;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use sandyard_provider::{ProviderError, ProviderErrorKind, Retry, Verb};
use serde::Deserialize;

use crate::cloud_connector::RetryAdvice;

/// Longest text of the API's that is passed on.
const MAX_MESSAGE: usize = 300;

/// What the API says of a failure.
#[derive(Default, Deserialize)]
struct Told {
    #[serde(default)]
    message: String,
}

/// No answer, or not all of it.
pub(super) fn unsent(verb: Verb, error: reqwest::Error) -> ProviderError {
    let (kind, how) = if error.is_timeout() {
        (ProviderErrorKind::TimedOut, "took too long to answer")
    } else {
        (ProviderErrorKind::Unavailable, "could not be asked")
    };
    // An address may hold what is nobody's business.
    let error = error.without_url();
    ProviderError::new(kind, format!("E2B {how} `{verb}`")).source(error)
}

/// An answer that is none.
pub(super) fn odd(verb: Verb, error: impl Into<Box<dyn Error + Send + Sync>>) -> ProviderError {
    let message = format!("E2B's answer to `{verb}` could not be understood");
    ProviderError::new(ProviderErrorKind::Failed, message).source(error)
}

/// There is no such instance of ours.
pub(super) fn no_instance() -> ProviderError {
    ProviderError::new(
        ProviderErrorKind::NotFound,
        "there is no such sandbox at E2B",
    )
}

/// Something that E2B does not do.
pub(super) fn unsupported(what: &str) -> ProviderError {
    ProviderError::new(ProviderErrorKind::Unsupported, format!("E2B cannot {what}"))
}

/// An answer that is a failure.
pub(super) fn refused(
    verb: Verb,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> ProviderError {
    let told = serde_json::from_slice::<Told>(body).unwrap_or_default();
    let told = printable(&told.message);
    let words = told.to_ascii_lowercase();
    let kind = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if !is_about_template(&words) => {
            return not_allowed(verb, status, &told);
        }
        // COMPAT(e2b): which status says that a template is not there has changed over time.
        StatusCode::NOT_FOUND => ProviderErrorKind::NotFound,
        _ if status.is_client_error() && is_about_template(&words) => ProviderErrorKind::NotFound,
        StatusCode::CONFLICT => ProviderErrorKind::Conflict,
        // Too many sandboxes or too many requests: there is no room now, but everything else goes on.
        StatusCode::TOO_MANY_REQUESTS | StatusCode::INSUFFICIENT_STORAGE => {
            ProviderErrorKind::NoCapacity
        }
        StatusCode::GATEWAY_TIMEOUT | StatusCode::REQUEST_TIMEOUT => ProviderErrorKind::TimedOut,
        _ if status.is_server_error() => ProviderErrorKind::Unavailable,
        _ => ProviderErrorKind::Invalid,
    };
    let message = match told.is_empty() {
        true => format!("E2B answered `{verb}` with {status}"),
        false => format!("E2B answered `{verb}` with {}: {told}", status.as_u16()),
    };
    RetryAdvice::of(status, headers).on(ProviderError::new(kind, message))
}

/// The key is wrong: trying again helps nobody, and no sandbox of that place can be reached.
fn not_accepted() -> ProviderError {
    let message = "the API key is not accepted by E2B";
    let mut error = ProviderError::new(ProviderErrorKind::Unavailable, message);
    error.retry = Retry::Never;
    error.hint(Some("set E2B_API_KEY to a key that is valid".to_owned()))
}

/// The key may not do that. If that is what every key may do, it is none; all else is a matter of the one call, of the key's
/// permissions or the account's plan, and says nothing about other calls.
fn not_allowed(verb: Verb, status: StatusCode, told: &str) -> ProviderError {
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
    let said = if told.is_empty() { "" } else { ": " };
    let message = format!("E2B does not let this key do `{verb}`{said}{told}");
    let hint = "look what the key of E2B_API_KEY and its account's plan allow";
    ProviderError::new(kind, message).hint(Some(hint.to_owned()))
}

fn is_about_template(words: &str) -> bool {
    words.contains("template")
        && ["not found", "no template", "does not exist", "not exist"]
            .iter()
            .any(|text| words.contains(text))
}

/// The API's words, fit to be shown.
fn printable(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control())
        .take(MAX_MESSAGE)
        .collect()
}

/// The most a time-out may be, if that is what the API complains about.
///
/// COMPAT(e2b): `timeout cannot be greater than 24 hours`.
pub(super) fn longest(error: &ProviderError) -> Option<Duration> {
    let words = error.message.to_ascii_lowercase();
    let (_, rest) = words.split_once("greater than ")?;
    if !words.contains("timeout") {
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

    fn told(status: u16, headers: &[(&'static str, &'static str)], message: &str) -> ProviderError {
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
            assert_eq!(told(status, &[], message).kind, kind, "{status} {message}");
        }
        assert_eq!(told(429, &[], "").retry, Retry::Later);
        assert_eq!(told(401, &[], "").retry, Retry::Never);
    }

    #[test]
    fn what_a_plan_does_not_have_says_nothing_about_the_place() {
        let of = |verb, status: u16| {
            let status = StatusCode::from_u16(status).unwrap();
            let error = refused(verb, status, &HeaderMap::new(), b"");
            assert_eq!(error.retry, Retry::Never);
            error.kind
        };
        for status in [401, 403] {
            assert_eq!(of(Verb::SetNetwork, status), Unsupported);
            assert_eq!(of(Verb::Snapshot, status), Unsupported);
            assert_eq!(of(Verb::CheckHealth, status), Unavailable);
            assert_eq!(of(Verb::List, status), Unavailable);
        }
        assert_eq!(of(Verb::Create, 403), Failed);
    }

    #[test]
    fn the_wait_is_what_the_answer_says_up_to_a_bound() {
        let after = |headers| {
            told(429, headers, "")
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
        // It says so of what would be tried again by its status alone.
        let never = told(503, &[("should-retry", "false"), ("retry-after", "7")], "");
        assert_eq!((never.kind, never.retry), (Unavailable, Retry::Never));
        assert_eq!(never.retry_after, None);
        // A wait makes nothing of what is refused for good.
        assert_eq!(told(400, &[("retry-after", "7")], "").retry, Retry::Never);
    }

    #[test]
    fn the_longest_time_is_read_from_the_complaint() {
        let longest = |text: &str| longest(&told(400, &[], text)).map(|most| most.as_secs());
        assert_eq!(
            longest("Timeout cannot be greater than 24 hours"),
            Some(86_400)
        );
        assert_eq!(longest("timeout cannot be greater than 1 hour"), Some(3600));
        assert_eq!(longest("timeout cannot be greater than 0 hours"), None);
        assert_eq!(longest("memory cannot be greater than 8 hours"), None);
        assert_eq!(longest("timeout cannot be greater than"), None);
    }

    #[test]
    fn words_of_the_api_are_made_harmless() {
        let message = told(400, &[], &format!("a\u{1b}[31m{}", "x".repeat(9999))).message;
        assert!(
            !message.contains('\u{1b}') && message.len() < 400,
            "{message}"
        );
    }
}
