//! Times as answers show them.

/// RFC 3339, in UTC, to the millisecond.
pub(crate) fn iso(at_ms: i64) -> String {
    match jiff::Timestamp::from_millisecond(at_ms) {
        Ok(at) => format!("{at:.3}"),
        Err(_) => "-".to_owned(),
    }
}

/// The same if there is a time.
pub(crate) fn optional_iso(at_ms: Option<i64>) -> Option<String> {
    at_ms.map(iso)
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_are_shown_to_the_millisecond() {
        assert_eq!(super::iso(1_767_225_600_007), "2026-01-01T00:00:00.007Z");
    }
}
