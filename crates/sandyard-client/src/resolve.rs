//! Name resolution.
//!
//! `localhost` and IP addresses are resolved here, so that they do not depend on the C library. Everything else goes to
//! the C library, which in a static program supports `/etc/hosts` and DNS (built in since glibc 2.34) but no other
//! source of `nsswitch.conf`.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Resolver for all connections of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resolver;

impl Resolver {
    /// Resolves a host name. The best address comes first.
    pub(crate) async fn lookup(self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        if let Some(addresses) = well_known(host) {
            let with_port = |address| SocketAddr::new(address, port);
            return Ok(addresses.into_iter().map(with_port).collect());
        }
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = *self;
        Box::pin(async move {
            let addresses = resolver.lookup(name.as_str(), 0).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// Addresses of names that need no lookup: IP addresses, and names under `localhost` (RFC 6761, section 6.3).
fn well_known(host: &str) -> Option<Vec<IpAddr>> {
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(host);
    if let Ok(address) = bare.parse() {
        return Some(vec![address]);
    }
    let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    (name == "localhost" || name.ends_with(".localhost"))
        .then(|| vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn localhost_and_numbers_need_no_name_server() {
        let both: Vec<IpAddr> = vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        for name in ["localhost", "LocalHost.", "3000-abc.localhost"] {
            assert_eq!(well_known(name), Some(both.clone()), "{name}");
        }
        assert_eq!(
            well_known("10.0.0.7"),
            Some(vec!["10.0.0.7".parse().unwrap()])
        );
        assert_eq!(well_known("[::1]"), Some(vec!["::1".parse().unwrap()]));
        assert_eq!(well_known("localhost.example.org"), None);
        assert_eq!(well_known("mylocalhost"), None);
    }
}
