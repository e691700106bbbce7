//! The destination of a packet, from its first bytes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of an ICMP error that are read: two IP headers, the ICMP header, and the ports.
pub(super) const SEEN_BYTES: usize = 256;

const IPV4_HEADER_BYTES: usize = 20;
const IPV6_HEADER_BYTES: usize = 40;
const ICMP_HEADER_BYTES: usize = 8;

/// Maximum number of IPv6 extension headers.
const MAX_EXTENSIONS: usize = 6;

const HOP_BY_HOP: u8 = 0;
const ICMP: u8 = 1;
const IGMP: u8 = 2;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const ICMP_V6: u8 = 58;
const OPTIONS: u8 = 60;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

/// The head of the blocked packet in an ICMP «unreachable» error. Raw sockets show ICMP with its IP header, and ICMPv6 without.
/// `None` for other messages.
pub(super) fn blocked_packet(error: &[u8]) -> Option<&[u8]> {
    let icmp = match error.first()? >> 4 {
        4 => error.get(usize::from(error[0] & 0x0f) * 4..)?,
        _ => error,
    };
    let is_unreachable = match error.first()? >> 4 {
        4 => error.get(9) == Some(&ICMP) && icmp.first() == Some(&3),
        _ => icmp.first() == Some(&1),
    };
    icmp.get(ICMP_HEADER_BYTES..).filter(|_| is_unreachable)
}

/// The destination of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Destination {
    pub(super) protocol: u8,
    pub(super) address: IpAddr,
    pub(super) port: Option<u16>,
}

impl Destination {
    /// Reads a packet from its IP header on. `None` when no program tried to reach something outside with it: it goes to the
    /// sandbox itself, continues another packet, or is the kernel's own (errors, neighbours, groups).
    pub(super) fn of(packet: &[u8]) -> Option<Self> {
        let (protocol, address, carried) = match packet.first()? >> 4 {
            4 => read_v4(packet)?,
            6 => read_v6(packet)?,
            _ => return None,
        };
        if address.is_loopback() || is_kernels_own(protocol, address, carried) {
            return None;
        }
        let has_ports = matches!(protocol, TCP | UDP | SCTP | UDP_LITE);
        Some(Self {
            protocol,
            address,
            port: has_ports.then(|| number(carried, 2)).flatten(),
        })
    }
}

/// The protocol, the destination, and what comes after the headers.
type Parts<'a> = (u8, IpAddr, &'a [u8]);

fn read_v4(packet: &[u8]) -> Option<Parts<'_>> {
    let header = packet.first_chunk::<IPV4_HEADER_BYTES>()?;
    let length = usize::from(header[0] & 0x0f) * 4;
    if length < IPV4_HEADER_BYTES || is_continuation(number(header, 6)? << 3) {
        return None;
    }
    let address = Ipv4Addr::from(*packet.get(16..)?.first_chunk::<4>()?);
    let carried = packet.get(length..).unwrap_or_default();
    Some((header[9], address.into(), carried))
}

fn read_v6(packet: &[u8]) -> Option<Parts<'_>> {
    let header = packet.first_chunk::<IPV6_HEADER_BYTES>()?;
    let address = Ipv6Addr::from(*packet.get(24..)?.first_chunk::<16>()?);
    let mut protocol = header[6];
    let mut carried = packet.get(IPV6_HEADER_BYTES..)?;
    for _ in 0..MAX_EXTENSIONS {
        let length = match (protocol, carried.get(1)) {
            (FRAGMENT, _) if is_continuation(number(carried, 2)? & !7) => return None,
            (FRAGMENT, _) => 8,
            (HOP_BY_HOP | ROUTING | OPTIONS, Some(&eights)) => (usize::from(eights) + 1) * 8,
            _ => break,
        };
        protocol = *carried.first()?;
        carried = carried.get(length..).unwrap_or_default();
    }
    Some((protocol, address.to_canonical(), carried))
}

/// Whether a packet is a later fragment of one that was counted.
fn is_continuation(offset: u16) -> bool {
    offset != 0
}

/// Whether the kernel sent this packet, not a program.
fn is_kernels_own(protocol: u8, address: IpAddr, carried: &[u8]) -> bool {
    let kind = carried.first().copied();
    match (protocol, address) {
        // Unreachable, quench, redirect, time exceeded, bad parameter.
        (ICMP, IpAddr::V4(_)) => matches!(kind, Some(3 | 4 | 5 | 11 | 12)),
        (IGMP, IpAddr::V4(address)) => address.octets().starts_with(&[224, 0, 0]),
        // Unreachable, too big, time exceeded, bad parameter; and neighbours and groups on the link.
        (ICMP_V6, IpAddr::V6(address)) => {
            matches!(kind, Some(1..=4)) || address.octets().starts_with(&[0xff, 0x02])
        }
        _ => false,
    }
}

