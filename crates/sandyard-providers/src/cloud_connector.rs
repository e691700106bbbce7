//! The way to somebody else's API and proxies: TLS whose authorities the operator may add to, and bare connections by address.

mod api_origin;
mod retry_advice;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use sandyard_agent_client::BoxedStream;
use sandyard_provider::{ProviderError, ProviderErrorKind, Result};
use sandyard_tls::roots;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use api_origin::ApiOrigin;
pub(crate) use retry_advice::RetryAdvice;

/// How long the other side may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an unused connection may stay, and how often a silent one is asked whether it is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// How to reach one provider's servers.
#[derive(Clone)]
pub(crate) struct CloudConnector {
    tls: ClientConfig,
    home: ApiOrigin,
}

impl fmt::Debug for CloudConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CloudConnector")
    }
}

impl CloudConnector {
    /// Trusts whom the host trusts, and whoever is in `trusted_ca` (PEM). Where the API is says which addresses it may name.
    ///
    /// # Errors
    /// `Invalid` when that holds no certificate.
    pub(crate) fn new(trusted_ca: Option<&str>, api: &Url) -> Result<Self> {
        let roots = roots::host_roots_and(trusted_ca.map(str::as_bytes));
        let roots = roots
            .map_err(|error| invalid("the certificate to trust cannot be used").source(error))?;
        let tls = roots::client_config(roots);
        let home = ApiOrigin::of(api);
        Ok(Self { tls, home })
    }

    /// A client for its API. Redirects are not followed: a key is shown to nobody but who it is for.
    pub(crate) fn client(&self) -> Result<Client> {
        Client::builder()
            .tls_backend_preconfigured(self.tls.clone())
            .redirect(Policy::none())
            .dns_resolver(Arc::new(self.home.clone()))
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(KEEP_ALIVE)
            .tcp_keepalive(KEEP_ALIVE)
            .build()
            .map_err(|error| invalid("the client cannot be set up").source(error))
    }

    /// Says whether a key for the API may be shown at an address that the API tells.
    pub(crate) fn may_show_key_to(&self, url: &Url) -> bool {
        self.home.owns(url)
    }

    /// Says whether a place that the API tells is as safe as the API itself.
    pub(crate) fn is_safe(&self, door: &ProxyAddress) -> bool {
        self.home.is_safe(door.is_tls)
    }

    /// Opens a connection, with TLS where the address says so; to this host's own networks only if the API is there too.
    pub(crate) async fn dial(&self, door: &ProxyAddress) -> io::Result<BoxedStream> {
        let open = async {
            let addresses = self.home.resolve(&door.host, door.port).await?;
            let stream = TcpStream::connect(&addresses[..]).await?;
            stream.set_nodelay(true)?;
            if !door.is_tls {
                return Ok(Box::new(stream) as BoxedStream);
            }
            let name = ServerName::try_from(door.host.clone()).map_err(io::Error::other)?;
            let connector = TlsConnector::from(Arc::new(self.tls.clone()));
            let stream = connector.connect(name, stream).await?;
            Ok(Box::new(stream) as BoxedStream)
        };
        let opened = tokio::time::timeout(CONNECT_TIMEOUT, open).await;
        opened.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

fn invalid(message: &str) -> ProviderError {
    ProviderError::new(ProviderErrorKind::Invalid, message)
}

/// The host of an address, with its port where that is not the usual one.
pub(crate) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// What is said where a key and all else goes to somebody else's host in clear.
pub(crate) fn lack_of_tls(of: &str, url: &Url) -> Option<String> {
    let is_far = url.scheme() == "http" && !api_origin::is_this_host(url);
    is_far.then(|| {
        format!(
            "anybody on the way to {of} at {} can read and change what is said, the key too: there is no TLS",
            host(url)
        )
    })
}

/// A place that takes connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProxyAddress {
    is_tls: bool,
    /// As it is written in addresses, an IPv6 one without brackets.
    host: String,
    port: u16,
    authority: HeaderValue,
}

impl ProxyAddress {
    /// Reads `http://…` or `https://…` without a path; none: it is something else.
    pub(crate) fn parse(url: &str) -> Option<Self> {
        let url = Url::parse(url).ok()?;
        let is_tls = match url.scheme() {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let is_bare = matches!(url.path(), "" | "/") && url.username().is_empty();
        let host = url.host_str().filter(|_| is_bare)?;
        let authority = self::host(&url);
        Some(Self {
            is_tls,
            host: host.trim_matches(['[', ']']).to_owned(),
            port: url.port_or_known_default()?,
            authority: HeaderValue::try_from(authority).ok()?,
        })
    }

    /// The `Host` of requests to it.
    pub(crate) fn authority(&self) -> &HeaderValue {
        &self.authority
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doors_are_addresses_without_a_path() {
        let door = ProxyAddress::parse("https://80-abc.proxy.example.com").expect("a door");
        assert!(door.is_tls);
        assert_eq!(
            (door.host.as_str(), door.port),
            ("80-abc.proxy.example.com", 443)
        );
        assert_eq!(door.authority(), "80-abc.proxy.example.com");
        let door = ProxyAddress::parse("http://[::1]:8080/").expect("a door");
        assert_eq!((door.host.as_str(), door.port), ("::1", 8080));
        assert_eq!(door.authority(), "[::1]:8080");
        for odd in [
            "",
            "ftp://host",
            "http://host/path",
            "http://a@host",
            "host:80",
        ] {
            assert_eq!(ProxyAddress::parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn hosts_have_their_unusual_ports() {
        let of = |text| host(&Url::parse(text).expect("an address"));
        assert_eq!(of("https://api.e2b.app/"), "api.e2b.app");
        assert_eq!(of("http://127.0.0.1:3000"), "127.0.0.1:3000");
    }

    #[test]
    fn what_goes_over_networks_in_clear_is_said() {
        let lack = |text| lack_of_tls("the API", &Url::parse(text).expect("an address"));
        for fine in [
            "https://api.e2b.app",
            "http://localhost:3000",
            "http://api.localhost",
            "http://127.1.2.3",
            "http://[::1]:3000/api",
        ] {
            assert_eq!(lack(fine), None, "{fine}");
        }
        for bare in [
            "http://10.0.0.7:3000",
            "http://127.0.0.1.example.com",
            "http://localhost.example.com",
        ] {
            let said = lack(bare).expect(bare);
            assert!(said.contains("no TLS"), "{said}");
        }
    }

    #[test]
    fn what_holds_no_certificate_is_refused() {
        let api = Url::parse("https://api.example.com").expect("an address");
        let error = CloudConnector::new(Some("no certificate"), &api).expect_err("none");
        assert_eq!(error.kind, ProviderErrorKind::Invalid);
    }
}
