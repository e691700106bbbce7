//! What the E2B provider is told.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderValue;
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use rustls::RootCertStore;
use sandyard_core::Limits;
use sandyard_provider::{ProviderError, ProviderErrorKind, Result};
use sandyard_tls::roots;

use crate::CallTimeouts;
use crate::cloud_connector::lack_of_tls;

/// How long a connection to the API may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an unused connection may stay, and how often a silent one is asked whether it is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Everything the E2B provider needs to know.
#[derive(Clone)]
pub struct E2bConfig {
    /// The key. It never leaves this process but to the API.
    pub api_key: String,
    /// The domain: `e2b.app`.
    pub domain: String,
    /// Where the API is; none: `https://api.<domain>`.
    pub api_url: Option<String>,
    /// Where all sandboxes are reached, told apart by headers; none: `https://<port>-<id>.<domain>`.
    pub sandbox_url: Option<String>,
    /// A certificate to trust besides the system's, in PEM.
    pub trusted_ca: Option<String>,
    /// Where all names of the domain are, whatever the name servers say; none: they are asked.
    pub resolve_to: Option<SocketAddr>,
    /// What a sandbox starts from when nothing is named.
    pub template: String,
    /// The program whose tool server every sandbox has, brought in when it is first asked for; none: theirs, if they have one.
    pub program: Option<PathBuf>,
    /// Where users find it.
    pub tools_port: u16,
    /// The installation whose sandboxes are ours.
    pub installation: String,
    /// After how long without this server a sandbox is paused there.
    pub timeout: Duration,
    /// The default limits and the most a caller may ask for; told only, since a template decides about them there.
    pub limits: (Limits, Limits),
    /// How long calls may take.
    pub timeouts: CallTimeouts,
}

impl fmt::Debug for E2bConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("E2bConfig")
            .field("domain", &self.domain)
            .field("api_url", &self.api_url)
            .field("sandbox_url", &self.sandbox_url)
            .field("template", &self.template)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl E2bConfig {
    /// The API's address, if it is one.
    pub(super) fn api(&self) -> Result<Url> {
        let text = match &self.api_url {
            Some(text) => text.clone(),
            None => format!("https://api.{}", self.domain),
        };
        address("the API of E2B", &text)
    }

    /// Where all sandboxes are, if that is one place.
    pub(super) fn sandboxes(&self) -> Result<Option<Url>> {
        let parse = |text: &String| address("E2B's sandboxes", text);
        self.sandbox_url.as_ref().map(parse).transpose()
    }

    /// What is said of addresses that keys and tokens would be sent to in clear.
    pub(super) fn open_ways(&self) -> Vec<String> {
        let ways = [
            ("the API of E2B", self.api().ok()),
            ("E2B's sandboxes", self.sandboxes().ok().flatten()),
        ];
        let lack = |(of, url): (&str, Option<Url>)| lack_of_tls(of, &url?);
        ways.into_iter().filter_map(lack).collect()
    }

    /// The key as it is sent.
    pub(super) fn key(&self) -> Result<HeaderValue> {
        let key = HeaderValue::try_from(self.api_key.trim());
        let mut key = key
            .ok()
            .filter(|key| !key.is_empty())
            .ok_or_else(|| invalid("E2B needs a key of letters and digits: set E2B_API_KEY"))?;
        key.set_sensitive(true);
        Ok(key)
    }

    pub(super) fn client(&self, api: &Url) -> Result<Client> {
        let roots = trusted_roots(self.trusted_ca.as_deref())?;
        let mut client = Client::builder()
            .tls_backend_preconfigured(roots::client_config(roots))
            .user_agent(concat!("sandyard/", env!("CARGO_PKG_VERSION")))
            // The key is shown to nobody else.
            .no_proxy()
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(KEEP_ALIVE)
            .tcp_keepalive(KEEP_ALIVE);
        if let (Some(address), Some(host)) = (self.resolve_to, api.host_str()) {
            client = client.resolve(host, address);
        }
        client
            .build()
            .map_err(|error| invalid("no client of E2B can be made").source(error))
    }
}

/// The host's trusted certificates and the one that the settings add.
pub(super) fn trusted_roots(trusted_ca: Option<&str>) -> Result<RootCertStore> {
    roots::host_roots_and(trusted_ca.map(str::as_bytes))
        .map_err(|error| invalid("the certificate to trust for E2B cannot be used").source(error))
}

fn address(of: &str, text: &str) -> Result<Url> {
    let url = Url::parse(text).ok().filter(|url| {
        let is_web = matches!(url.scheme(), "http" | "https");
        is_web && url.host_str().is_some() && url.query().is_none() && url.fragment().is_none()
    });
    url.ok_or_else(|| {
        invalid(&format!(
            "`{text}` cannot be the address of {of}: it is written like `https://api.e2b.app`"
        ))
    })
}

fn invalid(message: &str) -> ProviderError {
    ProviderError::new(ProviderErrorKind::Invalid, message)
}
