//! When a failed request may be sent again, according to the response.

use std::time::Duration;

use http::StatusCode;
use http::header::{HeaderMap, RETRY_AFTER};
use sandyard_provider::{ProviderError, Retry};

use crate::date::parse_http_date_ms;
use crate::http_client::server_time_ms;

/// Maximum wait that a response can ask for.
const MAX_WAIT: Duration = Duration::from_secs(300);
/// Numbers from here on are timestamps in seconds since 1970, because nobody asks for a wait of thirty years.
const MIN_TIMESTAMP: f64 = 1e9;
/// Time until a rate limit resets, by any of these headers, with or without a suffix that names the limit.
const RESETS: [&str; 2] = ["ratelimit-reset", "x-ratelimit-reset"];
/// Whether the request should be repeated at all.
const SHOULD_RETRY: &str = "should-retry";

/// What a response says about repeating the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryAdvice {
    /// No advice.
    Unspecified,
    /// Not before this time.
    After(Duration),
    /// Never.
    Never,
}

impl RetryAdvice {
    /// Reads a failed response. If several headers name a wait, the longest one counts.
    pub(crate) fn of(status: StatusCode, headers: &HeaderMap) -> Self {
        let should_retry = headers.get(SHOULD_RETRY);
        if should_retry.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"false")) {
            return Self::Never;
        }
        let wait = longest_wait(headers, &[RETRY_AFTER.as_str()]);
        // Every response says when the rate limit resets. It is only relevant after too many requests, and if no other header names a
        // wait.
        let wait = match status {
            StatusCode::TOO_MANY_REQUESTS => wait.or_else(|| longest_wait(headers, &RESETS)),
            _ => wait,
        };
        wait.map_or(Self::Unspecified, Self::After)
    }

    /// Adds the advice to an error. An error that a repetition cannot solve stays as it is.
    pub(crate) fn on(self, mut error: ProviderError) -> ProviderError {
        match self {
            Self::After(wait) if error.retry == Retry::Later => error.retry_after(wait),
            Self::Never => {
                error.retry = Retry::Never;
                error
            }
            _ => error,
        }
    }
}

/// The longest wait of all headers with one of these names, alone or with a suffix after a dash.
fn longest_wait(headers: &HeaderMap, names: &[&str]) -> Option<Duration> {
    let is_match = |name: &str| {
        let mut suffixes = names.iter().filter_map(|prefix| name.strip_prefix(prefix));
        suffixes.any(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let wait = headers.iter().filter(|(name, _)| is_match(name.as_str()));
    wait.filter_map(|(_, value)| read(value.to_str().ok()?.trim(), headers))
        .max()
}

/// Reads seconds, a timestamp in seconds, or a date.
fn read(text: &str, headers: &HeaderMap) -> Option<Duration> {
    let until = |moment: f64| moment - server_time_ms(headers) as f64 / 1000.0;
    let seconds = match text.parse::<f64>() {
        Ok(number) if number >= MIN_TIMESTAMP => until(number),
        Ok(number) => number,
        Err(_) => until(parse_http_date_ms(text)? as f64 / 1000.0),
    };
    // A time in the past means no wait; an invalid number means no advice.
    let bounded = seconds.clamp(0.0, MAX_WAIT.as_secs_f64());
    Duration::try_from_secs_f64(bounded.ceil()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    const TOO_MANY_REQUESTS: StatusCode = StatusCode::TOO_MANY_REQUESTS;

    fn advice(status: StatusCode, headers: &[(&'static str, &'static str)]) -> RetryAdvice {
        let headers = headers.iter().map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        });
        RetryAdvice::of(status, &headers.collect())
    }

    fn after(headers: &[(&'static str, &'static str)]) -> Option<u64> {
        match advice(TOO_MANY_REQUESTS, headers) {
            RetryAdvice::After(wait) => Some(wait.as_secs()),
            _ => None,
        }
    }

    #[test]
    fn seconds_are_read_up_to_a_bound() {
        assert_eq!(after(&[("retry-after", "7")]), Some(7));
        assert_eq!(after(&[("retry-after", " 0.2 ")]), Some(1));
        assert_eq!(after(&[("retry-after", "99999999")]), Some(300));
        assert_eq!(after(&[("retry-after", "-5")]), Some(0));
        for invalid in ["", "tomorrow", "NaN", "1,5"] {
            assert_eq!(after(&[("retry-after", invalid)]), None, "{invalid}");
        }
        assert_eq!(advice(TOO_MANY_REQUESTS, &[]), RetryAdvice::Unspecified);
        let other = [("retry-afterwards", "7")];
        assert_eq!(advice(TOO_MANY_REQUESTS, &other), RetryAdvice::Unspecified);
    }

    #[test]
    fn dates_are_relative_to_the_servers_clock() {
        let now = ("date", "Wed, 21 Oct 2015 07:28:00 GMT");
        let after = |value| after(&[now, value]);
        let date = "Wed, 21 Oct 2015 07:28:09 GMT";
        assert_eq!(after(("retry-after", date)), Some(9));
        let past = "Wed, 21 Oct 2015 07:27:00 GMT";
        assert_eq!(after(("retry-after", past)), Some(0));
        assert_eq!(after(("x-ratelimit-reset", "1445412484")), Some(4));
    }

    /// As Daytona does: each rate limit has its own headers.
    #[test]
    fn the_longest_wait_of_all_headers_counts() {
        let both = [
            ("retry-after-sandbox-create", "3"),
            ("retry-after-authenticated", "11"),
            ("x-ratelimit-reset-anonymous", "60"),
        ];
        assert_eq!(after(&both), Some(11));
        assert_eq!(after(&both[2..]), Some(60));
        assert_eq!(after(&[("ratelimit-reset", "3")]), Some(3));
    }

    /// Every response says when the rate limit resets. If that counted always, an outage would look like a rate limit.
    #[test]
    fn a_reset_time_counts_only_after_too_many_requests() {
        let outage = StatusCode::SERVICE_UNAVAILABLE;
        let reset = [("x-ratelimit-reset-authenticated", "47")];
        assert_eq!(advice(outage, &reset), RetryAdvice::Unspecified);
        let both = [reset[0], ("retry-after", "2")];
        let wait = Duration::from_secs(2);
        assert_eq!(advice(outage, &both), RetryAdvice::After(wait));
    }

    #[test]
    fn a_response_can_forbid_a_retry() {
        let never = [("should-retry", "False"), ("retry-after", "7")];
        assert_eq!(advice(TOO_MANY_REQUESTS, &never), RetryAdvice::Never);
        assert_eq!(after(&[("should-retry", "true"), never[1]]), Some(7));
    }
}
