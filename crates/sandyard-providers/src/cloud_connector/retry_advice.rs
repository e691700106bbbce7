//! What an answer that is a failure says about asking again.

use std::time::Duration;

use http::StatusCode;
use http::header::{DATE, HeaderMap, RETRY_AFTER};
use sandyard_core::Clock;
use sandyard_provider::{ProviderError, Retry};

use crate::date::parse_http_date_ms;

/// Longest time that is waited because somebody else says so.
const MOST: Duration = Duration::from_secs(300);
/// Numbers from here on are moments, in seconds since 1970: nobody means a wait of thirty years.
const MOMENTS: f64 = 1e9;
/// When one asks too often: the time until that is forgotten, by any of these, each with the name of what counts after it or not.
const RESETS: [&str; 2] = ["ratelimit-reset", "x-ratelimit-reset"];
/// Whether asking again makes sense at all.
const SHOULD_RETRY: &str = "should-retry";

/// What an answer says about asking again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryAdvice {
    /// Nothing.
    Silent,
    /// Not before this.
    After(Duration),
    /// Never.
    Never,
}

impl RetryAdvice {
    /// Reads a failing answer. Where several headers say how long to wait, all of them have to be over.
    pub(crate) fn of(status: StatusCode, headers: &HeaderMap) -> Self {
        let should_retry = headers.get(SHOULD_RETRY);
        if should_retry.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"false")) {
            return Self::Never;
        }
        let told = longest(headers, &[RETRY_AFTER.as_str()]);
        // When a count starts anew is told with every answer. It means something where one has asked too often, and nobody says
        // when to ask again.
        let told = match status {
            StatusCode::TOO_MANY_REQUESTS => told.or_else(|| longest(headers, &RESETS)),
            _ => told,
        };
        told.map_or(Self::Silent, Self::After)
    }

    /// Adds it to the failure. What does not get better by asking again does not by asking later.
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

/// The longest wait of all headers that are called so, alone or with something after a dash.
fn longest(headers: &HeaderMap, names: &[&str]) -> Option<Duration> {
    let is_one = |name: &str| {
        let mut rests = names.iter().filter_map(|one| name.strip_prefix(one));
        rests.any(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let told = headers.iter().filter(|(name, _)| is_one(name.as_str()));
    told.filter_map(|(_, value)| read(value.to_str().ok()?.trim(), headers))
        .max()
}

/// Seconds, a moment in seconds, or a date.
fn read(text: &str, headers: &HeaderMap) -> Option<Duration> {
    let until = |moment: f64| moment - now_ms(headers) as f64 / 1000.0;
    let seconds = match text.parse::<f64>() {
        Ok(number) if number >= MOMENTS => until(number),
        Ok(number) => number,
        Err(_) => until(parse_http_date_ms(text)? as f64 / 1000.0),
    };
    // What is over is no reason to wait; what is no number is none to do anything.
    let bounded = seconds.clamp(0.0, MOST.as_secs_f64());
    Duration::try_from_secs_f64(bounded.ceil()).ok()
}

/// What time it is there, or here where they do not say.
fn now_ms(headers: &HeaderMap) -> i64 {
    let date = headers.get(DATE).and_then(|date| date.to_str().ok());
    let told = date.and_then(parse_http_date_ms);
    told.unwrap_or_else(|| Clock::System.now_ms())
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
        for odd in ["", "tomorrow", "NaN", "1,5"] {
            assert_eq!(after(&[("retry-after", odd)]), None, "{odd}");
        }
        assert_eq!(advice(TOO_MANY_REQUESTS, &[]), RetryAdvice::Silent);
        let other = [("retry-afterwards", "7")];
        assert_eq!(advice(TOO_MANY_REQUESTS, &other), RetryAdvice::Silent);
    }

    #[test]
    fn dates_are_read_by_the_clock_of_who_says_them() {
        let now = ("date", "Wed, 21 Oct 2015 07:28:00 GMT");
        let after = |value| after(&[now, value]);
        let date = "Wed, 21 Oct 2015 07:28:09 GMT";
        assert_eq!(after(("retry-after", date)), Some(9));
        let past = "Wed, 21 Oct 2015 07:27:00 GMT";
        assert_eq!(after(("retry-after", past)), Some(0));
        assert_eq!(after(("x-ratelimit-reset", "1445412484")), Some(4));
    }

    /// As Daytona does it: each way of counting requests has headers of its own.
    #[test]
    fn the_longest_wait_of_all_that_count_is_taken() {
        let both = [
            ("retry-after-sandbox-create", "3"),
            ("retry-after-authenticated", "11"),
            ("x-ratelimit-reset-anonymous", "60"),
        ];
        assert_eq!(after(&both), Some(11));
        assert_eq!(after(&both[2..]), Some(60));
        assert_eq!(after(&[("ratelimit-reset", "3")]), Some(3));
    }

    /// All answers tell when a count starts anew. Had it a meaning there, an outage would be taken for a polite refusal.
    #[test]
    fn a_count_means_nothing_to_who_has_not_asked_too_often() {
        let outage = StatusCode::SERVICE_UNAVAILABLE;
        let counted = [("x-ratelimit-reset-authenticated", "47")];
        assert_eq!(advice(outage, &counted), RetryAdvice::Silent);
        let told = [counted[0], ("retry-after", "2")];
        let wait = Duration::from_secs(2);
        assert_eq!(advice(outage, &told), RetryAdvice::After(wait));
    }

    #[test]
    fn whoever_says_not_to_ask_again_is_not_asked() {
        let never = [("should-retry", "False"), ("retry-after", "7")];
        assert_eq!(advice(TOO_MANY_REQUESTS, &never), RetryAdvice::Never);
        assert_eq!(after(&[("should-retry", "true"), never[1]]), Some(7));
    }
}
