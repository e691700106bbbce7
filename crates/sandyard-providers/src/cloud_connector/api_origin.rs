//! How far addresses are believed that a provider's API tells: it is somebody else's, and this host's network is not its business.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Where a provider's API is.
#[derive(Clone, Debug)]
pub(crate) struct ApiOrigin {
    is_tls: bool,
    host: String,
    /// What all of its own names end with.
    domain: Option<String>,
}

/// How near an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Near {
    Public,
    Private,
    LinkLocal,
    Loopback,
    /// Nobody is reached by it.
    Nobody,
}

impl ApiOrigin {
    pub(crate) fn of(api: &Url) -> Self {
        Self {
            is_tls: api.scheme() == "https",
            host: unbracketed(api.host_str().unwrap_or_default()).to_owned(),
            domain: api.domain().and_then(registered).map(str::to_owned),
        }
    }

    /// Says whether an address is as safe as the API's own: nothing is said in clear unless all is.
    pub(crate) fn is_safe(&self, is_tls: bool) -> bool {
        is_tls || !self.is_tls
    }

    /// Says whether an address is the provider's own, so that a key for the API may be shown there.
    pub(crate) fn owns(&self, url: &Url) -> bool {
        let is_below = |domain: &str| {
            let own = self.domain.as_deref();
            let own = own.and_then(|own| domain.strip_suffix(own));
            own.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let is_same = url.host_str().map(unbracketed) == Some(&self.host);
        self.is_safe(url.scheme() == "https") && (is_same || url.domain().is_some_and(is_below))
    }

    /// Where a name is. What is not public counts only if the API itself is as near.
    pub(crate) async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let mut found = look_up(host, port).await?;
        let is_public = |address: &SocketAddr| near(address.ip()) == Near::Public;
        if host != self.host && !found.iter().all(is_public) {
            let own = look_up(&self.host, port).await.unwrap_or_default();
            let own: HashSet<_> = own.iter().map(|address| near(address.ip())).collect();
            found.retain(|address| is_public(address) || own.contains(&near(address.ip())));
        }
        if found.is_empty() {
            let message = format!("{host} is not in a network that its provider may name");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        Ok(found)
    }
}

/// Names are looked up for the API's client as for everybody else.
impl Resolve for ApiOrigin {
    fn resolve(&self, name: Name) -> Resolving {
        let home = self.clone();
        Box::pin(async move {
            let found = ApiOrigin::resolve(&home, name.as_str(), 0).await?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Says whether an address names this host itself, so that no network lies in between.
pub(crate) fn is_this_host(url: &Url) -> bool {
    let host = unbracketed(url.host_str().unwrap_or_default());
    match host.parse::<IpAddr>() {
        Ok(address) => near(address) == Near::Loopback,
        Err(_) => is_local_name(host),
    }
}

/// Names below `localhost` are this host (RFC 6761), whether or not its resolver knows that.
fn is_local_name(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost")
}

async fn look_up(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if is_local_name(host) {
        let own = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        return Ok(own.map(|address| SocketAddr::new(address, port)).to_vec());
    }
    let found = tokio::net::lookup_host((host, port)).await?;
    Ok(found.collect())
}

/// What a name is registered under, as far as that can be told without a list of registries: two labels, or three where the second
/// is one of a registry's own (`co.uk`).
fn registered(name: &str) -> Option<&str> {
    let name = name.trim_end_matches('.');
    let labels: Vec<_> = name.rsplit('.').collect();
    let is_registry = |top: &str, second: &str| top.len() == 2 && second.len() <= 3;
    let count = match labels[..] {
        [top, second, ..] if is_registry(top, second) => 3,
        [_, _, ..] => 2,
        _ => return None,
    };
    // What is a registry's own name, or one of a kind, stands for itself alone.
    let labels = labels.get(..count)?;
    let length = labels.iter().map(|label| label.len() + 1).sum::<usize>() - 1;
    name.get(name.len() - length..)
}

/// An IPv6 address without what URLs put around it.
fn unbracketed(host: &str) -> &str {
    host.trim_matches(['[', ']'])
}

fn near(address: IpAddr) -> Near {
    match address {
        IpAddr::V4(address) => near_v4(address),
        IpAddr::V6(address) => near_v6(address),
    }
}

fn near_v4(address: Ipv4Addr) -> Near {
    let [first, second, ..] = address.octets();
    match address {
        _ if address.is_loopback() => Near::Loopback,
        _ if address.is_link_local() => Near::LinkLocal,
        // The last are those that carriers share.
        _ if address.is_private() || (first == 100 && second & 0xc0 == 64) => Near::Private,
        _ if first == 0 || first >= 224 => Near::Nobody,
        _ => Near::Public,
    }
}

fn near_v6(address: Ipv6Addr) -> Near {
    let segments = address.segments();
    // An IPv4 address in the clothes of an IPv6 one: mapped, or translated on the way.
    let inner = match segments {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
            let [.., a, b, c, d] = address.octets();
            Some(Ipv4Addr::new(a, b, c, d))
        }
        _ => None,
    };
    match address {
        _ if inner.is_some() => inner.map_or(Near::Nobody, near_v4),
        _ if address.is_loopback() => Near::Loopback,
        _ if address.is_unicast_link_local() => Near::LinkLocal,
        _ if address.is_unique_local() => Near::Private,
        _ if address.is_unspecified() || address.is_multicast() => Near::Nobody,
        _ => Near::Public,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).expect("an address")
    }

    #[test]
    fn a_key_is_shown_to_the_apis_own_names_alone() {
        let cloud = ApiOrigin::of(&url("https://app.daytona.io/api"));
        for own in [
            "https://app.daytona.io/x",
            "https://proxy.eu.daytona.io:8443",
            "https://daytona.io",
        ] {
            assert!(cloud.owns(&url(own)), "{own}");
        }
        for other in [
            "http://app.daytona.io",
            "https://notdaytona.io",
            "https://daytona.io.example.com",
            "https://169.254.169.254",
            "https://localhost",
            "https://10.0.0.1",
        ] {
            assert!(!cloud.owns(&url(other)), "{other}");
        }
        let shared = ApiOrigin::of(&url("https://api.example.co.uk"));
        assert!(shared.owns(&url("https://proxy.example.co.uk")));
        assert!(!shared.owns(&url("https://other.co.uk")));
        let near = ApiOrigin::of(&url("http://127.0.0.1:3000/api"));
        assert!(near.owns(&url("http://127.0.0.1:4000")));
        assert!(!near.owns(&url("http://10.0.0.1:4000")));
        let own_host = ApiOrigin::of(&url("http://localhost:3000"));
        assert!(own_host.owns(&url("http://localhost:4000")));
        assert!(!own_host.owns(&url("http://example.com")));
    }

    #[tokio::test]
    async fn what_is_near_counts_only_where_the_api_is_as_near() {
        let of =
            async |api: &str, host: &str| ApiOrigin::of(&url(api)).resolve(host, 80).await.is_ok();
        let near = [
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
        for host in near {
            assert!(!of("https://192.0.2.1", host).await, "{host}");
        }
        assert!(of("https://192.0.2.1", "198.51.100.1").await);
        assert!(of("http://127.0.0.1:1", "a.localhost").await);
        assert!(!of("http://127.0.0.1:1", "169.254.169.254").await);
        assert!(of("http://10.0.0.1", "192.168.0.1").await);
        assert!(!of("http://10.0.0.1", "127.0.0.1").await);
    }
}
