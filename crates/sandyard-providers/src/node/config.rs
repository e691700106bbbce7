//! How to reach another server.

use std::fmt;
use std::sync::Arc;

use reqwest::{Client, Url};
use rustls::RootCertStore;
use sandyard_provider::{ProviderError, ProviderErrorKind, Result};
use sandyard_tls::roots;

use super::CONNECT_TIMEOUT;
use crate::CallTimeouts;
use crate::http_client::client_builder;

/// Creates the token of each request.
#[derive(Clone)]
pub struct Token(Arc<dyn Fn() -> String + Send + Sync>);

impl Token {
    /// Calls `make` before every request, so that tokens may be short-lived.
    pub fn new(make: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    pub(super) fn make(&self) -> String {
        (self.0)()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Address and credentials of another server.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Its address: `http://…` or `https://…`, with or without a path.
    pub url: String,
    /// Proves that this server belongs to the same installation.
    pub token: Token,
    /// Certificates to trust instead of the host's, in PEM: a cluster may have its own authority. Only used with `https://`.
    pub authority: Option<Vec<u8>>,
    /// The other server's own timeouts; a grace is added to each.
    pub timeouts: CallTimeouts,
}

impl NodeConfig {
    /// Trusts the host's certificates and uses the default timeouts.
    pub fn new(url: impl Into<String>, token: Token) -> Self {
        Self {
            url: url.into(),
            token,
            authority: None,
            timeouts: CallTimeouts::default(),
        }
    }

    /// The parsed address.
    pub(super) fn base(&self) -> Result<Url> {
        let invalid = |reason: &str| {
            ProviderError::new(
                ProviderErrorKind::Invalid,
                format!("`{}` is not a valid address of a node: {reason}", self.url),
            )
        };
        let url = Url::parse(&self.url).map_err(|error| invalid(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid("it must begin with `http://` or `https://`"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(invalid("it may hold a host, a port and a path only"));
        }
        Ok(url)
    }

    pub(super) fn client(&self) -> Result<Client> {
        let invalid =
            |message: &str| ProviderError::new(ProviderErrorKind::Invalid, message.to_owned());
        let roots = match &self.authority {
            Some(pem) => {
                let mut only = RootCertStore::empty();
                roots::add_pem(&mut only, pem).map_err(|error| {
                    invalid("the certificates to trust cannot be used").source(error)
                })?;
                only
            }
            None => roots::host_roots(),
        };
        // The token is for the node alone.
        client_builder(roots::client_config(roots), CONNECT_TIMEOUT)
            .no_proxy()
            .build()
            .map_err(|error| invalid("the client of the node cannot be set up").source(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_addresses_are_valid() {
        let config = |url: &str| NodeConfig::new(url, Token::new(String::new));
        for url in ["http://10.0.0.1:8080", "https://node/base/"] {
            config(url).base().expect(url);
        }
        for url in ["", "node:8080", "ftp://node", "http://node?x=1"] {
            let error = config(url).base().expect_err(url);
            assert_eq!(error.kind, ProviderErrorKind::Invalid, "{url}");
        }
    }

    #[test]
    fn debug_output_hides_tokens() {
        let config = NodeConfig::new("http://node", Token::new(|| "secret".to_owned()));
        assert!(!format!("{config:?}").contains("secret"));
    }
}
