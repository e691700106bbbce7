//! `3600`, `1h`, `1h 30m`, `7d`.

use std::time::Duration;

use super::Value;

/// Seconds of a minute.
pub const MINUTE: u64 = 60;
/// Seconds of an hour.
pub const HOUR: u64 = 60 * MINUTE;
/// Seconds of a day.
pub const DAY: u64 = 24 * HOUR;

/// Reads a time span: seconds, or numbers with units.
pub(super) fn parse(text: &str, min: u64, max: u64) -> Result<Value, String> {
    let seconds = seconds(text).ok_or(
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

fn seconds(text: &str) -> Option<u64> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(seconds);
    }
    let mut total: u64 = 0;
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number: u64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let unit = match rest.chars().next()?.to_ascii_lowercase() {
            's' => 1,
            'm' => MINUTE,
            'h' => HOUR,
            'd' => DAY,
            _ => return None,
        };
        // All units are one byte.
        rest = rest[1..].trim_start();
        total = total.checked_add(number.checked_mul(unit)?)?;
    }
    (!text.trim().is_empty()).then_some(total)
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
