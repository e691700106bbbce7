//! What one entry of a policy names.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::pattern::{HostPattern, ascii_hint};

/// How many bits of an IPv4-mapped IPv6 address come before the IPv4 one.
const MAPPED_BITS: u8 = 96;

/// One entry: a host and, if given, the only port it speaks of.
///
/// Written `example.com`, `*.example.com:443`, `203.0.113.7`, `10.0.0.0/8:5432`, `2001:db8::/32`, `[2001:db8::1]:80`, `*:25`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Target {
    /// Which hosts.
    pub host: TargetHost,
    /// Which port; every one when none is given.
    pub port: Option<u16>,
}

/// The hosts of a [`Target`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TargetHost {
    /// By name; `*` is every name and every address.
    Name(HostPattern),
    /// By address: the network and how many of its bits count.
    Network(IpAddr, u8),
}

/// Says why a text is no target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is neither a host name, an address nor a network such as `10.0.0.0/8`, with or without `:port`{hint}",
    hint = ascii_hint(.0)
)]
pub struct TargetError(pub String);

impl Target {
    /// Everything there is.
    pub fn everything() -> Self {
        Self {
            host: TargetHost::Network(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
            port: None,
        }
    }

    /// Says whether it stands for this name on this port; any port when none is known yet.
    pub fn matches_name(&self, name: &str, port: Option<u16>) -> bool {
        let is_host = match &self.host {
            TargetHost::Name(pattern) => pattern.matches(name),
            TargetHost::Network(_, bits) => *bits == 0,
        };
        is_host && port.is_none_or(|port| self.is_of_port(port))
    }

    /// Says whether it stands for this address on this port. `0.0.0.0/0` and `::/0` stand for both families: E2B's clients
    /// write the former and mean everything.
    pub fn matches_address(&self, address: IpAddr, port: u16) -> bool {
        let is_host = match &self.host {
            TargetHost::Name(pattern) => pattern.is_every_name(),
            TargetHost::Network(network, bits) => is_within(address, *network, *bits),
        };
        is_host && self.is_of_port(port)
    }

    /// Says whether it stands for everything: `0.0.0.0/0`, `::/0` or `*`, on every port.
    pub fn is_everything(&self) -> bool {
        let is_every_host = match &self.host {
            TargetHost::Name(pattern) => pattern.is_every_name(),
            TargetHost::Network(_, bits) => *bits == 0,
        };
        is_every_host && self.port.is_none()
    }

    fn is_of_port(&self, port: u16) -> bool {
        self.port.is_none_or(|own| own == port)
    }
}

impl From<IpAddr> for TargetHost {
    /// That address alone.
    fn from(address: IpAddr) -> Self {
        let address = address.to_canonical();
        Self::Network(address, width(address))
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| TargetError(text.to_owned()))
    }
}

impl TryFrom<String> for Target {
    type Error = TargetError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Target> for String {
    fn from(target: Target) -> Self {
        target.to_string()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.host, self.port) {
            (host @ TargetHost::Network(IpAddr::V6(_), _), Some(port)) => {
                write!(f, "[{host}]:{port}")
            }
            (host, Some(port)) => write!(f, "{host}:{port}"),
            (host, None) => write!(f, "{host}"),
        }
    }
}

impl fmt::Display for TargetHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(pattern) => write!(f, "{pattern}"),
            Self::Network(address, bits) if *bits == width(*address) => write!(f, "{address}"),
            Self::Network(address, bits) => write!(f, "{address}/{bits}"),
        }
    }
}

/// Reads a port: digits alone, and not 0.
pub(super) fn parse_port(text: &str) -> Option<u16> {
    parse_digits(text).filter(|port| *port != 0)
}

