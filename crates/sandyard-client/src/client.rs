//! One server and the key to it.

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

/// How to reach a server.
#[derive(Clone, Default)]
pub struct ClientConfig {
    /// Where, like `http://127.0.0.1:8100`. A path in front of the routes is kept.
    pub url: String,
    /// API key or session token; none where the server is open.
    pub key: Option<String>,
    /// Certificates to trust beside the host's, as PEM: for a server that made its own.
    pub ca_pem: Option<Vec<u8>>,
}

/// Talks to one server. Cheap to clone.
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
    /// A client of the server at `url`.
    ///
    /// # Errors
    ///
    /// When the address or the key cannot be one. Nothing is connected to yet.
    pub fn new(url: &str, key: Option<&str>) -> Result<Self> {
        Self::with_config(ClientConfig {
            url: url.to_owned(),
            key: key.map(str::to_owned),
            ca_pem: None,
        })
    }

    /// A client with more to say about the connection.
    ///
    /// # Errors
    ///
    /// As [`Client::new`]; also when a certificate cannot be read.
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

    /// The same client for files of another user inside: new ones belong to it, relative paths count from its home.
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

    /// Where the server is.
    pub fn url(&self) -> &str {
        self.inner.url.as_str().trim_end_matches('/')
    }

    /// At which port the server is.
    pub fn server_port(&self) -> u16 {
        self.inner
            .url
            .port_or_known_default()
            .expect("only http and https addresses are taken, and those have ports")
    }

    /// Says whether the server is on this host and nowhere else.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.inner.url)
    }

    /// The key that is shown to the server. A secret: not for logs.
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

    /// The address of a route given by its segments, each of which is escaped.
    pub(crate) fn route<'a>(&self, segments: impl IntoIterator<Item = &'a str>) -> Url {
        let mut url = self.inner.url.clone();
        url.path_segments_mut()
            .expect("only http and https addresses are taken, and those have paths")
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

impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConfig")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

fn parse_url(text: &str) -> Result<Url> {
    let refuse = |problem: String| ClientError::Address {
        url: text.to_owned(),
        problem,
    };
    let url: Url = text
        .trim()
        .parse()
        .map_err(|error| refuse(format!("{error}; write it like http://127.0.0.1:8100")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(refuse("it must begin with http:// or https://".to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refuse("credentials do not belong in it".to_owned()));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refuse("it must have no `?` and no `#`".to_owned()));
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
    fn addresses_that_are_none_are_refused_with_a_reason() {
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
    fn segments_are_escaped_and_a_path_in_front_is_kept() {
        let client = Client::new("http://host:1/yard/", None).unwrap();
        assert_eq!(
            client.route(["sandboxes", "a/b c", "info"]).as_str(),
            "http://host:1/yard/sandboxes/a%2Fb%20c/info"
        );
        assert_eq!(client.url(), "http://host:1/yard");
    }

    #[test]
    fn a_key_is_never_shown() {
        let client = Client::new("http://localhost:1", Some("e2b_secret")).unwrap();
        assert!(!format!("{client:?} {:?}", client.authorization()).contains("secret"));
        assert!(client.is_loopback());
        assert!(Client::new("http://[::1]:1", None).unwrap().is_loopback());
        assert!(!Client::new("http://10.0.0.1", None).unwrap().is_loopback());
    }
}
