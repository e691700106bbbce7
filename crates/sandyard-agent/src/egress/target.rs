//! Hosts that programs want to reach.

use std::net::IpAddr;

use sandyard_core::network::pattern::canonical_name;

use super::name_addresses::{NameAddresses, is_name_address};

/// A host that a program names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Host {
    Name(String),
    Address(IpAddr),
}

impl Host {
    /// Parses a name or an address without brackets.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text.parse() {
            Ok(address) => Some(Self::Address(address)),
            Err(_) => canonical_name(text).map(Self::Name),
        }
    }

    /// The host for the gateway; `None` for an address of the name range that stands for no name.
    pub(super) fn for_gateway(self, names: &mut NameAddresses) -> Option<String> {
        match self {
            Self::Name(name) => Some(name),
            Self::Address(address) => match address.to_canonical() {
                IpAddr::V4(address) if is_name_address(address) => {
                    names.name_of(address).map(|name| name.to_string())
                }
                address => Some(address.to_string()),
            },
        }
    }
}

/// Parses `host:port`, with an IPv6 address in brackets; without a port the default one is used, if there is one.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn authority(text: &str) -> Option<(String, u16)> {
        let (host, port) = parse_authority(text, Some(80))?;
        Some((host.for_gateway(&mut NameAddresses::default())?, port))
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
    fn invalid_hosts_are_refused() {
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
    fn an_address_that_stands_for_a_name_becomes_the_name() {
        let mut names = NameAddresses::default();
        let address = names.address_of("example.com");
        for text in [address.to_string(), format!("::ffff:{address}")] {
            let host = Host::parse(&text).unwrap();
            assert_eq!(host.for_gateway(&mut names).as_deref(), Some("example.com"));
        }
        let unknown = Host::parse("198.18.77.77").unwrap();
        assert_eq!(unknown.for_gateway(&mut names), None);
    }
}
