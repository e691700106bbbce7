//! Times as people say them.

use jiff::{Timestamp, Unit};

/// How long ago a time (RFC 3339) was: `3 minutes ago`. A text that is no time is returned as it is.
pub(crate) fn ago(at: &str) -> String {
    match seconds_between(at, Timestamp::now()) {
        Some(seconds) => ago_text(seconds),
        None => at.to_owned(),
    }
}

/// How long it is until a time (RFC 3339): `58m`. A text that is no time is returned as it is.
pub(crate) fn until(at: &str) -> String {
    match seconds_between(at, Timestamp::now()) {
        Some(seconds) => span_text(-seconds),
        None => at.to_owned(),
    }
}

/// A time (RFC 3339) without fractions of a second: `2026-11-19 20:31:08`. A text that is no time is returned as it is.
pub(crate) fn clock_time(at: &str) -> String {
    let rounded = at.parse::<Timestamp>().ok();
    let rounded = rounded.and_then(|at| at.round(Unit::Second).ok());
    match rounded {
        Some(at) => at.to_string().replace('T', " ").replace('Z', ""),
        None => at.to_owned(),
    }
}

fn seconds_between(at: &str, now: Timestamp) -> Option<i64> {
    let at: Timestamp = at.parse().ok()?;
    Some((now.as_millisecond() - at.as_millisecond()).div_euclid(1000))
}

/// The number and the unit that describe a time span best.
fn parts(seconds: i64) -> (i64, &'static str) {
    match seconds {
        ..60 => (seconds, "second"),
        60..3600 => (seconds / 60, "minute"),
        3600..172_800 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    }
}

fn ago_text(seconds: i64) -> String {
    match parts(seconds) {
        (..=0, _) => "just now".to_owned(),
        (1, unit) => format!("1 {unit} ago"),
        (count, unit) => format!("{count} {unit}s ago"),
    }
}

fn span_text(seconds: i64) -> String {
    let (count, unit) = parts(seconds.max(0));
    format!("{count}{}", &unit[..1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_in_the_largest_unit() {
        for (seconds, ago, span) in [
            (-3, "just now", "0s"),
            (1, "1 second ago", "1s"),
            (59, "59 seconds ago", "59s"),
            (3599, "59 minutes ago", "59m"),
            (86_400, "24 hours ago", "24h"),
            (604_700, "6 days ago", "6d"),
        ] {
            assert_eq!(
                (ago_text(seconds), span_text(seconds).as_str()),
                (ago.to_owned(), span)
            );
        }
    }

    #[test]
    fn texts_that_are_no_times_are_kept() {
        assert_eq!(ago("yesterday"), "yesterday");
        assert_eq!(
            clock_time("2026-11-19T20:31:07.960Z"),
            "2026-11-19 20:31:08"
        );
        let now: Timestamp = "2026-11-19T20:31:07Z".parse().unwrap();
        assert_eq!(seconds_between("2026-11-19T20:30:07.5Z", now), Some(59));
    }
}
