//! Failures of the API, by our kinds.

use std::error::Error;
use std::time::Duration;

use http::StatusCode;
use sandyard_provider::{ProviderError, ProviderErrorKind, Retry};
use serde::Deserialize;

use crate::cloud_connector::RetryAdvice;

/// Most characters of what the other side says that are handed on.
const MAX_WORDS: usize = 300;

/// No answer, or not all of it.
pub(super) fn unsent(what: &str, error: reqwest::Error) -> ProviderError {
    let (kind, how) = if error.is_timeout() && !error.is_connect() {
        (ProviderErrorKind::TimedOut, "took too long over")
    } else {
        (ProviderErrorKind::Unavailable, "could not be asked for")
    };
    ProviderError::new(kind, format!("Daytona {how} `{what}`"))
        .hint(Some(
            "look whether DAYTONA_SERVER_URL can be reached".to_owned(),
        ))
        .source(error.without_url())
}

/// An answer that is none.
pub(super) fn odd(what: &str, error: impl Into<Box<dyn Error + Send + Sync>>) -> ProviderError {
    let message = format!("Daytona's answer to `{what}` was not understood");
    ProviderError::new(ProviderErrorKind::Failed, message).source(error)
}

/// What was not done in its time.
pub(super) fn timed_out(what: &str, most: Duration) -> ProviderError {
    let message = format!("Daytona took longer than {most:?} over `{what}`");
    ProviderError::new(ProviderErrorKind::TimedOut, message)
}

/// No such instance of ours.
pub(super) fn absent() -> ProviderError {
    ProviderError::new(ProviderErrorKind::NotFound, "no such instance at Daytona")
}

/// Not in its present state.
pub(super) fn conflict(message: impl Into<String>) -> ProviderError {
    ProviderError::new(ProviderErrorKind::Conflict, message)
}

/// What cannot be done there at all.
pub(super) fn unsupported(what: &str) -> ProviderError {
    let message = format!("sandboxes at Daytona cannot {what}");
    ProviderError::new(ProviderErrorKind::Unsupported, message)
}

/// What the API says of a failure: in `message`, or by some of its parts in `error` or `errors`.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Refusal {
    message: serde_json::Value,
    error: serde_json::Value,
    errors: serde_json::Value,
}

/// An answer that is a failure.
pub(super) fn refused(
    what: &str,
    status: StatusCode,
    advice: RetryAdvice,
    body: &[u8],
) -> ProviderError {
    let words = words(body);
    let kind = kind(what, status, &words);
    let said = match words.is_empty() {
        true => String::new(),
        false => format!(": {words}"),
    };
    let message = format!("Daytona answered `{what}` with {}{said}", status.as_u16());
    let is_key = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
        && kind != ProviderErrorKind::NoCapacity;
    let mut error = ProviderError::new(kind, message);
    if is_key {
        error.retry = Retry::Never;
        error.hint = Some("look whether DAYTONA_API_KEY is valid and may do that".to_owned());
    }
    let mut error = advice.on(error);
    if let Some(wait) = error.retry_after.filter(|_| error.hint.is_none()) {
        error.hint = Some(format!("try again in {} seconds", wait.as_secs()));
    }
    error
}

fn kind(what: &str, status: StatusCode, words: &str) -> ProviderErrorKind {
    let speaks_of = |word| words.to_ascii_lowercase().contains(word);
    match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::PAYMENT_REQUIRED => {
            ProviderErrorKind::NoCapacity
        }
        // What an account may use is refused in the same way as what it may do.
        StatusCode::BAD_REQUEST | StatusCode::FORBIDDEN
            if speaks_of("quota") || speaks_of("limit exceeded") || speaks_of("no available") =>
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

/// If the key may not do what every key may, it is none; all else is a matter of the one call, of the key's permissions or the
/// account's plan, and says nothing about other calls.
fn not_allowed(what: &str, status: StatusCode) -> ProviderErrorKind {
    match what {
        "health" | "list" | "config" => ProviderErrorKind::Unavailable,
        "network" | "snapshot" | "pause" | "metrics" => ProviderErrorKind::Unsupported,
        _ if status == StatusCode::UNAUTHORIZED => ProviderErrorKind::Unavailable,
        _ => ProviderErrorKind::Failed,
    }
}

/// What the other side says, fit to be shown.
fn words(body: &[u8]) -> String {
    let said: Refusal = serde_json::from_slice(body).unwrap_or_default();
    let parts = [said.message, said.errors, said.error];
    let texts = parts.iter().map(|part| match part {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(all) => {
            let texts: Vec<_> = all.iter().filter_map(|one| one.as_str()).collect();
            texts.join(", ")
        }
        _ => String::new(),
    });
    let text = texts.into_iter().find(|text| !text.is_empty());
    tidy(&text.unwrap_or_default())
}

/// One line of bounded length.
pub(super) fn tidy(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let short: String = plain.take(MAX_WORDS).collect();
    short.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEVEN: RetryAdvice = RetryAdvice::After(Duration::from_secs(7));

    fn of(status: u16, body: &str) -> ProviderError {
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
            assert_eq!(of(status, body).kind, kind, "{status}");
        }
    }

    #[test]
    fn what_a_plan_does_not_have_says_nothing_about_the_place() {
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
    fn hints_say_what_to_do() {
        assert!(
            of(401, "")
                .hint
                .expect("a hint")
                .contains("DAYTONA_API_KEY")
        );
        assert_eq!(of(401, "").retry, Retry::Never);
        assert!(of(429, "").hint.expect("a hint").contains("7 seconds"));
        assert_eq!(of(429, "").retry_after, Some(Duration::from_secs(7)));
    }

    #[test]
    fn their_words_are_bounded_and_on_one_line() {
        let long = format!(r#"{{"message": ["a\nb", "{}"]}}"#, "x".repeat(5000));
        let message = of(422, &long).message;
        assert!(
            message.contains("a b, xxx") && message.len() < 400,
            "{message}"
        );
    }
}
