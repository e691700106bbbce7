//! Settings that all HTTP clients of the tool server share.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{ClientBuilder, Url};
use rustls::RootCertStore;
use sandyard_tls::roots;

/// Time to establish a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The certificate authorities that the sandbox trusts. `SSL_CERT_FILE` there also contains the gateway's authority.
///
/// They are read for every client, because keeping them would need more memory than the rest of an idle tool server.
pub(crate) async fn roots() -> RootCertStore {
    // These are hundreds of certificates or files, so do not read them on the async thread.
    let read = tokio::task::spawn_blocking(roots::host_roots);
    read.await.unwrap_or_else(|_| RootCertStore::empty())
}

/// A builder of clients for a URL. They use the sandbox's proxy if there is one, and trust these authorities.
pub(crate) fn builder(url: &Url, roots: RootCertStore) -> ClientBuilder {
    let builder = reqwest::Client::builder()
        .tls_backend_preconfigured(roots::client_config(roots))
        .connect_timeout(CONNECT_TIMEOUT)
        .dns_resolver(Resolver);
    // A proxy cannot reach the sandbox's loopback.
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

/// A resolver that knows `localhost` even if the template's `/etc/hosts` does not.
#[derive(Debug, Clone, Copy)]
struct Resolver;

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let addresses: Vec<_> = match well_known(name.as_str()) {
                Some(known) => known
                    .into_iter()
                    .map(|address| (address, 0).into())
                    .collect(),
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
    fn only_loopback_bypasses_the_proxy() {
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
