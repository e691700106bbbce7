//! Which addresses anybody on the internet can reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};
use sandyard_core::network::address::closed_class;

/// Blocks of IPv4 that nobody's service is in, beside those that are closed to sandboxes too
/// ([`closed_class`]): the rest of the IANA special-purpose registry (RFC 6890 and its followers).
const CLOSED_V4: [Ipv4Net; 6] = [
    Ipv4Net::new_assert(Ipv4Addr::new(192, 0, 2, 0), 24), // documentation
    Ipv4Net::new_assert(Ipv4Addr::new(192, 31, 196, 0), 24), // AS112
    Ipv4Net::new_assert(Ipv4Addr::new(192, 52, 193, 0), 24), // AMT
    Ipv4Net::new_assert(Ipv4Addr::new(192, 88, 99, 0), 24), // 6to4 relays
    Ipv4Net::new_assert(Ipv4Addr::new(198, 51, 100, 0), 24), // documentation
    Ipv4Net::new_assert(Ipv4Addr::new(203, 0, 113, 0), 24), // documentation
];

/// Blocks within IPv6's global unicast that are not for everybody. Whatever lies outside of 2000::/3 is closed anyway:
/// loopback, link-local, unique local, multicast, IPv4-mapped, IPv4-compatible and NAT64 addresses.
const CLOSED_V6: [Ipv6Net; 5] = [
    Ipv6Net::new_assert(Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // protocol assignments; Teredo, which holds an IPv4 address
    Ipv6Net::new_assert(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation
    Ipv6Net::new_assert(Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16), // 6to4, which holds an IPv4 address
    Ipv6Net::new_assert(Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0), 48), // AS112
    Ipv6Net::new_assert(Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation
];

/// Says whether anybody on the internet can reach an address.
pub(super) fn is_open(address: IpAddr) -> bool {
    if closed_class(address).is_some() {
        return false;
    }
    match address {
        IpAddr::V4(address) => !CLOSED_V4.iter().any(|block| block.contains(&address)),
        IpAddr::V6(address) => {
            address.segments()[0] & 0xe000 == 0x2000
                && !CLOSED_V6.iter().any(|block| block.contains(&address))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_not_public_are_closed() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.100.100.200",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "169.254.170.2",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "192.168.255.255",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::808:808",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:0:7f00:1::",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "4000::1",
        ] {
            assert!(!is_open(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn addresses_next_to_closed_blocks_are_open() {
        for address in [
            "1.0.0.0",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.15",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2606:4700::1111",
            "2a00:1450::1",
        ] {
            assert!(is_open(address.parse().unwrap()), "{address}");
        }
    }
}
