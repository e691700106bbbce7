//! The bounds of a policy, and which headers it may set.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::pattern::canonical_name;
use super::policy::{HostRule, NetworkPolicy, PolicyError};
use super::target::{Target, parse_port};

/// Most entries of `allow_out`, and of `deny_out`.
pub const MAX_ENTRIES: usize = 1000;

/// Most hosts that have rules.
pub const MAX_RULE_HOSTS: usize = 100;

/// Most rules of one host, and most headers that they set in all.
pub const MAX_HEADERS_PER_HOST: usize = 20;

/// Longest value of a header.
pub const MAX_HEADER_VALUE_BYTES: usize = 8 * 1024;

/// Longest name of a header.
const MAX_HEADER_NAME_BYTES: usize = 128;

/// Headers that say how a message is framed, where it goes or who may read it on the way; the gateway's own business.
const KEPT_HEADERS: [&str; 8] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Stands for the port of a preview in `mask_request_host`.
const PORT_VARIABLE: &str = "${PORT}";

impl NetworkPolicy {
    /// Checks what types do not: how many entries and rules there are, and that headers are such as may be set.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), PolicyError> {
        check_entries("allow_out", &self.allow_out)?;
        check_entries("deny_out", &self.deny_out)?;
        check_count("rules", "hosts", self.rules.len(), MAX_RULE_HOSTS)?;
        for (host, rules) in &self.rules {
            check_rules(&format!("rules.{host}"), rules)?;
        }
        match &self.mask_request_host {
            Some(host) if !is_request_host(host) => Err(PolicyError::new(
                "mask_request_host",
                "must be a host name or an address, with or without `:port`, as `localhost:${PORT}`",
            )),
            _ => Ok(()),
        }
    }
}

fn check_entries(path: &str, entries: &[Target]) -> Result<(), PolicyError> {
    check_count(path, "entries", entries.len(), MAX_ENTRIES)
}

fn check_count(path: &str, what: &str, count: usize, limit: usize) -> Result<(), PolicyError> {
    if count > limit {
        let problem = format!("holds {count} {what}, at most {limit} are possible");
        return Err(PolicyError::new(path, problem));
    }
    Ok(())
}

fn check_rules(path: &str, rules: &[HostRule]) -> Result<(), PolicyError> {
    check_count(path, "rules", rules.len(), MAX_HEADERS_PER_HOST)?;
    let headers = rules.iter().map(|rule| rule.transform.headers.len()).sum();
    check_count(path, "headers", headers, MAX_HEADERS_PER_HOST)?;
    for (index, rule) in rules.iter().enumerate() {
        let mut seen = BTreeSet::new();
        for (name, value) in &rule.transform.headers {
            let problem = match header_problem(name, value) {
                None if !seen.insert(name.to_ascii_lowercase()) => {
                    Some("is given twice, in other letters")
                }
                problem => problem,
            };
            if let Some(problem) = problem {
                let field = format!("{path}[{index}].transform.headers.{name}");
                return Err(PolicyError::new(field, problem));
            }
        }
    }
    Ok(())
}

/// What is wrong with a header. Never shows the value.
fn header_problem(name: &str, value: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    if name.is_empty() || name.len() > MAX_HEADER_NAME_BYTES || !name.bytes().all(is_token_byte) {
        Some("is not a valid header name: use 1 to 128 letters, digits and `-`")
    } else if KEPT_HEADERS.contains(&lower.as_str()) || lower.starts_with("proxy-") {
        Some("cannot be set: it says how the request is carried")
    } else if value.len() > MAX_HEADER_VALUE_BYTES {
        Some("has a value of more than 8 KiB")
    } else if value
        .chars()
        .any(|letter| letter.is_ascii_control() && letter != '\t')
    {
        Some("has a value with line ends or other control characters")
    } else {
        None
    }
}

