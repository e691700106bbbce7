//! Which URLs are taken.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;
use sandyard_service::{ServiceError, ServiceResult};

use super::allow_list::is_usual;
use super::reach::Reach;

/// Longest URL that is taken; presigned ones have some 2,000 characters.
const MAX_LEN: usize = 16 << 10;

/// Reads a URL and refuses what no caller may name. Names are checked again when they are resolved.
pub(super) fn read(field: &'static str, text: &str, reach: &Reach) -> ServiceResult<Url> {
    if text.len() > MAX_LEN {
        return Err(ServiceError::invalid(
            field,
            format!("the URL is longer than {MAX_LEN} characters"),
        ));
    }
    // The parser turns every way to write an IPv4 address (octal, hexadecimal, one number) into the usual one.
    let url = Url::parse(text)
        .map_err(|error| ServiceError::invalid(field, format!("not a URL: {error}")))?;
    check(field, &url, reach)?;
    Ok(url)
}

/// Refuses what no caller, and no redirect, may name.
pub(super) fn check(field: &'static str, url: &Url, reach: &Reach) -> ServiceResult<()> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(ServiceError::invalid(
            field,
            "only http:// and https:// URLs are taken",
        ));
    }
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Err(ServiceError::invalid(field, "the URL names no host"));
    };
    let allowed = &reach.allowed;
    if allowed.has(host, port) {
        return Ok(());
    }
    if !is_usual(port) {
        return Err(ServiceError::invalid(
            field,
            format!("port {port} is not taken: use 80, 443, or 1024 and above"),
        ));
    }
    match literal(host) {
        Some(address) if !reach.has_addresses(None, [address], port) => Err(closed(field, host)),
        None if !reach.has_name(host, port) => Err(closed(field, host)),
        // Addresses of a name on the list are not checked, so its other ports must not get that far.
        None if allowed.has_host(host) => Err(ServiceError::invalid(
            field,
            format!("port {port} of `{host}` is not taken"),
        )
        .hint("the operator can allow `host:port` with the setting `server.url_hosts`")),
        _ => Ok(()),
    }
}

/// The refusal of a host that not everybody can reach.
pub(super) fn closed(field: &'static str, host: &str) -> ServiceError {
    ServiceError::invalid(
        field,
        format!("`{host}` is not a public address of another host, or is denied by the operator"),
    )
    .hint("the operator can allow a host with the setting `server.url_hosts`")
}

/// The address a host is, if it is one.
fn literal(host: &str) -> Option<IpAddr> {
    match host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
    {
        Some(inner) => inner.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => host
            .trim_end_matches('.')
            .parse::<Ipv4Addr>()
            .ok()
            .map(IpAddr::V4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(hosts: &[&str]) -> Reach {
        let hosts: Vec<_> = hosts.iter().map(|host| (*host).to_owned()).collect();
        Reach::new(&hosts, &[], Vec::new)
    }

    fn is_taken(url: &str) -> bool {
        read("url", url, &reach(&[])).is_ok()
    }

    #[test]
    fn every_notation_of_a_closed_address_is_refused() {
        for url in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.0.0.1/",
            "http://0177.0.0.1/",
            "http://127.0.0.1./",
            "http://0/",
            "http://①②⑦.⓪.⓪.①/",
            "http://%31%32%37.0.0.1/",
            "http://user@127.0.0.1/",
            "http://8.8.8.8@127.0.0.1/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[0:0:0:0:0:ffff:7f00:1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[2002:7f00:1::]/",
            "http://[fe80::1]/",
            "http://169.254.169.254/latest/meta-data/",
            "http://10.1.2.3:8080/",
            "https://192.168.1.1/",
            "http:\\\\127.0.0.1\\",
            "http:127.0.0.1",
        ] {
            assert!(!is_taken(url), "{url}");
        }
    }

    #[test]
    fn other_schemes_and_low_ports_are_refused() {
        for url in [
            "file:///etc/passwd",
            "ftp://example.com/x",
            "gopher://example.com/",
            "data:,x",
            "http://example.com:22/",
            "http://example.com:25/",
            "https://example.com:0/",
            "http://",
            "x",
        ] {
            assert!(!is_taken(url), "{url}");
        }
        assert!(is_taken("https://example.com/a?b=c") && is_taken("http://example.com:9000/"));
        assert!(is_taken("http://8.8.8.8/") && is_taken("http://[2606:4700::1111]/"));
    }

    #[test]
    fn the_operators_list_opens_a_host_or_one_port_of_it() {
        let reach = reach(&["127.0.0.1:81", "Store.internal", "db.internal:8123"]);
        assert!(read("url", "http://127.0.0.1:81/x", &reach).is_ok());
        assert!(read("url", "http://127.0.0.1:8081/x", &reach).is_err());
        assert!(read("url", "http://store.INTERNAL:9000/x", &reach).is_ok());
        assert!(read("url", "http://store.INTERNAL:22/x", &reach).is_err());
        assert!(read("url", "http://db.internal:8123/x", &reach).is_ok());
        for other in ["http://db.internal/x", "https://DB.internal:5432/x"] {
            assert!(read("url", other, &reach).is_err(), "{other}");
        }
        let allowed = &reach.allowed;
        assert!(allowed.has_host("store.internal") && !allowed.has_host("internal"));
    }
}
