//! The requested part of a file.

/// The part of a file to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Full,
    /// From the first to the last byte, both included.
    Range {
        /// The first byte.
        first: u64,
        /// The last byte.
        last: u64,
    },
    /// The range begins after the end.
    Unsatisfiable,
}

/// Parses a `Range` header for a file of this size.
///
/// Unsupported headers, including several ranges, are ignored, as RFC 9110 allows.
pub fn parse(header: Option<&str>, size: u64) -> Part {
    let Some(spec) = header.and_then(|header| header.trim().strip_prefix("bytes=")) else {
        return Part::Full;
    };
    let Some((from, to)) = spec.trim().split_once('-') else {
        return Part::Full;
    };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    match (from.trim().is_empty(), number(from), number(to)) {
        (true, _, Some(0)) => Part::Unsatisfiable,
        (true, _, Some(_)) if size == 0 => Part::Unsatisfiable,
        (true, _, Some(suffix)) => Part::Range {
            first: size.saturating_sub(suffix),
            last: size - 1,
        },
        (false, Some(first), None) if to.trim().is_empty() => within(first, u64::MAX, size),
        (false, Some(first), Some(last)) if first <= last => within(first, last, size),
        _ => Part::Full,
    }
}

fn within(first: u64, last: u64, size: u64) -> Part {
    if first >= size {
        return Part::Unsatisfiable;
    }
    Part::Range {
        first,
        last: last.min(size - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_mean_what_the_standard_says() {
        let range = |first, last| Part::Range { first, last };
        for (header, part) in [
            ("bytes=0-4", range(0, 4)),
            ("bytes=5-", range(5, 9)),
            ("bytes=-3", range(7, 9)),
            ("bytes=-30", range(0, 9)),
            ("bytes=8-100", range(8, 9)),
            ("bytes=10-", Part::Unsatisfiable),
            ("bytes=-0", Part::Unsatisfiable),
            ("bytes=4-2", Part::Full),
            ("bytes=0-1,3-4", Part::Full),
            ("bytes=x-y", Part::Full),
            ("bytes=-", Part::Full),
            ("lines=1-2", Part::Full),
        ] {
            assert_eq!(parse(Some(header), 10), part, "{header}");
        }
        assert_eq!(parse(Some("bytes=0-"), 0), Part::Unsatisfiable);
        assert_eq!(parse(Some("bytes=-5"), 0), Part::Unsatisfiable);
        assert_eq!(parse(None, 10), Part::Full);
    }
}
