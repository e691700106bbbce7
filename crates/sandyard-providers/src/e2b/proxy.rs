//! The way to a sandbox's agent and to its ports: E2B's proxy, over TLS, which goes by the host's name or by headers.

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

/// The door to all sandboxes there.
pub(super) struct Proxy {
    /// One place for all; none: each port has a name of its own.
    place: Option<Url>,
    domain: String,
    resolve_to: Option<SocketAddr>,
    tls: TlsConnector,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("place", &self.place)
            .field("domain", &self.domain)
            .finish_non_exhaustive()
    }
}

/// Where a port is.
struct Place {
    is_tls: bool,
    host: String,
    port: u16,
}

impl Place {
    /// As `Host` has it.
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
            place: config.sandboxes()?,
            domain: config.domain.clone(),
            resolve_to: config.resolve_to,
            tls: connector(config.trusted_ca.as_deref())?,
        })
    }

    fn place(&self, id: &str, keys: &Keys, port: u16) -> io::Result<Place> {
        let odd = || io::Error::new(io::ErrorKind::InvalidInput, "E2B's domain is none");
        if let Some(url) = &self.place {
            return Ok(Place {
                is_tls: url.scheme() == "https",
                host: url.host_str().ok_or_else(odd)?.to_owned(),
                port: url.port_or_known_default().ok_or_else(odd)?,
            });
        }
        let domain = keys.domain.as_deref().unwrap_or(&self.domain);
        if !is_below(domain, &self.domain) {
            let message = "E2B names a domain that is not its own: set E2B_DOMAIN to it if it is";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        let (domain, at) = match domain.rsplit_once(':') {
            Some((domain, at)) => (domain, at.parse().map_err(|_| odd())?),
            None => (domain, 443),
        };
        Ok(Place {
            is_tls: true,
            host: format!("{port}-{id}.{domain}"),
            port: at,
        })
    }

    /// What a request to a port has to carry.
    fn headers(&self, id: &str, keys: &Keys, port: u16) -> io::Result<HeaderMap> {
        let value = |text: &str| HeaderValue::try_from(text).map_err(io::Error::other);
        let secret = |text: &str| {
            value(text).map(|mut value| {
                value.set_sensitive(true);
                value
            })
        };
        let mut headers = HeaderMap::new();
        headers.insert(HOST, value(&self.place(id, keys, port)?.authority())?);
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

    async fn open(&self, place: &Place) -> io::Result<BoxedStream> {
        let stream = match self.resolve_to {
            Some(address) => TcpStream::connect(address).await?,
            None => TcpStream::connect((unbracketed(&place.host), place.port)).await?,
        };
        stream.set_nodelay(true)?;
        if !place.is_tls {
            return Ok(Box::new(stream));
        }
        let name = ServerName::try_from(unbracketed(&place.host).to_owned());
        let name = name.map_err(io::Error::other)?;
        Ok(Box::new(self.tls.connect(name, stream).await?))
    }
}

/// Says whether a domain is another one or below it, wherever it is reached.
fn is_below(domain: &str, own: &str) -> bool {
    let host = |text: &str| {
        let host = text.split(':').next().unwrap_or(text);
        host.trim_end_matches('.').to_ascii_lowercase()
    };
    let (domain, own) = (host(domain), host(own));
    let rest = domain.strip_suffix(&own);
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// An IPv6 address without what URLs put around it.
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

/// The way to one sandbox.
#[derive(Clone)]
pub(super) struct AgentDialler {
    door: Arc<Proxy>,
    name: String,
    id: String,
    keys: Keys,
    headers: HeaderMap,
    /// None on the way that the tool server is started by.
    tools: Option<ToolServer>,
}

impl AgentDialler {
    /// Nothing is dialled yet.
    pub(super) fn new(door: Arc<Proxy>, location: &str, id: &str, keys: Keys) -> Result<Self> {
        let headers = door.headers(id, &keys, AGENT_PORT).map_err(|error| {
            let message = "what E2B told of the sandbox cannot be sent to it";
            ProviderError::new(ProviderErrorKind::Failed, message).source(error)
        })?;
        Ok(Self {
            door,
            name: format!("{location}/{id}"),
            id: id.to_owned(),
            keys,
            headers,
            tools: None,
        })
    }

    /// The same, with a tool server at its port, if it has one.
    pub(super) fn with_tools(self, tools: Option<ToolServer>) -> Self {
        Self { tools, ..self }
    }

    /// Opens a connection to a port.
    async fn open(&self, port: u16) -> io::Result<PortStream> {
        let place = self.door.place(&self.id, &self.keys, port)?;
        let mut headers = self.door.headers(&self.id, &self.keys, port)?;
        // Who comes by a port shows its own.
        headers.remove(AGENT_TOKEN);
        Ok(PortStream {
            stream: self.door.open(&place).await?,
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
            let place = self.door.place(&self.id, &self.keys, AGENT_PORT)?;
            self.door.open(&place).await
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
        self.tools.as_ref().map(|_| cloud_tools::PATIENCE)
    }

    fn is_host_connection(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_shown_below_the_domain_alone() {
        for own in ["e2b.app", "e2b.app:443", "eu.E2B.app", "a.b.e2b.app."] {
            assert!(is_below(own, "e2b.app"), "{own}");
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
