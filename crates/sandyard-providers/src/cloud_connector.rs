//! Connections to a cloud's API and proxies: TLS with certificate authorities that the operator can add to.

mod api_origin;
mod retry_advice;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use reqwest::{Client, Url};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use sandyard_agent_client::BoxedStream;
use sandyard_provider::{ProviderError, ProviderErrorKind, Result};
use sandyard_tls::roots;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::http_client::client_builder;
use api_origin::ApiOrigin;
pub(crate) use retry_advice::RetryAdvice;

/// How long the server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connects to the servers of one cloud.
#[derive(Clone)]
pub(crate) struct CloudConnector {
    tls: ClientConfig,
    origin: ApiOrigin,
}

impl fmt::Debug for CloudConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CloudConnector")
    }
}

impl CloudConnector {
    /// Trusts the host's certificate authorities and those in `trusted_ca` (PEM). `api` decides which addresses the API may name.
    ///
    /// # Errors
    /// `Invalid` when `trusted_ca` contains no certificate.
    pub(crate) fn new(trusted_ca: Option<&str>, api: &Url) -> Result<Self> {
        let roots = roots::host_roots_and(trusted_ca.map(str::as_bytes));
        let roots =
            roots.map_err(|error| invalid("the trusted certificate is not valid").source(error))?;
        let tls = roots::client_config(roots);
        let origin = ApiOrigin::of(api);
        Ok(Self { tls, origin })
    }

    /// A client of the API. It does not follow redirects, so that no other server receives the key.
    pub(crate) fn client(&self) -> Result<Client> {
        client_builder(self.tls.clone(), CONNECT_TIMEOUT)
            .dns_resolver(Arc::new(self.origin.clone()))
            .build()
            .map_err(|error| invalid("failed to create the HTTP client").source(error))
    }

    /// Whether the API key may be sent to an address that the API named.
    pub(crate) fn accepts_key(&self, url: &Url) -> bool {
        self.origin.is_own(url)
    }

    /// Whether an address that the API named is as safe as the API itself.
    pub(crate) fn is_safe(&self, address: &ProxyAddress) -> bool {
        self.origin.is_safe(address.is_tls)
    }

    /// Opens a connection, with TLS if the address requires it. Private networks are refused unless the API is in one, too.
    pub(crate) async fn dial(&self, address: &ProxyAddress) -> io::Result<BoxedStream> {
        let open = async {
            let addresses = self.origin.resolve(&address.host, address.port).await?;
            let stream = TcpStream::connect(&addresses[..]).await?;
            stream.set_nodelay(true)?;
            if !address.is_tls {
                return Ok(Box::new(stream) as BoxedStream);
            }
            let name = ServerName::try_from(address.host.clone()).map_err(io::Error::other)?;
            let connector = TlsConnector::from(Arc::new(self.tls.clone()));
            let stream = connector.connect(name, stream).await?;
            Ok(Box::new(stream) as BoxedStream)
        };
        let stream_result = tokio::time::timeout(CONNECT_TIMEOUT, open).await;
        stream_result.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

fn invalid(message: &str) -> ProviderError {
    ProviderError::new(ProviderErrorKind::Invalid, message)
}

/// The host of an address, with its port unless it is the default one.
pub(crate) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// The limitation to report when requests go to a remote host without TLS.
pub(crate) fn no_tls_limitation(name: &str, url: &Url) -> Option<String> {
    let is_remote = url.scheme() == "http" && !api_origin::is_this_host(url);
    is_remote.then(|| {
        format!(
            "connections to {name} at {} use no TLS: the network can read and change requests and the key",
            host(url)
        )
    })
}

/// An address without a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProxyAddress {
    is_tls: bool,
    /// The host; an IPv6 address has no brackets.
    host: String,
    port: u16,
    authority: HeaderValue,
}

impl ProxyAddress {
    /// Parses `http://…` or `https://…` without a path; `None` for anything else.
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

    /// The `Host` header of requests to it.
    pub(crate) fn authority(&self) -> &HeaderValue {
        &self.authority
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_addresses_have_no_path() {
        let address = ProxyAddress::parse("https://80-abc.proxy.example.com").expect("an address");
        assert!(address.is_tls);
        assert_eq!(
            (address.host.as_str(), address.port),
            ("80-abc.proxy.example.com", 443)
        );
        assert_eq!(address.authority(), "80-abc.proxy.example.com");
        let address = ProxyAddress::parse("http://[::1]:8080/").expect("an address");
        assert_eq!((address.host.as_str(), address.port), ("::1", 8080));
        assert_eq!(address.authority(), "[::1]:8080");
        for invalid_url in [
            "",
            "ftp://host",
            "http://host/path",
            "http://a@host",
            "host:80",
        ] {
            assert_eq!(ProxyAddress::parse(invalid_url), None, "{invalid_url}");
        }
    }

    #[test]
    fn hosts_include_non_default_ports() {
        let of = |text| host(&Url::parse(text).expect("an address"));
        assert_eq!(of("https://api.e2b.app/"), "api.e2b.app");
        assert_eq!(of("http://127.0.0.1:3000"), "127.0.0.1:3000");
    }

    #[test]
    fn remote_addresses_without_tls_are_reported() {
        let limitation =
            |text| no_tls_limitation("the API", &Url::parse(text).expect("an address"));
        for fine in [
            "https://api.e2b.app",
            "http://localhost:3000",
            "http://api.localhost",
            "http://127.1.2.3",
            "http://[::1]:3000/api",
        ] {
            assert_eq!(limitation(fine), None, "{fine}");
        }
        for bare in [
            "http://10.0.0.7:3000",
            "http://127.0.0.1.example.com",
            "http://localhost.example.com",
        ] {
            let text = limitation(bare).expect(bare);
            assert!(text.contains("no TLS"), "{text}");
        }
    }

    #[test]
    fn a_trusted_ca_without_a_certificate_is_invalid() {
        let api = Url::parse("https://api.example.com").expect("an address");
        let error = CloudConnector::new(Some("no certificate"), &api).expect_err("none");
        assert_eq!(error.kind, ProviderErrorKind::Invalid);
    }
}