/// The two bytes at an offset, as a number.
fn number(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(protocol: u8, address: [u8; 4], carried: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; IPV4_HEADER_BYTES];
        packet[0] = 0x45;
        packet[9] = protocol;
        packet[16..20].copy_from_slice(&address);
        packet.extend_from_slice(carried);
        packet
    }

    fn v6(protocol: u8, address: &str, carried: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; IPV6_HEADER_BYTES];
        packet[0] = 0x60;
        packet[6] = protocol;
        let address: Ipv6Addr = address.parse().unwrap();
        packet[24..40].copy_from_slice(&address.octets());
        packet.extend_from_slice(carried);
        packet
    }

    const PORTS: [u8; 8] = [0x30, 0x39, 0x01, 0xbb, 0, 0, 0, 0];

    #[test]
    fn protocol_address_and_port_are_found() {
        let at = |protocol, address: &str, port| {
            Some(Destination {
                protocol,
                address: address.parse().unwrap(),
                port,
            })
        };
        let address = [192, 0, 2, 1];
        assert_eq!(
            Destination::of(&v4(UDP, address, &PORTS)),
            at(UDP, "192.0.2.1", Some(443))
        );
        assert_eq!(
            Destination::of(&v4(ICMP, address, &[8, 0])),
            at(ICMP, "192.0.2.1", None)
        );
        assert_eq!(
            Destination::of(&v4(47, address, &PORTS)),
            at(47, "192.0.2.1", None)
        );
        assert_eq!(
            Destination::of(&v4(UDP, address, &[1, 2])),
            at(UDP, "192.0.2.1", None)
        );
        let mut options = v4(SCTP, address, &[0; 4]);
        options[0] = 0x46;
        options.extend(PORTS);
        assert_eq!(Destination::of(&options), at(SCTP, "192.0.2.1", Some(443)));
        assert_eq!(
            Destination::of(&v6(UDP_LITE, "2001:db8::1", &PORTS)),
            at(UDP_LITE, "2001:db8::1", Some(443))
        );
        assert_eq!(
            Destination::of(&v6(ICMP_V6, "2001:db8::1", &[128])),
            at(ICMP_V6, "2001:db8::1", None)
        );
        let behind = [
            &[OPTIONS, 0, 0, 0, 0, 0, 0, 0, UDP, 1][..],
            &[0; 14],
            &PORTS,
        ]
        .concat();
        assert_eq!(
            Destination::of(&v6(HOP_BY_HOP, "2001:db8::1", &behind)),
            at(UDP, "2001:db8::1", Some(443))
        );
        let first = [&[UDP, 0, 0, 1, 0, 0, 0, 0][..], &PORTS].concat();
        assert_eq!(
            Destination::of(&v6(FRAGMENT, "2001:db8::1", &first)),
            at(UDP, "2001:db8::1", Some(443))
        );
    }

    #[test]
    fn the_blocked_packet_is_found_in_the_icmp_error() {
        let packet = v4(UDP, [192, 0, 2, 1], &PORTS);
        let unreachable = [&[3, 3, 0, 0, 0, 0, 0, 0][..], &packet].concat();
        let mut error = v4(ICMP, [127, 0, 0, 1], &unreachable);
        assert_eq!(blocked_packet(&error), Some(&packet[..]));
        // With options in the header before it.
        error[0] = 0x46;
        error.splice(20..20, [1; 4]);
        assert_eq!(blocked_packet(&error), Some(&packet[..]));
        let packet = v6(UDP, "2001:db8::1", &PORTS);
        let error = [&[1, 4, 0, 0, 0, 0, 0, 0][..], &packet].concat();
        assert_eq!(blocked_packet(&error), Some(&packet[..]));
        // Echoes, and what is cut off.
        for other in [
            v4(ICMP, [127, 0, 0, 1], &[0; 40]),
            vec![129; 60],
            v4(ICMP, [127, 0, 0, 1], &[3, 3]),
            vec![0x4f; 20],
            Vec::new(),
        ] {
            assert_eq!(blocked_packet(&other), None, "{other:?}");
        }
    }

    #[test]
    fn what_no_program_meant_is_passed_over() {
        let mut later = v4(UDP, [192, 0, 2, 1], &PORTS);
        later[7] = 1;
        for packet in [
            v4(UDP, [127, 3, 2, 1], &PORTS),
            v4(ICMP, [192, 0, 2, 1], &[3, 3]),
            v4(ICMP, [192, 0, 2, 1], &[11]),
            v4(IGMP, [224, 0, 0, 22], &[0x22]),
            later,
            v6(UDP, "::1", &PORTS),
            v6(UDP, "::ffff:127.0.0.1", &PORTS),
            v6(ICMP_V6, "2001:db8::1", &[1]),
            v6(ICMP_V6, "ff02::16", &[143]),
            v6(FRAGMENT, "2001:db8::1", &[UDP, 0, 0, 8, 0, 0, 0, 0]),
        ] {
            assert_eq!(Destination::of(&packet), None, "{packet:?}");
        }
    }

    #[test]
    fn a_first_part_of_a_packet_counts() {
        let mut first = v4(UDP, [192, 0, 2, 1], &PORTS);
        first[6] = 0x20;
        assert!(Destination::of(&first).is_some());
    }

    #[test]
    fn no_cut_or_garbled_packet_does_harm() {
        let whole = [
            v4(UDP, [192, 0, 2, 1], &PORTS),
            v6(
                HOP_BY_HOP,
                "2001:db8::1",
                &[HOP_BY_HOP, 255, 0, 0, 0, 0, 0, 0],
            ),
            v6(FRAGMENT, "2001:db8::1", &[FRAGMENT, 0]),
        ];
        for packet in whole {
            for length in 0..packet.len() {
                Destination::of(&packet[..length]);
                for value in [0, 0x40, 0x4f, 0x60, 0xff] {
                    let mut garbled = packet.clone();
                    garbled[length] = value;
                    Destination::of(&garbled);
                }
            }
        }
    }
}
