//! Dates in the answers of other servers, as milliseconds since the Unix epoch.

use jiff::Timestamp;

/// A moment as JSON APIs write it (RFC 3339); `None` when it is not one.
pub(crate) fn parse_rfc3339_ms(text: &str) -> Option<i64> {
    let moment = text.parse::<Timestamp>().ok()?;
    Some(moment.as_millisecond())
}

/// A moment as HTTP headers write it (RFC 2822); `None` when it is not one.
pub(crate) fn parse_http_date_ms(text: &str) -> Option<i64> {
    let parser = jiff::fmt::rfc2822::DateTimeParser::new();
    let moment = parser.parse_timestamp(text).ok()?;
    Some(moment.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_apis_are_read() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2024-02-29T12:30:15.123456789Z", Some(1_709_209_815_123)),
            ("2024-02-29T14:30:15.1+02:00", Some(1_709_209_815_100)),
            ("2000-03-01T00:00:00-01:00", Some(951_872_400_000)),
            ("", None),
            ("yesterday", None),
            ("2024-13-01T00:00:00Z", None),
        ] {
            assert_eq!(parse_rfc3339_ms(text), expected, "{text}");
        }
    }

    #[test]
    fn dates_of_headers_are_read() {
        let read = parse_http_date_ms;
        assert_eq!(read("Thu, 01 Jan 1970 00:00:02 GMT"), Some(2000));
        assert_eq!(read("soon"), None);
    }
}
