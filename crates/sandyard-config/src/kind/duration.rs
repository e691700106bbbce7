//! `3600`, `1h`, `1h 30m`, `7d`.

use std::time::Duration;

use sandyard_core::time_span;

pub use sandyard_core::time_span::{DAY, HOUR, MINUTE};

use super::Value;

/// Reads a time span: seconds, or numbers with units.
pub(super) fn parse(text: &str, min: u64, max: u64) -> Result<Value, String> {
    let seconds = time_span::seconds(text).ok_or(
        "is not a time span: write seconds, or numbers with s, m, h or d, like 90, 30m, 1h30m or 7d",
    )?;
    match (min..=max).contains(&seconds) {
        true => Ok(Value::Duration(Duration::from_secs(seconds))),
        false => Err(format!(
            "must be between {} and {}",
            format_duration(min),
            format_duration(max)
        )),
    }
}

/// Writes a time span in its largest even unit.
fn format_duration(seconds: u64) -> String {
    for (unit, length) in [("d", DAY), ("h", HOUR), ("m", MINUTE)] {
        if seconds >= length && seconds.is_multiple_of(length) {
            return format!("{}{unit}", seconds / length);
        }
    }
    format!("{seconds}s")
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandyard_core::time_span::seconds;

    #[test]
    fn time_spans_are_read_as_people_write_them() {
        for (text, expected) in [
            ("0", 0),
            ("3600", 3600),
            (" 90 ", 90),
            ("45s", 45),
            ("30m", 1800),
            ("1h", 3600),
            ("1h30m", 5400),
            ("1H 30M", 5400),
            ("7d", 604_800),
        ] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn malformed_time_spans_are_refused() {
        for text in [
            "",
            " ",
            "h",
            "1x",
            "1.5h",
            "-1",
            "1h30",
            "1hm",
            "1é",
            "99999999999999999999",
            "9999999999999999999d",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn a_refusal_shows_the_range_in_units() {
        let problem = parse("8d", 60, 7 * DAY).unwrap_err();
        assert_eq!(problem, "must be between 1m and 7d");
    }
}