fn parse(text: &str) -> Option<Target> {
    let (host, port) = if let Some(inner) = text.strip_prefix('[') {
        let (host, after) = inner.split_once(']')?;
        if !host.contains(':') {
            return None;
        }
        let port = match after {
            "" => None,
            _ => Some(after.strip_prefix(':')?),
        };
        (host, port)
    } else {
        match text.split_once(':') {
            // IPv6 without brackets, so no port.
            Some((_, after)) if after.contains(':') => (text, None),
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    let port = match port {
        Some(port) => Some(parse_port(port)?),
        None => None,
    };
    let host = match parse_network(host) {
        Some(network) => network,
        None => TargetHost::Name(host.parse().ok()?),
    };
    Some(Target { host, port })
}

fn parse_network(text: &str) -> Option<TargetHost> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(parse_digits(bits)?)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let bits = bits.unwrap_or(width(address));
    if bits > width(address) {
        return None;
    }
    match (
        address,
        address.to_canonical(),
        bits.checked_sub(MAPPED_BITS),
    ) {
        // All of IPv4 and nothing else: no entry means that, `0.0.0.0/0` means everything.
        (IpAddr::V6(_), IpAddr::V4(_), Some(0)) => None,
        (IpAddr::V6(_), IpAddr::V4(inner), Some(bits)) => {
            Some(TargetHost::Network(masked(IpAddr::V4(inner), bits), bits))
        }
        _ => Some(TargetHost::Network(masked(address, bits), bits)),
    }
}

fn parse_digits<T: FromStr>(text: &str) -> Option<T> {
    // The standard library takes `+80` as well.
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    is_digits.then(|| text.parse().ok()).flatten()
}

fn is_within(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let address = address.to_canonical();
    // Masks of both families and widths are equal only for addresses of one family.
    bits == 0 || masked(address, bits) == masked(network, bits)
}

/// The address with all bits beyond the first few cleared.
fn masked(address: IpAddr, bits: u8) -> IpAddr {
    let beyond = u32::from(width(address).saturating_sub(bits));
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(beyond).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(beyond).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    }
}

fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Target {
        text.parse().expect(text)
    }

    fn is_address(entry: &str, address: &str, port: u16) -> bool {
        target(entry).matches_address(address.parse().expect(address), port)
    }

    #[test]
    fn every_form_is_written_as_it_is_read() {
        for text in [
            "example.com",
            "*.example.com",
            "*.example.com:443",
            "203.0.113.7",
            "203.0.113.7:80",
            "10.0.0.0/8",
            "10.0.0.0/8:5432",
            "2001:db8::1",
            "2001:db8::/32",
            "[2001:db8::1]:80",
            "[2001:db8::/32]:443",
            "*",
            "*:25",
            "0.0.0.0/0",
            "::/0",
            "[::/0]:25",
            "0.0.0.0/0:25",
            "::1",
            "localhost:1",
            "example.com:65535",
        ] {
            assert_eq!(target(text).to_string(), text);
        }
    }

    #[test]
    fn other_spellings_come_out_as_the_usual_one() {
        for (text, usual) in [
            ("10.1.2.3/8", "10.0.0.0/8"),
            ("203.0.113.7/32", "203.0.113.7"),
            ("2001:db8::1/32", "2001:db8::/32"),
            ("2001:DB8:0:0::1/128", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("[2001:db8::/32]", "2001:db8::/32"),
            ("::ffff:10.0.0.1", "10.0.0.1"),
            ("::ffff:10.0.0.1/104", "10.0.0.0/8"),
            ("[::ffff:10.0.0.1]:80", "10.0.0.1:80"),
            ("8.8.8.8/0", "0.0.0.0/0"),
            ("Example.COM.:443", "example.com:443"),
            ("example.com:0443", "example.com:443"),
        ] {
            assert_eq!(target(text).to_string(), usual, "{text}");
        }
    }

    #[test]
    fn what_is_no_target_is_refused() {
        for text in [
            "",
            ":",
            ":80",
            "example.com:",
            "example.com:0",
            "example.com:65536",
            "example.com:+80",
            "example.com:http",
            "a:1:2",
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "10.0.0.0/-1",
            "10.0.0/8",
            "10.0.0.0/8/8",
            "10.0.0.256",
            "127.1",
            "::/129",
            "2001:db8::/32:443",
            "[2001:db8::1",
            "2001:db8::1]",
            "[2001:db8::1]80",
            "[2001:db8::1]:",
            "[10.0.0.1]:80",
            "[example.com]",
            "[]",
            "[]:80",
            "fe80::1%eth0",
            "::ffff:0:0/96",
            "example.com/8",
            "http://example.com",
            " example.com",
            "a.*.com",
            "*.",
            "ex ample.com",
            "bücher.example",
        ] {
            assert_eq!(text.parse::<Target>(), Err(TargetError(text.to_owned())));
        }
        let error = "bücher.example".parse::<Target>().expect_err("not ASCII");
        assert!(error.to_string().contains("punycode"));
    }

    #[test]
    fn a_name_matches_by_name_and_port_and_never_by_address() {
        let entry = target("*.example.com:443");
        assert!(entry.matches_name("a.example.com", Some(443)));
        assert!(entry.matches_name("a.example.com", None));
        assert!(!entry.matches_name("a.example.com", Some(80)));
        assert!(!entry.matches_name("example.com", Some(443)));
        assert!(!is_address("*.example.com:443", "203.0.113.7", 443));
        assert!(target("example.com").matches_name("example.com", Some(9)));
    }

    #[test]
    fn a_network_matches_by_address_and_port_and_never_by_name() {
        assert!(is_address("10.0.0.0/8:5432", "10.255.0.1", 5432));
        assert!(!is_address("10.0.0.0/8:5432", "10.255.0.1", 5433));
        assert!(!is_address("10.0.0.0/8", "11.0.0.0", 80));
        assert!(is_address("172.16.0.0/12", "172.31.255.255", 80));
        assert!(!is_address("172.16.0.0/12", "172.32.0.0", 80));
        assert!(is_address("203.0.113.7", "203.0.113.7", 80));
        assert!(!is_address("203.0.113.7", "203.0.113.8", 80));
        assert!(is_address("2001:db8::/32", "2001:db8:ffff::1", 80));
        assert!(!is_address("2001:db8::/32", "2001:db9::1", 80));
        assert!(!target("10.0.0.0/8").matches_name("example.com", None));
        assert!(!target("10.0.0.0/8").matches_name("10.0.0.1", Some(80)));
    }

    #[test]
    fn mapped_addresses_are_ipv4_addresses() {
        assert!(is_address("10.0.0.0/8", "::ffff:10.0.0.1", 80));
        assert!(is_address("::ffff:10.0.0.1", "10.0.0.1", 80));
        assert!(!is_address("::/8", "::ffff:10.0.0.1", 80));
        assert!(!is_address("::/8", "0.0.0.1", 80));
        assert!(!is_address("0.0.0.0/1", "::1", 80));
        let host = TargetHost::from("::ffff:10.0.0.1".parse::<IpAddr>().expect("mapped"));
        assert_eq!(host.to_string(), "10.0.0.1");
    }

    #[test]
    fn everything_is_everything() {
        for text in ["*", "0.0.0.0/0", "::/0"] {
            let entry = target(text);
            assert!(entry.is_everything());
            assert!(
                entry.matches_name("example.com", None)
                    && entry.matches_name("example.com", Some(1))
            );
            assert!(
                is_address(text, "203.0.113.7", 80) && is_address(text, "2001:db8::1", 80),
                "{text}"
            );
        }
        for text in ["*:25", "0.0.0.0/0:25", "[::/0]:25"] {
            let entry = target(text);
            assert!(!entry.is_everything());
            assert!(
                entry.matches_name("example.com", Some(25))
                    && !entry.matches_name("example.com", Some(26))
            );
            assert!(
                is_address(text, "2001:db8::1", 25) && !is_address(text, "2001:db8::1", 26),
                "{text}"
            );
        }
        assert!(Target::everything().is_everything());
        assert!(!target("0.0.0.0/1").is_everything() && !target("*.com").is_everything());
    }
}
