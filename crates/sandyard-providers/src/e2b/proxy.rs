//! Connections to a sandbox's agent and ports through E2B's proxy, over TLS; the host name or headers select the sandbox.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::HOST;
use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::Url;
use rustls::pki_types::ServerName;
use sandyard_agent_client::wire::routes::{AGENT_PORT, header::ACCESS_TOKEN};
use sandyard_agent_client::{BoxedStream, Dial, Dialling, PortDialling, PortStream};
use sandyard_provider::{ProviderError, ProviderErrorKind, Result};
use sandyard_tls::roots;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::config::{E2bConfig, trusted_roots};
use super::sandbox_cache::Keys;
use crate::cloud_tools::{self, ToolServer};

const SANDBOX_ID: HeaderName = HeaderName::from_static("e2b-sandbox-id");
const SANDBOX_PORT: HeaderName = HeaderName::from_static("e2b-sandbox-port");
const TRAFFIC_TOKEN: HeaderName = HeaderName::from_static("e2b-traffic-access-token");
const AGENT_TOKEN: HeaderName = HeaderName::from_static(ACCESS_TOKEN);

/// E2B's proxy.
pub(super) struct Proxy {
    /// Common address of all sandboxes; `None` when each port has its own name.
    common_url: Option<Url>,
    domain: String,
    resolve_to: Option<SocketAddr>,
    tls: TlsConnector,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("url", &self.common_url)
            .field("domain", &self.domain)
            .finish_non_exhaustive()
    }
}

/// Address of a port.
struct PortAddress {
    is_tls: bool,
    host: String,
    port: u16,
}

impl PortAddress {
    /// The value of the `Host` header.
    fn authority(&self) -> String {
        match (self.is_tls, self.port) {
            (true, 443) | (false, 80) => self.host.clone(),
            (_, port) => format!("{}:{port}", self.host),
        }
    }
}

impl Proxy {
    pub(super) fn new(config: &E2bConfig) -> Result<Self> {
        Ok(Self {
            common_url: config.sandboxes()?,
            domain: config.domain.clone(),
            resolve_to: config.resolve_to,
            tls: connector(config.trusted_ca.as_deref())?,
        })
    }

    fn address_of(&self, id: &str, keys: &Keys, port: u16) -> io::Result<PortAddress> {
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "E2B's domain is not valid");
        if let Some(url) = &self.common_url {
            return Ok(PortAddress {
                is_tls: url.scheme() == "https",
                host: url.host_str().ok_or_else(invalid)?.to_owned(),
                port: url.port_or_known_default().ok_or_else(invalid)?,
            });
        }
        let domain = keys.domain.as_deref().unwrap_or(&self.domain);
        if !is_below(domain, &self.domain) {
            let message = "E2B named a domain outside of the configured one: if it is correct, set E2B_DOMAIN to it";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        let (domain, at) = match domain.rsplit_once(':') {
            Some((domain, at)) => (domain, at.parse().map_err(|_| invalid())?),
            None => (domain, 443),
        };
        Ok(PortAddress {
            is_tls: true,
            host: format!("{port}-{id}.{domain}"),
            port: at,
        })
    }

    /// Headers of a request to a port.
    fn headers(&self, id: &str, keys: &Keys, port: u16) -> io::Result<HeaderMap> {
        let value = |text: &str| HeaderValue::try_from(text).map_err(io::Error::other);
        let secret = |text: &str| {
            value(text).map(|mut value| {
                value.set_sensitive(true);
                value
            })
        };
        let mut headers = HeaderMap::new();
        headers.insert(HOST, value(&self.address_of(id, keys, port)?.authority())?);
        headers.insert(SANDBOX_ID, value(id)?);
        headers.insert(SANDBOX_PORT, port.into());
        if let Some(token) = &keys.traffic_token {
            headers.insert(TRAFFIC_TOKEN, secret(token)?);
        }
        if let (AGENT_PORT, Some(token)) = (port, &keys.agent_token) {
            headers.insert(AGENT_TOKEN, secret(token)?);
        }
        Ok(headers)
    }

