//! Values on the command line that several commands take.

/// Reads `NAME=VALUE`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

/// Reads a time span as seconds: `90`, `30m`, `1h30m`, `7d`.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    let problem =
        || "write seconds, or numbers with s, m, h or d, like 90, 30m or 1h30m".to_owned();
    if let Ok(seconds) = text.parse() {
        return Ok(seconds);
    }
    let mut total: u64 = 0;
    let mut number = None;
    for c in text.chars() {
        let digit = c.to_digit(10).map(u64::from);
        let unit = match c {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86400,
            _ => 0,
        };
        match (digit, number) {
            (Some(digit), _) => {
                let longer = number.unwrap_or(0_u64).checked_mul(10);
                number = Some(
                    longer
                        .and_then(|n| n.checked_add(digit))
                        .ok_or_else(problem)?,
                );
            }
            (None, Some(count)) if unit > 0 => {
                let span = count.checked_mul(unit).ok_or_else(problem)?;
                total = total.checked_add(span).ok_or_else(problem)?;
                number = None;
            }
            _ => return Err(problem()),
        }
    }
    match number {
        None if !text.is_empty() => Ok(total),
        _ => Err(problem()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_split_at_the_first_sign() {
        assert_eq!(pair("A=b=c"), Ok(("A".to_owned(), "b=c".to_owned())));
        assert_eq!(pair("A="), Ok(("A".to_owned(), String::new())));
        assert!(pair("A").is_err() && pair("=b").is_err());
    }

    #[test]
    fn time_spans_are_read_as_people_write_them() {
        for (text, expected) in [
            ("90", 90),
            ("45s", 45),
            ("30m", 1800),
            ("1h30m", 5400),
            ("7d", 604_800),
        ] {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
        for text in [
            "",
            "m",
            "1x",
            "h1",
            "1h30",
            "-5",
            "1.5h",
            "99999999999999999999d",
        ] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
