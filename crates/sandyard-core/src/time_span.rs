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
}
