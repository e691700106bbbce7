//! The client: server address, credentials and HTTP connections.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};

use crate::Result;
use crate::error::ClientError;
use crate::resolve::Resolver;
use crate::tls;

/// Settings of a client.
#[derive(Clone, Default)]
pub struct ClientConfig {
    /// Address of the server, like `http://127.0.0.1:8100`. A path before the routes is kept.
    pub url: String,
    /// API key or session token. `None` for a server that requires no credentials.
    pub key: Option<String>,
    /// Certificates in PEM to trust besides the host's, for a server with a self-signed certificate.
    pub ca_pem: Option<Vec<u8>>,
}

/// Client of one server. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
    file_user: Option<Arc<str>>,
}

struct Inner {
    url: Url,
    authorization: Option<HeaderValue>,
    http: reqwest::Client,
    tls: Arc<rustls::ClientConfig>,
}

impl Client {
    /// Creates a client of the server at `url`. Does not connect yet.
    ///
    /// # Errors
    ///
    /// If the address or the key is malformed.
    pub fn new(url: &str, key: Option<&str>) -> Result<Self> {
        Self::with_config(ClientConfig {
            url: url.to_owned(),
            key: key.map(str::to_owned),
            ca_pem: None,
        })
    }

    /// Creates a client from settings.
    ///
    /// # Errors
    ///
    /// As [`Client::new`], and if a certificate cannot be parsed.
    pub fn with_config(config: ClientConfig) -> Result<Self> {
        let url = parse_url(&config.url)?;
        let authorization = config.key.as_deref().map(bearer).transpose()?;
        let tls = tls::config(url.scheme() == "https", config.ca_pem.as_deref())?;
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls.clone())
            .dns_resolver(Resolver)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .connect_timeout(Duration::from_secs(10))
            .tcp_keepalive(Duration::from_secs(30))
            .default_headers(headers(authorization.as_ref()))
            .user_agent(concat!("sandyard-client/", env!("CARGO_PKG_VERSION")));
        if is_loopback(&url) {
            // A proxy cannot reach the loopback of this host.
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|error| ClientError::Setup {
            problem: error.to_string(),
        })?;
        Ok(Self {
            inner: Arc::new(Inner {
                url,
                authorization,
                http,
                tls: Arc::new(tls),
            }),
            file_user: None,
        })
    }

    /// Returns a client that accesses files as this user of the sandbox: new files belong to the user, and relative
    /// paths start at the user's home directory.
    #[must_use]
    pub fn with_file_user(&self, user: &str) -> Self {
        Self {
            inner: self.inner.clone(),
            file_user: Some(user.into()),
        }
    }

    pub(crate) fn file_user(&self) -> Option<&str> {
        self.file_user.as_deref()
    }

    /// Address of the server.
    pub fn url(&self) -> &str {
        self.inner.url.as_str().trim_end_matches('/')
    }

    /// Port of the server.
    pub fn server_port(&self) -> u16 {
        self.inner
            .url
            .port_or_known_default()
            .expect("only http and https addresses are accepted, and those have ports")
    }

    /// Whether the address of the server is a loopback address.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.inner.url)
    }

    /// Key sent to the server. Do not log it.
    pub fn key(&self) -> Option<&str> {
        let value = self.inner.authorization.as_ref()?.to_str().ok()?;
        value.strip_prefix("Bearer ")
    }

    pub(crate) fn http(&self) -> &reqwest::Client {
        &self.inner.http
    }

    pub(crate) fn tls(&self) -> Arc<rustls::ClientConfig> {
        self.inner.tls.clone()
    }

    pub(crate) fn authorization(&self) -> Option<&HeaderValue> {
        self.inner.authorization.as_ref()
    }

    /// URL of a route given by its path segments, which are escaped.
    pub(crate) fn route<'a>(&self, segments: impl IntoIterator<Item = &'a str>) -> Url {
        let mut url = self.inner.url.clone();
        url.path_segments_mut()
            .expect("only http and https addresses are accepted, and those have paths")
            .pop_if_empty()
            .extend(segments);
        url
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("url", &self.inner.url.as_str())
            .finish_non_exhaustive()
    }
}

sandyard_core::debug_fields!(ClientConfig: url);

fn parse_url(text: &str) -> Result<Url> {
    let invalid = |problem: String| ClientError::Address {
        url: text.to_owned(),
        problem,
    };
    let url: Url = text
        .trim()
        .parse()
        .map_err(|error| invalid(format!("{error}; write it like http://127.0.0.1:8100")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(invalid("it must begin with http:// or https://".to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("it must not contain credentials".to_owned()));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(invalid("it must not contain `?` or `#`".to_owned()));
    }
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || bare
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback())
}

fn bearer(key: &str) -> Result<HeaderValue> {
    let mut value =
        HeaderValue::try_from(format!("Bearer {}", key.trim())).map_err(|_| ClientError::Key)?;
    value.set_sensitive(true);
    Ok(value)
}

fn headers(authorization: Option<&HeaderValue>) -> HeaderMap {
    let pairs = authorization.map(|value| (AUTHORIZATION, value.clone()));
    pairs.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_addresses_are_rejected() {
        for url in [
            "",
            "127.0.0.1:8100",
            "ftp://host",
            "http://u:p@host",
            "http://h/?a=1",
        ] {
            assert!(Client::new(url, None).is_err(), "{url}");
        }
        assert!(Client::new("http://host", Some("line\nbreak")).is_err());
    }

    #[test]
    fn segments_are_escaped_and_the_base_path_is_kept() {
        let client = Client::new("http://host:1/base/", None).unwrap();
        assert_eq!(
            client.route(["sandboxes", "a/b c", "info"]).as_str(),
            "http://host:1/base/sandboxes/a%2Fb%20c/info"
        );
        assert_eq!(client.url(), "http://host:1/base");
    }

    #[test]
    fn debug_output_hides_the_key() {
        let client = Client::new("http://localhost:1", Some("e2b_secret")).unwrap();
        assert!(!format!("{client:?} {:?}", client.authorization()).contains("secret"));
        assert!(client.is_loopback());
        assert!(Client::new("http://[::1]:1", None).unwrap().is_loopback());
        assert!(!Client::new("http://10.0.0.1", None).unwrap().is_loopback());
    }
}
