//! Options and value parsers that several commands share.

use std::collections::BTreeMap;

use clap::Args;
use sandyard_core::network::Target;
use sandyard_core::size::Size;
use sandyard_core::time_span;

/// Resource limits of a new sandbox.
#[derive(Debug, Args)]
pub(crate) struct LimitArgs {
    /// Maximum memory, for example 512m or 2g
    #[arg(long, short, value_name = "SIZE")]
    pub(super) memory: Option<Size>,
    /// Maximum number of CPU cores, for example 0.5 or 2
    #[arg(long, value_name = "CORES")]
    pub(super) cpu: Option<f64>,
    /// Maximum size of files written, for example 500m or 4g
    #[arg(long, value_name = "SIZE")]
    pub(super) disk: Option<Size>,
    /// Maximum number of processes and threads
    #[arg(long, value_name = "COUNT")]
    pub(super) pids: Option<u32>,
}

/// A command to run in a sandbox, and how.
#[derive(Debug, Args)]
pub(crate) struct CommandArgs {
    /// Forward standard input to the command
    #[arg(long, short)]
    pub(super) interactive: bool,
    /// Run the command in a terminal; implies --interactive
    #[arg(long, short)]
    pub(super) tty: bool,
    /// User in the sandbox that runs the command, for example user or root [default: user]
    #[arg(long, short, value_name = "NAME")]
    pub(super) user: Option<String>,
    /// Working directory in the sandbox [default: the user's home directory]
    #[arg(long, short = 'w', value_name = "DIR")]
    pub(super) cwd: Option<String>,
    /// Environment variable of the command; repeatable
    #[arg(long, short, value_name = "NAME=VALUE", value_parser = pair)]
    env: Vec<(String, String)>,
    /// Kill the command and its child processes after this time, for example 90s or 10m [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = fractional_seconds)]
    pub(super) timeout: Option<f64>,
}

impl CommandArgs {
    /// The command's environment variables. In a terminal, `TERM` defaults to ours.
    pub(super) fn variables(&self) -> BTreeMap<String, String> {
        let mut variables: BTreeMap<String, String> = self.env.iter().cloned().collect();
        if self.tty {
            let term = std::env::var("TERM").unwrap_or_else(|_| "xterm-256color".to_owned());
            variables.entry("TERM".to_owned()).or_insert(term);
        }
        variables
    }
}

/// Parses `NAME=VALUE`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

/// Parses `VARIABLE=SECRET`: the variable that gets the placeholder, and the secret's name.
pub(crate) fn secret_pair(text: &str) -> Result<(String, String), String> {
    match pair(text) {
        Ok((variable, secret)) if !secret.is_empty() => Ok((variable, secret)),
        _ => Err(
            "expected VARIABLE=SECRET with the name of a secret, not its value; \
                  `sandyard secret ls` lists your secrets"
                .to_owned(),
        ),
    }
}

/// Parses `NAME:/PATH`, a volume and its mount point. Returns the path first.
pub(crate) fn mount(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, path)) if !name.is_empty() && path.starts_with('/') => {
            Ok((path.to_owned(), name.to_owned()))
        }
        _ => Err("expected NAME:/PATH, for example data:/mnt/data".to_owned()),
    }
}

/// Parses a target of an egress policy.
pub(crate) fn target(text: &str) -> Result<Target, String> {
    text.parse::<Target>()
        .map_err(|error| match host_of_url(text) {
            Some((scheme, host)) => {
                format!("{error}; write `{host}`, without {scheme}:// and path")
            }
            None => error.to_string(),
        })
}

/// The scheme of a URL and its host with port, if the host is a valid target.
fn host_of_url(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next()?;
    host.parse::<Target>().is_ok().then_some((scheme, host))
}

/// Parses a duration as seconds, with fractions: `0.5`, `90`, `10m`.
pub(crate) fn fractional_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => Ok(seconds),
        Ok(_) => Err(
            "expected seconds, or numbers with s, m, h or d, for example 0.5, 90 or 10m".to_owned(),
        ),
        Err(_) => seconds(text).map(|seconds| seconds as f64),
    }
}

/// Parses a duration as whole seconds: `90`, `30m`, `1h30m`, `7d`.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    time_span::seconds(text).ok_or_else(|| {
        "expected seconds, or numbers with s, m, h or d, for example 90, 30m or 1h30m".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_split_at_the_first_equals_sign() {
        assert_eq!(pair("A=b=c"), Ok(("A".to_owned(), "b=c".to_owned())));
        assert_eq!(pair("A="), Ok(("A".to_owned(), String::new())));
        assert!(pair("A").is_err() && pair("=b").is_err());
    }

    #[test]
    fn a_secret_is_given_by_name() {
        let github = ("TOKEN".to_owned(), "github".to_owned());
        assert_eq!(secret_pair("TOKEN=github"), Ok(github));
        for text in ["TOKEN", "=github", "TOKEN="] {
            let problem = secret_pair(text).unwrap_err();
            assert!(problem.contains("VARIABLE=SECRET"), "{problem}");
        }
    }

    #[test]
    fn the_error_for_a_url_names_the_host_to_write() {
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
    fn fractions_of_a_second_are_accepted() {
        for (text, expected) in [("0.5", 0.5), ("0", 0.0), ("10m", 600.0), ("1h30m", 5400.0)] {
            assert_eq!(fractional_seconds(text), Ok(expected), "{text}");
        }
        for text in ["-1", "inf", "NaN", "soon", "1.5h", ""] {
            assert!(fractional_seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_parsed() {
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
