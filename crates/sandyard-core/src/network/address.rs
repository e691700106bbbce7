//! Addresses that are nobody's business outside of their own network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where clouds answer questions about the machine, and hand out its credentials: the common address, AWS over IPv6, Azure,
/// Oracle, Alibaba. Some of them look public.
const METADATA: [IpAddr; 5] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
];

/// Says which closed class an address is of; `None` for those that anybody on the internet may have.
///
/// One word for people: `loopback`, `private`, `link-local`, `shared` (carrier-grade NAT), `metadata`, `multicast`,
/// `unspecified`, `reserved`.
///
/// Blocks for documentation are no class: nothing is there, so nothing is gained by closing them. The block for benchmarks is
/// `reserved`: addresses that stand for names inside a sandbox are of it, and mean nothing outside. IPv6 addresses that hold an
/// IPv4 one ([`embedded_v4`]) are of the class of that one.
pub fn closed_class(address: IpAddr) -> Option<&'static str> {
    let address = address.to_canonical();
    if METADATA.contains(&address) {
        return Some("metadata");
    }
    match address {
        IpAddr::V4(address) => closed_class_v4(address),
        IpAddr::V6(address) => closed_class_v6(address),
    }
}

/// The IPv4 address that an IPv6 one holds, and where its packets end up if somebody on the way translates.
///
/// Mapped, compatible, NAT64 (`64:ff9b::/96`), 6to4 (`2002::/16`), Teredo (`2001::/32`, its client).
pub fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let joined = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match [a, b, c, d, e, f] {
        _ if address.is_unspecified() || address.is_loopback() => None,
        [0, 0, 0, 0, 0, 0 | 0xffff] | [0x64, 0xff9b, 0, 0, 0, 0] => Some(joined(g, h)),
        [0x2002, high, low, ..] => Some(joined(high, low)),
        // The client's is written with every bit turned.
        [0x2001, 0, ..] => Some(joined(!g, !h)),
        _ => None,
    }
}

fn closed_class_v4(address: Ipv4Addr) -> Option<&'static str> {
    match address.octets() {
        [0, ..] => Some("unspecified"),
        [127, ..] => Some("loopback"),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Some("private"),
        [169, 254, ..] => Some("link-local"),
        [100, 64..=127, ..] => Some("shared"),
        [224..=239, ..] => Some("multicast"),
        [240..=255, ..] | [192, 0, 0, _] | [198, 18..=19, ..] => Some("reserved"),
        _ => None,
    }
}

fn closed_class_v6(address: Ipv6Addr) -> Option<&'static str> {
    if let Some(held) = embedded_v4(address) {
        return closed_class(IpAddr::V4(held));
    }
    match address.segments()[0] {
        _ if address.is_loopback() => Some("loopback"),
        _ if address.is_unspecified() => Some("unspecified"),
        0xfc00..=0xfdff => Some("private"),
        0xfe80..=0xfebf => Some("link-local"),
        0xff00..=0xffff => Some("multicast"),
        // All that was ever given out.
        0x2000..=0x3fff => None,
        _ => Some("reserved"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(text: &str) -> Option<&'static str> {
        closed_class(text.parse().expect(text))
    }

    #[test]
    fn every_class_from_its_first_to_its_last_address() {
        for (expected, addresses) in [
            (
                "loopback",
                &["127.0.0.0", "127.0.0.1", "127.255.255.255", "::1"][..],
            ),
            (
                "private",
                &[
                    "10.0.0.0",
                    "10.255.255.255",
                    "172.16.0.0",
                    "172.31.255.255",
                    "192.168.0.0",
                    "192.168.255.255",
                ],
            ),
            (
                "private",
                &[
                    "fc00::",
                    "fd00::1",
                    "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                ],
            ),
            (
                "link-local",
                &[
                    "169.254.0.0",
                    "169.254.170.2",
                    "169.254.255.255",
                    "fe80::1",
                    "febf:ffff::1",
                ],
            ),
            ("shared", &["100.64.0.0", "100.127.255.255"]),
            ("unspecified", &["0.0.0.0", "0.255.255.255", "::"]),
            (
                "multicast",
                &[
                    "224.0.0.0",
                    "239.255.255.255",
                    "ff00::",
                    "ff02::1",
                    "ffff::",
                ],
            ),
            (
                "reserved",
                &[
                    "240.0.0.0",
                    "255.255.255.255",
                    "192.0.0.0",
                    "192.0.0.255",
                    "198.18.0.0",
                    "198.19.255.255",
                ],
            ),
            (
                "reserved",
                &[
                    "fec0::1",
                    "feff::1",
                    "4000::1",
                    "1fff::1",
                    "64:ff9b:1::1",
                    "100::1",
                    "5f00::1",
                    "fe00::1",
                    "::ffff:0:a00:1",
                ],
            ),
            (
                "metadata",
                &[
                    "169.254.169.254",
                    "fd00:ec2::254",
                    "168.63.129.16",
                    "192.0.0.192",
                    "100.100.100.200",
                ],
            ),
        ] {
            for address in addresses {
                assert_eq!(class(address), Some(expected), "{address}");
            }
        }
    }

    #[test]
    fn what_lies_beside_a_class_is_open() {
        for address in [
            "1.0.0.0",
            "9.255.255.255",
            "11.0.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "192.169.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "223.255.255.255",
            "191.255.255.255",
            "192.0.1.0",
            "198.17.255.255",
            "198.20.0.0",
            "168.63.129.15",
            "168.63.129.17",
            "8.8.8.8",
            "2000::1",
            "2606:4700::1111",
            "3fff:ffff::1",
        ] {
            assert_eq!(class(address), None, "{address}");
        }
    }

    #[test]
    fn documentation_is_open() {
        for address in [
            "192.0.2.1",
            "198.51.100.1",
            "203.0.113.1",
            "2001:db8::1",
            "3fff::1",
        ] {
            assert_eq!(class(address), None, "{address}");
        }
    }

    #[test]
    fn an_address_that_holds_another_is_of_its_class() {
        for (address, expected) in [
            ("::ffff:127.0.0.1", Some("loopback")),
            ("::ffff:8.8.8.8", None),
            ("::ffff:169.254.169.254", Some("metadata")),
            ("::10.0.0.1", Some("private")),
            ("::8.8.8.8", None),
            ("::2", Some("unspecified")),
            ("64:ff9b::192.168.0.1", Some("private")),
            ("64:ff9b::168.63.129.16", Some("metadata")),
            ("64:ff9b::8.8.8.8", None),
            ("2002:0a00:0001::1", Some("private")),
            ("2002:0808:0808::1", None),
            // 10.0.0.1 turned is f5ff:fffe; 8.8.8.8 is f7f7:f7f7.
            ("2001:0:4136:e378:8000:63bf:f5ff:fffe", Some("private")),
            ("2001:0:4136:e378:8000:63bf:f7f7:f7f7", None),
        ] {
            assert_eq!(class(address), expected, "{address}");
        }
    }

    #[test]
    fn ordinary_addresses_hold_no_other() {
        for address in [
            "::",
            "::1",
            "2606:4700::1111",
            "2001:db8::1",
            "64:ff9b:1::1",
        ] {
            assert_eq!(
                embedded_v4(address.parse().expect(address)),
                None,
                "{address}"
            );
        }
    }
}
