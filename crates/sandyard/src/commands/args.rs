//! Values on the command line that several commands take.

use sandyard_core::network::Target;

/// Reads `NAME=VALUE`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

/// Reads `VARIABLE=SECRET`: where a secret's placeholder goes, and the secret's name.
pub(crate) fn secret_pair(text: &str) -> Result<(String, String), String> {
    match pair(text) {
        Ok((variable, secret)) if !secret.is_empty() => Ok((variable, secret)),
        _ => Err(
            "write VARIABLE=SECRET, with the name of a secret, never its value; \
                  `sandyard secret ls` lists yours"
                .to_owned(),
        ),
    }
}

/// Reads `NAME:/PATH`: a volume, and where it is to be inside. The path comes first in what is returned.
pub(crate) fn mount(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, path)) if !name.is_empty() && path.starts_with('/') => {
            Ok((path.to_owned(), name.to_owned()))
        }
        _ => Err("write NAME:/PATH, like data:/mnt/data".to_owned()),
    }
}

/// Reads what a sandbox may or may not reach.
pub(crate) fn target(text: &str) -> Result<Target, String> {
    text.parse::<Target>()
        .map_err(|error| match host_of_url(text) {
            Some((scheme, host)) => {
                format!("{error}; write `{host}`, without {scheme}:// and path")
            }
            None => error.to_string(),
        })
}

/// The scheme of a URL, and its host and port if those are a target.
fn host_of_url(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next()?;
    host.parse::<Target>().is_ok().then_some((scheme, host))
}

/// Reads a time span as seconds, of which there may be parts: `0.5`, `90`, `10m`.
pub(crate) fn some_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => Ok(seconds),
        Ok(_) => Err("write seconds, or numbers with s, m, h or d, like 0.5, 90 or 10m".to_owned()),
        Err(_) => seconds(text).map(|seconds| seconds as f64),
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
    fn a_secret_is_named_and_never_given() {
        let github = ("TOKEN".to_owned(), "github".to_owned());
        assert_eq!(secret_pair("TOKEN=github"), Ok(github));
        for text in ["TOKEN", "=github", "TOKEN="] {
            let problem = secret_pair(text).unwrap_err();
            assert!(problem.contains("VARIABLE=SECRET"), "{problem}");
        }
    }

    #[test]
    fn a_url_is_told_how_to_be_a_target() {
        assert_eq!(target("*.pypi.org:443").unwrap().port, Some(443));
        for (text, advice) in [
            (
                "http://pypi.org/",
                "write `pypi.org`, without http:// and path",
            ),
            (
                "https://pypi.org:8443/simple?a#b",
                "write `pypi.org:8443`, without https://",
            ),
        ] {
            let problem = target(text).unwrap_err();
            assert!(
                problem.contains(text) && problem.contains(advice),
                "{problem}"
            );
        }
        for text in ["a b", "http://", "http://a b/", "pypi.org/simple"] {
            let problem = target(text).unwrap_err();
            assert!(!problem.contains("; write `"), "{problem}");
        }
    }

    #[test]
    fn a_command_may_have_parts_of_a_second() {
        for (text, expected) in [("0.5", 0.5), ("0", 0.0), ("10m", 600.0), ("1h30m", 5400.0)] {
            assert_eq!(some_seconds(text), Ok(expected), "{text}");
        }
        for text in ["-1", "inf", "NaN", "soon", "1.5h", ""] {
            assert!(some_seconds(text).is_err(), "{text}");
        }
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
