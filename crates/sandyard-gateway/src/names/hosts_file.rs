//! A hosts file.

use std::collections::HashMap;
use std::net::IpAddr;

use sandyard_core::network::pattern::canonical_name;

/// Names with their addresses.
pub(super) type HostsFile = HashMap<String, Vec<IpAddr>>;

/// Reads lines of `address name…` and ignores others. IPv4 addresses come first.
pub(super) fn read(text: &str) -> HostsFile {
    let mut hosts = HostsFile::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let mut fields = line.split_ascii_whitespace();
        let Some(address) = fields.next().and_then(|field| field.parse::<IpAddr>().ok()) else {
            continue;
        };
        for name in fields.filter_map(canonical_name) {
            let addresses = hosts.entry(name).or_default();
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
    }
    for addresses in hosts.values_mut() {
        addresses.sort_by_key(IpAddr::is_ipv6);
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_line_has_its_address() {
        let hosts = read(
            "# ours\n2001:db8::1 Registry.corp.example\n192.0.2.1\tregistry.corp.example registry # inner\n\
             192.0.2.1 registry\nnonsense name\n192.0.2.9\n  192.0.2.3 b_d spaced..out\n",
        );
        let of = |name: &str| {
            let addresses = hosts.get(name).cloned().unwrap_or_default();
            addresses
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(of("registry.corp.example"), ["192.0.2.1", "2001:db8::1"]);
        assert_eq!(of("registry"), ["192.0.2.1"]);
        assert_eq!(of("b_d"), ["192.0.2.3"]);
        assert_eq!(hosts.len(), 3);
    }
}
