//! Configuration of the E2B provider.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderValue;
use reqwest::{Client, Url};
use rustls::RootCertStore;
use sandyard_core::Limits;
use sandyard_provider::{ProviderError, ProviderErrorKind, Result};
use sandyard_tls::roots;

use crate::CallTimeouts;
use crate::cloud_connector::no_tls_limitation;
use crate::http_client::client_builder;

/// How long the API may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Everything the E2B provider needs to know.
#[derive(Clone)]
pub struct E2bConfig {
    /// The API key. It is sent to the API only.
    pub api_key: String,
    /// The domain: `e2b.app`.
    pub domain: String,
    /// Address of the API; `None` for `https://api.<domain>`.
    pub api_url: Option<String>,
    /// Address of all sandboxes, which headers select; `None` for `https://<port>-<id>.<domain>`.
    pub sandbox_url: Option<String>,
    /// A certificate to trust in addition to the system's, in PEM.
    pub trusted_ca: Option<String>,
    /// Address to which all names of the domain resolve; `None` to ask the name servers.
    pub resolve_to: Option<SocketAddr>,
    /// The template of a sandbox whose create request names none.
    pub template: String,
    /// The program whose tool server is installed in sandboxes when it is first needed; `None` to use that of the template, if it
    /// has one.
    pub program: Option<PathBuf>,
    /// Port on which users reach it.
    pub tools_port: u16,
    /// The installation whose sandboxes the provider lists.
    pub installation: String,
    /// Time after which E2B pauses a sandbox when this server is down.
    pub timeout: Duration,
    /// The default limits, and the largest limits that a caller may request. For information only: the template decides.
    pub limits: (Limits, Limits),
    /// Timeouts of calls.
    pub timeouts: CallTimeouts,
}

sandyard_core::debug_fields!(E2bConfig: domain, api_url, sandbox_url, template, timeout);

impl E2bConfig {
    /// The address of the API.
    pub(super) fn api(&self) -> Result<Url> {
        let text = match &self.api_url {
            Some(text) => text.clone(),
            None => format!("https://api.{}", self.domain),
        };
        address("the API of E2B", &text)
    }

    /// The address of all sandboxes, if they have a common one.
    pub(super) fn sandboxes(&self) -> Result<Option<Url>> {
        let parse = |text: &String| address("E2B's sandboxes", text);
        self.sandbox_url.as_ref().map(parse).transpose()
    }

    /// The limitations to report for addresses that receive the key or tokens without TLS.
    pub(super) fn tls_limitations(&self) -> Vec<String> {
        let targets = [
            ("the API of E2B", self.api().ok()),
            ("E2B's sandboxes", self.sandboxes().ok().flatten()),
        ];
        let limitation = |(what, url): (&str, Option<Url>)| no_tls_limitation(what, &url?);
        targets.into_iter().filter_map(limitation).collect()
    }

    /// The value of the key's header.
    pub(super) fn key(&self) -> Result<HeaderValue> {
        let key = HeaderValue::try_from(self.api_key.trim());
        let mut key = key.ok().filter(|key| !key.is_empty()).ok_or_else(|| {
            invalid("the E2B API key is missing or contains invalid characters: set E2B_API_KEY")
        })?;
        key.set_sensitive(true);
        Ok(key)
    }

    pub(super) fn client(&self, api: &Url) -> Result<Client> {
        let roots = trusted_roots(self.trusted_ca.as_deref())?;
        // The key is for the API alone.
        let mut client = client_builder(roots::client_config(roots), CONNECT_TIMEOUT)
            .user_agent(concat!("sandyard/", env!("CARGO_PKG_VERSION")))
            .no_proxy();
        if let (Some(address), Some(host)) = (self.resolve_to, api.host_str()) {
            client = client.resolve(host, address);
        }
        client
            .build()
            .map_err(|error| invalid("failed to create the HTTP client for E2B").source(error))
    }
}

/// The host's trusted certificates and that of the settings.
pub(super) fn trusted_roots(trusted_ca: Option<&str>) -> Result<RootCertStore> {
    roots::host_roots_and(trusted_ca.map(str::as_bytes))
        .map_err(|error| invalid("the trusted certificate for E2B is not valid").source(error))
}

fn address(what: &str, text: &str) -> Result<Url> {
    let url = Url::parse(text).ok().filter(|url| {
        let is_web = matches!(url.scheme(), "http" | "https");
        is_web && url.host_str().is_some() && url.query().is_none() && url.fragment().is_none()
    });
    url.ok_or_else(|| {
        invalid(&format!(
            "`{text}` is not a valid address of {what}: write it like `https://api.e2b.app`"
        ))
    })
}

fn invalid(message: &str) -> ProviderError {
    ProviderError::new(ProviderErrorKind::Invalid, message)
}
