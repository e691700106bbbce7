//! URLs and DNS names, read as far as settings need them.

use std::net::IpAddr;

use super::Value;

/// Reads a DNS name.
pub(super) fn domain(text: &str) -> Result<Value, String> {
    let lower = text.trim_end_matches('.').to_ascii_lowercase();
    match is_domain(&lower) {
        true => Ok(Value::Text(lower)),
        false => Err("is not a DNS name like sandboxes.example.com".to_owned()),
    }
}

/// Reads a DNS name with or without a port behind it.
pub(super) fn host(text: &str) -> Result<Value, String> {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (text, None),
    };
    let lower = name.trim_end_matches('.').to_ascii_lowercase();
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    if !is_domain(&lower) || !port.is_none_or(is_port) {
        return Err(
            "is not a DNS name like sandboxes.example.com or sandboxes.example.com:8443".to_owned(),
        );
    }
    Ok(Value::Text(match port {
        Some(port) => format!("{lower}:{port}"),
        None => lower,
    }))
}

/// Reads `http://host:port`. Returned without a slash at the end, so that paths can be put behind it.
pub(super) fn http(text: &str) -> Result<Value, String> {
    let trimmed = text.trim_end_matches('/');
    match http_host(trimmed) {
        Some(_) => Ok(Value::Text(trimmed.to_owned())),
        None => Err(
            "is not a URL of the form http://host:port or https://host, with nothing behind it"
                .to_owned(),
        ),
    }
}

/// Reads a URL of a known scheme. `scheme+driver:` is the scheme: other languages name their driver there.
pub(super) fn any(text: &str, schemes: &'static [&'static str]) -> Result<Value, String> {
    let unsupported = || format!("is not a URL of {}", schemes.join(":, ") + ":");
    let (scheme, rest) = text.split_once(':').ok_or_else(unsupported)?;
    let scheme = scheme.to_ascii_lowercase();
    let bare = scheme.split('+').next().unwrap_or(&scheme);
    let name = [scheme.as_str(), bare]
        .into_iter()
        .find(|name| schemes.contains(name))
        .ok_or_else(unsupported)?;
    if rest.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(
            "holds a space or a control character: write those as %20 and so on".to_owned(),
        );
    }
    if rest.trim_start_matches('/').is_empty() {
        return Err("ends after its scheme".to_owned());
    }
    Ok(Value::Text(format!("{name}:{rest}")))
}

/// The host of an `http` or `https` URL that consists of nothing but scheme, host and port.
pub(crate) fn http_host(text: &str) -> Option<&str> {
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"))?;
    let (host, port) = match rest.strip_prefix('[') {
        Some(bracketed) => {
            let (host, port) = bracketed.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, port)
        }
        None => rest.split_at(rest.find(':').unwrap_or(rest.len())),
    };
    let is_host = host.parse::<IpAddr>().is_ok() || is_domain(&host.to_ascii_lowercase());
    let is_port = port.is_empty() || port.strip_prefix(':')?.parse::<u16>().is_ok();
    (is_host && is_port).then_some(host)
}

/// Hides the password in a URL, in the usual place and in its query.
///
/// Hides everything between the user's name and the last `@`, so a password with an unencoded `@` is hidden too.
pub(crate) fn mask(text: &str) -> String {
    const HIDDEN: &str = "********";
    let (base, query) = match text.split_once('?') {
        // A password with a bare `?` in it reaches beyond: then everything is treated as the front part.
        Some((base, query)) if !query.contains('@') => (base, Some(query)),
        _ => (text, None),
    };
    let mut masked = base.to_owned();
    let start = base.find("://").map(|at| at + 3);
    if let (Some(start), Some(end)) = (start, base.rfind('@'))
        && start <= end
        && let Some(colon) = base[start..end].find(':')
    {
        masked = format!("{}:{HIDDEN}{}", &base[..start + colon], &base[end..]);
    }
    let Some(query) = query else { return masked };
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if name.to_ascii_lowercase().contains("pass") => format!("{name}={HIDDEN}"),
        _ => pair.to_owned(),
    });
    format!("{masked}?{}", pairs.collect::<Vec<_>>().join("&"))
}

fn is_domain(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    // Room for the longest preview label in front.
    text.len() <= 200 && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hidden_wherever_urls_have_them() {
        for (text, masked) in [
            (
                "postgres://app:s3cret@db:5432/x",
                "postgres://app:********@db:5432/x",
            ),
            (
                "postgres://app:p@ss/w:rd@db/x",
                "postgres://app:********@db/x",
            ),
            ("postgres://app:p?ss@db/x", "postgres://app:********@db/x"),
            ("redis://:s3cret@cache", "redis://:********@cache"),
            (
                "postgres://db/x?user=a&password=b&sslmode=c",
                "postgres://db/x?user=a&password=********&sslmode=c",
            ),
            ("postgres://app@db/x", "postgres://app@db/x"),
            ("sqlite:///srv/a.db", "sqlite:///srv/a.db"),
            ("nonsense", "nonsense"),
        ] {
            assert_eq!(mask(text), masked);
        }
    }

    #[test]
    fn driver_names_are_dropped() {
        let text = |url: &str| Ok(Value::Text(url.to_owned()));
        let schemes = &["sqlite", "postgres", "postgresql", "redis+unix"];
        assert_eq!(
            any("postgresql+asyncpg://db/x", schemes),
            text("postgresql://db/x")
        );
        assert_eq!(any("POSTGRES://db/x", schemes), text("postgres://db/x"));
        assert_eq!(
            any("redis+unix:///run/r.sock", schemes),
            text("redis+unix:///run/r.sock")
        );
        assert_eq!(any("sqlite::memory:", schemes), text("sqlite::memory:"));
        for wrong in ["mysql://db/x", "postgres://", "postgres", "postgres://a b"] {
            assert!(any(wrong, schemes).is_err(), "{wrong}");
        }
    }

    #[test]
    fn http_urls_have_a_host_and_no_path() {
        for (url, host) in [
            ("http://localhost:8100", Some("localhost")),
            ("https://box.example.com", Some("box.example.com")),
            ("http://[::1]:8100", Some("::1")),
            ("http://10.0.0.1", Some("10.0.0.1")),
            ("http://a:b@host", None),
            ("http://host/path", None),
            ("http://host:99999", None),
            ("http://host:", None),
            ("http://[::1", None),
            ("http://", None),
            ("ftp://host", None),
        ] {
            assert_eq!(http_host(url), host, "{url}");
        }
        assert_eq!(
            http("https://host/"),
            Ok(Value::Text("https://host".to_owned()))
        );
    }

    #[test]
    fn domains_are_dns_names() {
        assert_eq!(
            domain("Sandboxes.Example.COM."),
            Ok(Value::Text("sandboxes.example.com".to_owned()))
        );
        for wrong in [
            "",
            "a..b",
            "-a.b",
            "a_b.c",
            "a b",
            "*.example.com",
            "http://x",
        ] {
            assert!(domain(wrong).is_err(), "{wrong}");
        }
    }
}
