//! Restricts the addresses that a cloud's API may name: they must not reach into this host's networks.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// The host and domain of a cloud's API.
#[derive(Clone, Debug)]
pub(crate) struct ApiOrigin {
    is_tls: bool,
    host: String,
    /// Suffix of its own names.
    domain: Option<String>,
}

/// From where an address can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Reach {
    Public,
    Private,
    LinkLocal,
    Loopback,
    /// Not the address of a host.
    Unusable,
}

impl ApiOrigin {
    pub(crate) fn of(api: &Url) -> Self {
        Self {
            is_tls: api.scheme() == "https",
            host: unbracketed(api.host_str().unwrap_or_default()).to_owned(),
            domain: api.domain().and_then(registered).map(str::to_owned),
        }
    }

    /// Whether an address is as safe as the API's own: no clear text unless the API itself uses it.
    pub(crate) fn is_safe(&self, is_tls: bool) -> bool {
        is_tls || !self.is_tls
    }

    /// Whether an address belongs to the cloud, so that the API key may be sent there.
    pub(crate) fn is_own(&self, url: &Url) -> bool {
        let is_below = |domain: &str| {
            let own = self.domain.as_deref();
            let own = own.and_then(|own| domain.strip_suffix(own));
            own.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let is_same = url.host_str().map(unbracketed) == Some(&self.host);
        self.is_safe(url.scheme() == "https") && (is_same || url.domain().is_some_and(is_below))
    }

    /// Resolves a name. Addresses that are not public are dropped, unless the API itself has such an address.
    pub(crate) async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let mut addresses = resolve_name(host, port).await?;
        let is_public = |address: &SocketAddr| reach_of(address.ip()) == Reach::Public;
        if host != self.host && !addresses.iter().all(is_public) {
            let own_reach = resolve_name(&self.host, port).await.unwrap_or_default();
            let own_reach: HashSet<_> = own_reach
                .iter()
                .map(|address| reach_of(address.ip()))
                .collect();
            addresses.retain(|address| {
                is_public(address) || own_reach.contains(&reach_of(address.ip()))
            });
        }
        if addresses.is_empty() {
            let message =
                format!("{host} resolves to a private network, which the cloud must not name");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        Ok(addresses)
    }
}

/// The API's client uses the system's resolver, too.
impl Resolve for ApiOrigin {
    fn resolve(&self, name: Name) -> Resolving {
        let origin = self.clone();
        Box::pin(async move {
            let addresses = ApiOrigin::resolve(&origin, name.as_str(), 0).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// Whether an address names this host, so that no network is involved.
pub(crate) fn is_this_host(url: &Url) -> bool {
    let host = unbracketed(url.host_str().unwrap_or_default());
    match host.parse::<IpAddr>() {
        Ok(address) => reach_of(address) == Reach::Loopback,
        Err(_) => is_local_name(host),
    }
}

/// Names below `localhost` are this host (RFC 6761), whether or not its resolver knows that.
fn is_local_name(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost")
}

async fn resolve_name(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if is_local_name(host) {
        let own = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        return Ok(own.map(|address| SocketAddr::new(address, port)).to_vec());
    }
    let addresses = tokio::net::lookup_host((host, port)).await?;
    Ok(addresses.collect())
}

/// The registered domain of a name, as far as it is known without a list of registries: two labels, or three if the second belongs
/// to a registry (`co.uk`).
fn registered(name: &str) -> Option<&str> {
    let name = name.trim_end_matches('.');
    let labels: Vec<_> = name.rsplit('.').collect();
    let is_registry = |top: &str, second: &str| top.len() == 2 && second.len() <= 3;
    let count = match labels[..] {
        [top, second, ..] if is_registry(top, second) => 3,
        [_, _, ..] => 2,
        _ => return None,
    };
    // A registry's own name, or a single label, stands for itself.
    let labels = labels.get(..count)?;
    let length = labels.iter().map(|label| label.len() + 1).sum::<usize>() - 1;
    name.get(name.len() - length..)
}

/// An IPv6 address without the brackets of URLs.
fn unbracketed(host: &str) -> &str {
    host.trim_matches(['[', ']'])
}

fn reach_of(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => reach_of_v4(address),
        IpAddr::V6(address) => reach_of_v6(address),
    }
}

fn reach_of_v4(address: Ipv4Addr) -> Reach {
    let [first, second, ..] = address.octets();
    match address {
        _ if address.is_loopback() => Reach::Loopback,
        _ if address.is_link_local() => Reach::LinkLocal,
        // The last range is shared by carriers.
        _ if address.is_private() || (first == 100 && second & 0xc0 == 64) => Reach::Private,
        _ if first == 0 || first >= 224 => Reach::Unusable,
        _ => Reach::Public,
    }
}

fn reach_of_v6(address: Ipv6Addr) -> Reach {
    let segments = address.segments();
    // An IPv4 address in an IPv6 one: mapped or translated.
    let inner = match segments {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
            let [.., a, b, c, d] = address.octets();
            Some(Ipv4Addr::new(a, b, c, d))
        }
        _ => None,
    };
    match address {
        _ if inner.is_some() => inner.map_or(Reach::Unusable, reach_of_v4),
        _ if address.is_loopback() => Reach::Loopback,
        _ if address.is_unicast_link_local() => Reach::LinkLocal,
        _ if address.is_unique_local() => Reach::Private,
        _ if address.is_unspecified() || address.is_multicast() => Reach::Unusable,
        _ => Reach::Public,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).expect("an address")
    }

    #[test]
    fn the_key_is_accepted_for_the_clouds_own_names_only() {
        let cloud = ApiOrigin::of(&url("https://app.daytona.io/api"));
        for own in [
            "https://app.daytona.io/x",
            "https://proxy.eu.daytona.io:8443",
            "https://daytona.io",
        ] {
            assert!(cloud.is_own(&url(own)), "{own}");
        }
        for other in [
            "http://app.daytona.io",
            "https://notdaytona.io",
            "https://daytona.io.example.com",
            "https://169.254.169.254",
            "https://localhost",
            "https://10.0.0.1",
        ] {
            assert!(!cloud.is_own(&url(other)), "{other}");
        }
        let shared = ApiOrigin::of(&url("https://api.example.co.uk"));
        assert!(shared.is_own(&url("https://proxy.example.co.uk")));
        assert!(!shared.is_own(&url("https://other.co.uk")));
        let reach_of = ApiOrigin::of(&url("http://127.0.0.1:3000/api"));
        assert!(reach_of.is_own(&url("http://127.0.0.1:4000")));
        assert!(!reach_of.is_own(&url("http://10.0.0.1:4000")));
        let own_host = ApiOrigin::of(&url("http://localhost:3000"));
        assert!(own_host.is_own(&url("http://localhost:4000")));
        assert!(!own_host.is_own(&url("http://example.com")));
    }

    #[tokio::test]
    async fn private_addresses_are_accepted_only_if_the_api_has_one() {
        let of =
            async |api: &str, host: &str| ApiOrigin::of(&url(api)).resolve(host, 80).await.is_ok();
        let reach_of = [
            "127.0.0.1",
            "a.localhost",
            "169.254.169.254",
            "10.0.0.1",
            "100.64.0.1",
            "::1",
            "::ffff:127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "fd00::1",
            "0.0.0.0",
            "::",
        ];
        for host in reach_of {
            assert!(!of("https://192.0.2.1", host).await, "{host}");
        }
        assert!(of("https://192.0.2.1", "198.51.100.1").await);
        assert!(of("http://127.0.0.1:1", "a.localhost").await);
        assert!(!of("http://127.0.0.1:1", "169.254.169.254").await);
        assert!(of("http://10.0.0.1", "192.168.0.1").await);
        assert!(!of("http://10.0.0.1", "127.0.0.1").await);
    }
}
