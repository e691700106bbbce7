//! What a program wants to reach, as it says it and as the gateway is told.

use std::net::IpAddr;

use super::names::{Names, is_of_names};

/// A host as a program names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Host {
    Name(String),
    Address(IpAddr),
}

impl Host {
    /// Reads a name or an address without brackets.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text.parse() {
            Ok(address) => Some(Self::Address(address)),
            Err(_) => canonical_name(text).map(Self::Name),
        }
    }

    /// What the gateway is told; none for an address that should stand for a name and does not.
    pub(super) fn spoken(self, names: &mut Names) -> Option<String> {
        match self {
            Self::Name(name) => Some(name),
            Self::Address(address) => match address.to_canonical() {
                IpAddr::V4(address) if is_of_names(address) => {
                    names.name_of(address).map(|name| name.to_string())
                }
                address => Some(address.to_string()),
            },
        }
    }
}

/// Reads `host:port`, an IPv6 address in brackets; without a port it is the default one, if there is such.
pub(super) fn parse_authority(text: &str, default_port: Option<u16>) -> Option<(Host, u16)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, rest) = rest.split_once(']')?;
            let address = IpAddr::V6(address.parse().ok()?);
            let port = match rest {
                "" => None,
                _ => Some(rest.strip_prefix(':')?),
            };
            (Host::Address(address), port)
        }
        None => match text.split_once(':') {
            Some((host, port)) => (Host::parse(host)?, Some(port)),
            None => (Host::parse(text)?, None),
        },
    };
    let port = match port {
        None | Some("") => default_port?,
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => port.parse().ok()?,
        Some(_) => return None,
    };
    (port != 0).then_some((host, port))
}

/// A host's name in the form that is compared: lower case, no dot at its end; none when it is no name of a host.
pub(super) fn canonical_name(name: &str) -> Option<String> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| {
        matches!(label.len(), 1..=63)
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    (name.len() <= 253 && name.split('.').all(is_label)).then(|| name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authority(text: &str) -> Option<(String, u16)> {
        let (host, port) = parse_authority(text, Some(80))?;
        Some((host.spoken(&mut Names::default())?, port))
    }

    #[test]
    fn names_and_addresses_are_read_with_and_without_a_port() {
        for (text, host, port) in [
            ("Example.COM:443", "example.com", 443),
            ("example.com.", "example.com", 80),
            ("example.com:", "example.com", 80),
            ("a_b-c", "a_b-c", 80),
            ("203.0.113.7:1", "203.0.113.7", 1),
            ("[2001:DB8::1]:8443", "2001:db8::1", 8443),
            ("[::1]", "::1", 80),
            ("[::ffff:203.0.113.7]", "203.0.113.7", 80),
        ] {
            assert_eq!(authority(text), Some((host.into(), port)), "{text}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        let long = format!("{}a", "a.".repeat(127));
        for text in [
            "",
            ":80",
            "a..b",
            ".",
            "..",
            "a b",
            "a/b",
            "user@host",
            "häuser.example",
            "a:0",
            "a:65536",
            "a:+80",
            "a:8x",
            "2001:db8::1",
            "[::1",
            "[::1]80",
            "[1.2.3.4]",
            "[fe80::1%lo]",
            "a%2e",
            "a\0b",
            &long,
            &"a".repeat(64),
        ] {
            assert_eq!(authority(text), None, "{text}");
        }
        assert_eq!(parse_authority("host", None), None);
    }

    #[test]
    fn an_address_that_stands_for_a_name_is_told_as_the_name() {
        let mut names = Names::default();
        let address = names.address_of("example.com");
        for text in [address.to_string(), format!("::ffff:{address}")] {
            let host = Host::parse(&text).unwrap();
            assert_eq!(host.spoken(&mut names).as_deref(), Some("example.com"));
        }
        let unknown = Host::parse("198.18.77.77").unwrap();
        assert_eq!(unknown.spoken(&mut names), None);
    }
}
