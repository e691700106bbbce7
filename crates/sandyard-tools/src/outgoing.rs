//! What every HTTP client of this program has in common.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{ClientBuilder, Url};
use rustls::RootCertStore;
use sandyard_tls::roots;

/// For a connection to be there.
const CONNECT: Duration = Duration::from_secs(10);

/// Whom the sandbox trusts: `SSL_CERT_FILE` counts, which there names the gateway's authority besides the public ones.
///
/// Read anew each time, for what it takes in memory is larger than all else of an idle tool server.
pub(crate) async fn roots() -> RootCertStore {
    // Hundreds of certificates, or as many files: not on the thread that answers.
    let read = tokio::task::spawn_blocking(roots::host_roots);
    read.await.unwrap_or_else(|_| RootCertStore::empty())
}

/// The beginning of a client for an address: it goes through the sandbox's proxy where there is one, and trusts these.
pub(crate) fn builder(url: &Url, roots: RootCertStore) -> ClientBuilder {
    let builder = reqwest::Client::builder()
        .tls_backend_preconfigured(roots::client_config(roots))
        .connect_timeout(CONNECT)
        .dns_resolver(Resolver);
    // No proxy reaches the sandbox's own loopback.
    if is_loopback(url) {
        builder.no_proxy()
    } else {
        builder
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    well_known(host).is_some_and(|addresses| addresses.iter().all(IpAddr::is_loopback))
}

/// Names to addresses. What every machine must know does not depend on a template having it in `/etc/hosts`.
#[derive(Debug, Clone, Copy)]
struct Resolver;

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let addresses: Vec<_> = match well_known(name.as_str()) {
                Some(known) => known.into_iter().map(|known| (known, 0).into()).collect(),
                None => tokio::net::lookup_host((name.as_str(), 0)).await?.collect(),
            };
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

fn well_known(host: &str) -> Option<Vec<IpAddr>> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse() {
        return Some(vec![address]);
    }
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    (name == "localhost" || name.ends_with(".localhost"))
        .then(|| vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_reached_without_a_proxy() {
        for (url, is_here) in [
            ("http://127.0.0.1:8080/", true),
            ("http://[::1]/", true),
            ("http://localhost./", true),
            ("http://a.localhost/", true),
            ("http://localhost.example/", false),
            ("http://10.0.0.1/", false),
        ] {
            let url = Url::parse(url).expect("an address");
            assert_eq!(is_loopback(&url), is_here, "{url}");
        }
    }
}
