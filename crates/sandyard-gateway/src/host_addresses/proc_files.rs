//! Addresses from the files of `/proc/net`.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Reads both families; an unreadable file counts as empty.
pub(super) fn addresses() -> Vec<IpAddr> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let mut addresses = v4_of(&read("/proc/self/net/fib_trie"));
    addresses.extend(v6_of(&read("/proc/self/net/if_inet6")));
    addresses
}

/// IPv4: a line `|-- 192.0.2.1`, followed by `/32 host LOCAL` for one that is this host's.
fn v4_of(trie: &str) -> Vec<IpAddr> {
    let (mut addresses, mut last) = (Vec::new(), None);
    for line in trie.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse::<Ipv4Addr>().ok();
        } else if line == "/32 host LOCAL" {
            addresses.extend(last.map(IpAddr::from));
        }
    }
    addresses
}

/// IPv6: the first word of each line, 32 digits.
fn v6_of(list: &str) -> Vec<IpAddr> {
    list.lines()
        .filter_map(|line| {
            let digits = line.split(' ').next().filter(|word| word.len() == 32)?;
            let bits = u128::from_str_radix(digits, 16).ok()?;
            Some(Ipv6Addr::from_bits(bits).into())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_local_entries_are_addresses_of_this_host() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n\
                    \x20    |-- 192.0.2.0\n        /24 link UNICAST\n     |-- 192.0.2.2\n        /32 link BROADCAST\n\
                    \x20       /32 host LOCAL\n     |-- 127.0.0.0\n        /8 host LOCAL\n";
        assert_eq!(v4_of(trie), [IpAddr::from([192, 0, 2, 2])]);
    }

    #[test]
    fn lines_of_if_inet6_begin_with_the_address() {
        let list = "fd000000000000000000000000000002 04 40 00 82     eth0\nnonsense 1\n\n";
        assert_eq!(v6_of(list), ["fd00::2".parse::<IpAddr>().unwrap()]);
    }
}
