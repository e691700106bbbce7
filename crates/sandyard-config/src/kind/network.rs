//! An IP network like `10.0.0.0/8`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

/// Addresses with the same beginning. Made from text; a lone address is a network of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

/// Says that a text is not a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an IP network like 10.0.0.0/8")]
pub struct NetworkError;

impl Network {
    /// Tells whether `address` is in it. An IPv4 address is the same when written as an IPv6 one.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let network = text.parse().or_else(|_| text.parse().map(IpAddr::into));
        network.map(Self).map_err(|_| NetworkError)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(network: &str, address: &str) -> bool {
        let network: Network = network.parse().unwrap();
        network.contains(address.parse().unwrap())
    }

    #[test]
    fn a_network_holds_what_begins_like_it() {
        assert!(holds("10.0.0.0/8", "10.255.1.2"));
        assert!(!holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("0.0.0.0/0", "192.0.2.1"));
        assert!(holds("192.0.2.7", "192.0.2.7"));
        assert!(!holds("192.0.2.7", "192.0.2.6"));
        assert!(holds("fd00::/8", "fd12::1"));
        assert!(holds("::/0", "fd12::1"));
        assert!(!holds("::/0", "192.0.2.1"));
    }

    #[test]
    fn a_mapped_address_is_the_ipv4_one() {
        assert!(holds("10.0.0.0/8", "::ffff:10.1.2.3"));
    }

    #[test]
    fn malformed_networks_are_refused() {
        for text in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "10.0.0.0/-1",
            "10.0.0.0/8/8",
        ] {
            assert_eq!(text.parse::<Network>(), Err(NetworkError), "{text}");
        }
    }
}