/// What the names of headers are made of: RFC 9110, 5.6.2.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn is_request_host(text: &str) -> bool {
    let text = text.replace(PORT_VARIABLE, "80");
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text.as_str(), None),
    };
    let inner = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let is_host = match inner {
        Some(inner) => inner.parse::<Ipv6Addr>().is_ok(),
        None => canonical_name(host).is_some() || host.parse::<Ipv4Addr>().is_ok(),
    };
    is_host && port.is_none_or(|port| parse_port(port).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn refused(value: Value) -> (String, String) {
        let PolicyError { field, problem } =
            NetworkPolicy::from_value(value).expect_err("a refusal");
        (field, problem)
    }

    fn with_header(name: &str, value: &str) -> Value {
        json!({"rules": {"api.example.com": [{"transform": {"headers": {name: value}}}]}})
    }

    fn hosts(count: usize) -> Vec<String> {
        (0..count).map(|n| format!("h{n}.example.com")).collect()
    }

    #[test]
    fn lists_have_a_longest_length() {
        for field in ["allow_out", "deny_out"] {
            assert!(NetworkPolicy::from_value(json!({field: hosts(1000)})).is_ok());
            assert_eq!(refused(json!({field: hosts(1001)})).0, field);
        }
    }

    #[test]
    fn rules_have_bounds() {
        let rules = |count| json!({"rules": hosts(count).into_iter().map(|host| (host, json!([]))).collect::<Value>()});
        assert!(NetworkPolicy::from_value(rules(100)).is_ok());
        assert_eq!(refused(rules(101)).0, "rules");

        let headers = |count: usize| -> Value {
            let set: Value = (0..count).map(|n| (format!("x-{n}"), json!("v"))).collect();
            json!({"transform": {"headers": set}})
        };
        assert!(
            NetworkPolicy::from_value(json!({"rules": {"a.org": [headers(10), headers(10)]}}))
                .is_ok()
        );
        assert_eq!(
            refused(json!({"rules": {"a.org": [headers(10), headers(11)]}})).0,
            "rules.a.org"
        );
        assert_eq!(
            refused(json!({"rules": {"a.org": vec![headers(0); 21]}})).0,
            "rules.a.org"
        );
    }

    #[test]
    fn headers_of_the_connection_cannot_be_set() {
        for name in [
            "connection",
            "Keep-Alive",
            "proxy-authorization",
            "Proxy-Anything",
            "TE",
            "trailer",
            "transfer-encoding",
            "upgrade",
            "Content-Length",
            "Host",
        ] {
            let (field, problem) = refused(with_header(name, "v"));
            assert_eq!(
                field,
                format!("rules.api.example.com[0].transform.headers.{name}")
            );
            assert!(problem.contains("cannot be set"), "{problem}");
        }
        for name in ["Authorization", "x-api-key", "cookie", "te-x", "x-host"] {
            assert!(
                NetworkPolicy::from_value(with_header(name, "v")).is_ok(),
                "{name}"
            );
        }
    }

    #[test]
    fn names_of_headers_are_tokens() {
        for name in ["", "a b", "a:b", "a\r\nb", "ä", "a\0", &"a".repeat(129)] {
            assert!(
                refused(with_header(name, "v"))
                    .1
                    .contains("not a valid header name"),
                "{name}"
            );
        }
    }

    #[test]
    fn values_of_headers_cannot_end_a_line_and_are_never_shown() {
        for value in [
            "hush\r",
            "hush\nx: y",
            "hush\0",
            "hush\x1b[0m",
            "hush\x7f",
            &"hush".repeat(2049),
        ] {
            let (field, problem) = refused(with_header("x-a", value));
            assert_eq!(field, "rules.api.example.com[0].transform.headers.x-a");
            assert!(!problem.contains("hush"), "{problem}");
        }
        for value in ["", "a\tb", "Bearer ä", &"a".repeat(8192)] {
            assert!(NetworkPolicy::from_value(with_header("x-a", value)).is_ok());
        }
    }

    #[test]
    fn one_header_in_two_spellings_is_refused() {
        let twice =
            json!({"rules": {"a.org": [{"transform": {"headers": {"X-A": "1", "x-a": "2"}}}]}});
        assert_eq!(refused(twice).0, "rules.a.org[0].transform.headers.x-a");
    }

    #[test]
    fn a_masked_host_is_a_host() {
        let masked = |host: &str| NetworkPolicy::from_value(json!({"mask_request_host": host}));
        for host in [
            "localhost",
            "localhost:3000",
            "localhost:${PORT}",
            "${PORT}.example.com",
            "127.0.0.1:80",
            "[::1]",
            "[::1]:80",
        ] {
            assert!(masked(host).is_ok(), "{host}");
        }
        for host in [
            "",
            ":80",
            "a b",
            "a\r\nx: y",
            "http://a",
            "a/b",
            "a:b",
            "a:0",
            "::1",
            "[a]",
            "[::1",
            "*.a.com",
            "user@a",
            "${HOST}",
        ] {
            assert_eq!(masked(host).expect_err(host).field, "mask_request_host");
        }
    }
}
