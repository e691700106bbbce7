//! A hosts file.

use std::collections::HashMap;
use std::net::IpAddr;

use sandyard_core::network::pattern::canonical_name;

/// Names that are written down, each with its addresses.
pub(super) type Written = HashMap<String, Vec<IpAddr>>;

/// Reads lines of `address name…`; what is no such line stands for nothing. IPv4 comes first.
pub(super) fn read(text: &str) -> Written {
    let mut written = Written::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_ascii_whitespace();
        let Some(address) = words.next().and_then(|word| word.parse::<IpAddr>().ok()) else {
            continue;
        };
        for name in words.filter_map(canonical_name) {
            let addresses = written.entry(name).or_default();
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
    }
    for addresses in written.values_mut() {
        addresses.sort_by_key(IpAddr::is_ipv6);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_line_has_its_address() {
        let written = read(
            "# ours\n2001:db8::1 Registry.corp.example\n192.0.2.1\tregistry.corp.example registry # inner\n\
             192.0.2.1 registry\nnonsense name\n192.0.2.9\n  192.0.2.3 b_d spaced..out\n",
        );
        let of = |name: &str| {
            let addresses = written.get(name).cloned().unwrap_or_default();
            addresses
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(of("registry.corp.example"), ["192.0.2.1", "2001:db8::1"]);
        assert_eq!(of("registry"), ["192.0.2.1"]);
        assert_eq!(of("b_d"), ["192.0.2.3"]);
        assert_eq!(written.len(), 3);
    }
}
