//! Hosts that bypass the proxies: `NO_PROXY`.

use std::net::IpAddr;

use super::proxy::split_port;

/// Hosts that are dialled directly.
#[derive(Debug, Default)]
pub(super) struct NoProxy(Vec<Exception>);

#[derive(Debug)]
struct Exception {
    hosts: Hosts,
    port: Option<u16>,
}

#[derive(Debug)]
enum Hosts {
    All,
    /// A name and those below it.
    Name(String),
    /// A network address and its prefix length.
    Network(IpAddr, u8),
}

impl NoProxy {
    /// Parses a list separated by commas or spaces: `*`, `example.com`, `.example.com`, `*.example.com`, `192.0.2.1`, `10.0.0.0/8`, each
    /// with or without `:port`. Other entries are ignored.
    pub(super) fn parse(list: &str) -> Self {
        let entries = list.split(|c: char| c == ',' || c.is_whitespace());
        Self(entries.filter_map(Exception::parse).collect())
    }

    /// Whether a host, which is a name or an address, is dialled directly. This host itself always is: to a proxy `localhost`
    /// would be the proxy.
    pub(super) fn matches(&self, host: &str, port: u16) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let address = host.parse::<IpAddr>().ok().map(|ip| ip.to_canonical());
        let is_this_host = match address {
            Some(address) => address.is_loopback(),
            None => host == "localhost" || host.ends_with(".localhost"),
        };
        is_this_host
            || self
                .0
                .iter()
                .any(|exception| exception.matches(&host, address, port))
    }
}

impl Exception {
    fn parse(entry: &str) -> Option<Self> {
        if entry.is_empty() {
            return None;
        }
        if let Some(hosts) = network(entry) {
            return Some(Self { hosts, port: None });
        }
        let (host, port) = split_port(entry)?;
        let hosts = match network(host) {
            Some(hosts) => hosts,
            None => match host.trim_end_matches('.').to_ascii_lowercase().as_str() {
                "" => return None,
                "*" => Hosts::All,
                name => {
                    let name = name.strip_prefix('*').unwrap_or(name);
                    Hosts::Name(name.strip_prefix('.').unwrap_or(name).to_owned())
                }
            },
        };
        Some(Self { hosts, port })
    }

    fn matches(&self, host: &str, address: Option<IpAddr>, port: u16) -> bool {
        let is_port = self.port.is_none_or(|only| only == port);
        is_port
            && match (&self.hosts, address) {
                (Hosts::All, _) => true,
                (Hosts::Network(network, bits), Some(address)) => {
                    is_inside(address, *network, *bits)
                }
                (Hosts::Name(name), None) => host
                    .strip_suffix(name.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.ends_with('.')),
                (Hosts::Network(..), None) | (Hosts::Name(_), Some(_)) => false,
            }
    }
}

/// `192.0.2.1`, `10.0.0.0/8`, `2001:db8::/32`.
fn network(text: &str) -> Option<Hosts> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let all = if address.is_ipv4() { 32 } else { 128 };
    let bits = match bits {
        Some(bits) => bits.parse().ok().filter(|bits| *bits <= all)?,
        None => all,
    };
    Some(Hosts::Network(address, bits))
}

fn is_inside(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let different = address.to_bits() ^ network.to_bits();
            different.leading_zeros() >= bits.into()
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let different = address.to_bits() ^ network.to_bits();
            different.leading_zeros() >= bits.into()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_hold_for_what_they_name() {
        let cases: &[(&str, &str, u16, bool)] = &[
            ("", "example.com", 443, false),
            ("*", "example.com", 443, true),
            ("*", "192.0.2.1", 443, true),
            ("*:80", "example.com", 443, false),
            ("example.com", "example.com", 443, true),
            ("example.com", "EXAMPLE.com.", 443, true),
            ("Example.Com.", "www.example.com", 443, true),
            ("example.com", "badexample.com", 443, false),
            ("example.com", "example.com.evil.net", 443, false),
            (".example.com", "www.example.com", 443, true),
            (".example.com", "example.com", 443, true),
            (".example.com", "badexample.com", 443, false),
            ("*.example.com", "www.example.com", 443, true),
            ("*.example.com", "badexample.com", 443, false),
            ("example.com:8443", "example.com", 8443, true),
            ("example.com:8443", "example.com", 443, false),
            ("example.com:none", "example.com", 443, false),
            ("a.net, example.com;", "a.net", 443, true),
            ("a.net,,example.com", "example.com", 443, true),
            ("a.net example.com", "example.com", 443, true),
            ("192.0.2.1", "192.0.2.1", 443, true),
            ("192.0.2.1", "192.0.2.10", 443, false),
            ("192.0.2.1:80", "192.0.2.1", 80, true),
            ("192.0.2.1:80", "192.0.2.1", 443, false),
            ("10.0.0.0/8", "10.200.3.4", 443, true),
            ("10.0.0.0/8", "11.0.0.1", 443, false),
            ("10.1.2.3/8", "10.200.3.4", 443, true),
            ("10.0.0.0/8", "::ffff:10.0.0.1", 443, true),
            ("0.0.0.0/0", "192.0.2.1", 443, true),
            ("0.0.0.0/0", "2001:db8::1", 443, false),
            ("10.0.0.0/33", "10.0.0.0", 443, false),
            ("10.0.0.0/8", "ten.example", 443, false),
            ("2001:db8::/32", "2001:db8:1::1", 443, true),
            ("2001:db8::/32", "2001:db9::1", 443, false),
            ("2001:db8::1", "2001:db8::1", 443, true),
            ("[2001:db8::1]:80", "2001:db8::1", 80, true),
            ("[2001:db8::1]:80", "2001:db8::1", 81, false),
            ("", "localhost", 443, true),
            ("", "db.localhost", 443, true),
            ("", "127.1.2.3", 443, true),
            ("", "::1", 443, true),
            ("", "notlocalhost", 443, false),
        ];
        for (list, host, port, expected) in cases {
            let is_match = NoProxy::parse(list).matches(host, *port);
            assert_eq!(is_match, *expected, "`{list}` for `{host}` port {port}");
        }
    }
}
