//! The known name somebody probably meant.

/// Finds the name nearest to `input`, if any is near enough to be worth suggesting.
///
/// A name with the right last part in the wrong section comes first: that is a misplaced setting, not a misspelt one.
pub fn nearest<'a>(input: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let input = input.to_lowercase();
    let last = |name: &str| name.rsplit('.').next().map(str::to_owned);
    let mut best: Option<(usize, &str)> = None;
    for name in names {
        let lower = name.to_lowercase();
        let misplaced = last(&lower) == last(&input);
        let distance = if misplaced {
            0
        } else {
            distance(&input, &lower)
        };
        if best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, name));
        }
    }
    let length = input.chars().count();
    let allowed = (length / 3).clamp(if length < 4 { 1 } else { 2 }, 4);
    best.filter(|(distance, _)| *distance <= allowed)
        .map(|(_, name)| name)
}

/// Counts the letters to add, drop, change or swap with their neighbour (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    // Names are short; a long one is nobody's typing mistake and must not cost a quadratic table.
    let [a, b] = [a, b].map(|name| name.chars().take(64).collect::<String>());
    strsim::osa_distance(&a, &b)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] = [
        "server.port",
        "server.host",
        "lifecycle.max_timeout",
        "log.level",
    ];

    #[test]
    fn misspelt_and_misplaced_names_are_recognised() {
        for (input, expected) in [
            ("server.prot", Some("server.port")),
            ("Server.Host", Some("server.host")),
            ("server.max_timeout", Some("lifecycle.max_timeout")),
            ("max_timeout", Some("lifecycle.max_timeout")),
            ("colour.scheme", None),
            ("", None),
        ] {
            assert_eq!(nearest(input, NAMES.into_iter()), expected, "{input}");
        }
    }

    #[test]
    fn a_swap_counts_once() {
        assert_eq!(distance("prot", "port"), 1);
        assert_eq!(distance("", "port"), 4);
        assert_eq!(distance("port", "port"), 0);
    }
}