    async fn open(&self, address: &PortAddress) -> io::Result<BoxedStream> {
        let stream = match self.resolve_to {
            Some(address) => TcpStream::connect(address).await?,
            None => TcpStream::connect((unbracketed(&address.host), address.port)).await?,
        };
        stream.set_nodelay(true)?;
        if !address.is_tls {
            return Ok(Box::new(stream));
        }
        let name = ServerName::try_from(unbracketed(&address.host).to_owned());
        let name = name.map_err(io::Error::other)?;
        Ok(Box::new(self.tls.connect(name, stream).await?))
    }
}

/// Whether a domain is equal to another one or below it; ports are ignored.
fn is_below(domain: &str, parent: &str) -> bool {
    let host = |text: &str| {
        let host = text.split(':').next().unwrap_or(text);
        host.trim_end_matches('.').to_ascii_lowercase()
    };
    let (domain, parent) = (host(domain), host(parent));
    let rest = domain.strip_suffix(&parent);
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// An IPv6 address without the brackets of URLs.
fn unbracketed(host: &str) -> &str {
    let inner = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    inner.unwrap_or(host)
}

fn connector(trusted: Option<&str>) -> Result<TlsConnector> {
    let mut config = roots::client_config(trusted_roots(trusted)?);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Dials one sandbox.
#[derive(Clone)]
pub(super) struct AgentDialler {
    proxy: Arc<Proxy>,
    name: String,
    id: String,
    keys: Keys,
    headers: HeaderMap,
    /// `None` for the dialler that starts the tool server.
    tools: Option<ToolServer>,
}

impl AgentDialler {
    /// Creates a dialler without connecting.
    pub(super) fn new(proxy: Arc<Proxy>, location: &str, id: &str, keys: Keys) -> Result<Self> {
        let headers = proxy.headers(id, &keys, AGENT_PORT).map_err(|error| {
            let message = "E2B reported an invalid address or token of the sandbox";
            ProviderError::new(ProviderErrorKind::Failed, message).source(error)
        })?;
        Ok(Self {
            proxy,
            name: format!("{location}/{id}"),
            id: id.to_owned(),
            keys,
            headers,
            tools: None,
        })
    }

    /// The same with a tool server.
    pub(super) fn with_tools(self, tools: Option<ToolServer>) -> Self {
        Self { tools, ..self }
    }

    /// Opens a connection to a port.
    async fn open(&self, port: u16) -> io::Result<PortStream> {
        let address = self.proxy.address_of(&self.id, &self.keys, port)?;
        let mut headers = self.proxy.headers(&self.id, &self.keys, port)?;
        // Clients of a port send their own token.
        headers.remove(AGENT_TOKEN);
        Ok(PortStream {
            stream: self.proxy.open(&address).await?,
            headers,
        })
    }
}

impl Dial for AgentDialler {
    fn name(&self) -> &str {
        &self.name
    }

    fn dial(&self) -> Dialling<'_> {
        Box::pin(async {
            let address = self.proxy.address_of(&self.id, &self.keys, AGENT_PORT)?;
            self.proxy.open(&address).await
        })
    }

    fn headers(&self) -> Option<&HeaderMap> {
        Some(&self.headers)
    }

    fn dial_port(&self, port: u16) -> Option<PortDialling<'_>> {
        let tools = self.tools.as_ref();
        let open = move |port| self.open(port);
        Some(Box::pin(cloud_tools::dial(tools, port, open)))
    }

    fn port_timeout(&self) -> Option<Duration> {
        self.tools.as_ref().map(|_| cloud_tools::FIRST_DIAL_TIMEOUT)
    }

    fn is_host_connection(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_sent_below_the_domain_only() {
        for inside in ["e2b.app", "e2b.app:443", "eu.E2B.app", "a.b.e2b.app."] {
            assert!(is_below(inside, "e2b.app"), "{inside}");
        }
        for other in [
            "note2b.app",
            "e2b.app.example.com",
            "169.254.169.254",
            "localhost",
            "app",
            "",
        ] {
            assert!(!is_below(other, "e2b.app"), "{other}");
        }
        assert!(is_below("sbx.test:1", "sbx.test:2"));
    }
}
