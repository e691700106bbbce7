//! Time spans as people write them: `3600`, `1h`, `1h 30m`, `7d`.

/// Seconds of a minute.
pub const MINUTE: u64 = 60;
/// Seconds of an hour.
pub const HOUR: u64 = 60 * MINUTE;
/// Seconds of a day.
pub const DAY: u64 = 24 * HOUR;

/// Reads a time span: seconds, or numbers with units. None if it is not one.
pub fn seconds(text: &str) -> Option<u64> {
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

/// Writes a time span as people do: `45s`, `1h30m`, `24h`, `7d`.
#[must_use]
pub fn readable(seconds: u64) -> String {
    let (days, rest) = (seconds / DAY, seconds % DAY);
    // One day is better known as 24 hours.
    let (days, hours) = match days {
        ..=1 => (0, seconds / HOUR),
        days => (days, rest / HOUR),
    };
    let parts = [
        (days, 'd'),
        (hours, 'h'),
        (seconds % HOUR / MINUTE, 'm'),
        (seconds % MINUTE, 's'),
    ];
    let text: String = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count}{unit}"))
        .collect();
    match text.as_str() {
        "" => "0s".to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_spans_are_seconds_or_numbers_with_units() {
        for (text, expected) in [
            ("90", Some(90)),
            ("1h", Some(HOUR)),
            ("1h 30m", Some(90 * MINUTE)),
            (" 2D ", Some(2 * DAY)),
            ("", None),
            ("h", None),
            ("1w", None),
            ("-5", None),
            ("99999999999999999999s", None),
        ] {
            assert_eq!(seconds(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_written_time_span_is_read_again() {
        for (span, expected) in [
            (0, "0s"),
            (45, "45s"),
            (90 * MINUTE, "1h30m"),
            (DAY, "24h"),
            (3 * DAY, "3d"),
            (3 * DAY + 61, "3d1m1s"),
        ] {
            assert_eq!(readable(span), expected);
            assert_eq!(seconds(expected), Some(span));
        }
    }
}
