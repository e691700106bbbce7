//! The names of this host: its host name and its addresses.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Longest DNS name, in characters.
const MAX_NAME: usize = 253;

/// The host name, and the source addresses of packets to other hosts. Finding them sends nothing.
pub(super) fn host_names() -> Vec<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim().to_ascii_lowercase();
    let mut names: Vec<String> = Some(name)
        .filter(|name| is_name(name))
        .into_iter()
        .collect();
    // Addresses of networks for documentation: packets to them take the default route.
    let (v4, v6) = (
        Ipv4Addr::new(192, 0, 2, 1),
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
    );
    let found = [IpAddr::from(v4), IpAddr::from(v6)]
        .into_iter()
        .filter_map(source_for);
    names.extend(found.map(|address| address.to_string()));
    names
}

/// The source address of packets to another one.
fn source_for(other: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = match other {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
    socket.connect(SocketAddr::new(other, 9)).ok()?;
    let own = socket.local_addr().ok()?.ip();
    (!own.is_unspecified() && !own.is_loopback()).then_some(own)
}

/// Says whether a certificate can have this name.
fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(is_plain)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= MAX_NAME && name.split('.').all(is_label) && name.parse::<IpAddr>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_certificate_can_have_are_left_out() {
        for name in ["yard", "yard.example.com", "a-1"] {
            assert!(is_name(name), "{name}");
        }
        for name in [
            "",
            "a_b",
            "-a",
            "a.",
            "(none)",
            "192.0.2.1",
            &"x".repeat(64),
        ] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn addresses_of_this_host_are_its_own() {
        for name in host_names() {
            assert!(is_name(&name) || name.parse::<IpAddr>().is_ok_and(|it| !it.is_loopback()));
        }
    }
}
